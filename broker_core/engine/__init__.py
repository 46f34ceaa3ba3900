"""The engine: what a reliable message service decides, as a pure, synchronous, deterministic machine.

Theory of operation
-------------------
Commands (commands.py) are applied one by one into an open batch; `flush` closes the batch and returns its effects (effects.py): one commit,
the outputs for peers, the reads it wants. The engine has no clock, mints no ids, does no I/O: instants and numbers come in with the commands.

Two rules carry all reliability, and the host keeps them:

1. Write before you speak: a batch's outputs are released only after its commit is durable.
2. A commit not known to have succeeded: forget everything and recover. Start, crash, failover and a lost commit are one path.

A message lives in a lane of its destination (destination.py), one lane per priority, stored and volatile apart. A subscription walks each
lane with a cursor (subscription.py says where a message can be), and marks what is settled in a floor and a bitmap (progress.py). Where the
rows of a lane are stored is known by segment (segments.py). Nothing here is proportional to the backlog.

A peer's mistake is a Refused output. An exception from the engine means that the engine is broken, and the host must stop.
"""

from .engine import Engine
from .limits import Limits
from .recovery import recover

__all__ = ["Engine", "Limits", "recover"]
