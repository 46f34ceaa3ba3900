"""Functions from DataFrames to DataFrames: what the events of a ledger prove (audit), and what they come to (roll-ups). Messages are ranges of positions
throughout, never a row each, and nothing of one hot lane has to go through one task: ranges are cut at buckets of positions."""
