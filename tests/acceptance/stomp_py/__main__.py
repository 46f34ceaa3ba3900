import sys

from . import queues, requests, topics, transactions

SCENARIOS = vars(queues) | vars(requests) | vars(topics) | vars(transactions)

SCENARIOS[sys.argv[3]](int(sys.argv[1]), sys.argv[2], *sys.argv[4:])
