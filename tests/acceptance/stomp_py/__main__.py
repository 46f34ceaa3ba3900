import sys

from . import queues, topics, transactions

SCENARIOS = vars(queues) | vars(topics) | vars(transactions)

SCENARIOS[sys.argv[3]](int(sys.argv[1]), sys.argv[2], *sys.argv[4:])
