"""How much has been applied since the last flush."""

from __future__ import annotations

OCTETS_MAX = 4 << 20
"""Sends of the open batch; at 100 MB/s a commit of it takes 40 ms. Beyond, producers are not read from until the next flush."""
SENDS_MAX = 5_000
OTHERS_MAX = 20_000
"""Commands that are no sends. Their receipts wait, too, and a header has up to 16 KiB: 320 MiB of them while a commit stalls."""
EFFORT_MAX = 50_000
"""Microseconds: what selectors leave out, and what members of patterns begin and end with, costs the flush as much again."""


class OpenBatch:
    __slots__ = ("_effort", "_octets", "_others", "_sends")

    def __init__(self) -> None:
        self._octets = 0
        self._sends = 0
        self._others = 0
        self._effort = 0

    def add(self, octets: int, sends: int, others: int, effort: int) -> None:
        """Sends with their octets, commands that are none, and what all of them took, in microseconds."""
        self._octets += octets
        self._sends += sends
        self._others += others
        self._effort += effort

    @property
    def is_large(self) -> bool:
        sent = self._octets > OCTETS_MAX or self._sends > SENDS_MAX
        return sent or self._others > OTHERS_MAX or self._effort > EFFORT_MAX
