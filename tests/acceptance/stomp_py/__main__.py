import sys

from . import consumers, delays, duplicates, groups, limits, patterns, queues, requests, selectors, topics, transactions

SCENARIOS = {}
for module in (consumers, delays, duplicates, groups, limits, patterns, queues, requests, selectors, topics, transactions):
    SCENARIOS |= vars(module)

SCENARIOS[sys.argv[3]](int(sys.argv[1]), sys.argv[2], *sys.argv[4:])
