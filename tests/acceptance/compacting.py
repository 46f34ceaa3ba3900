"""An operator who has segments compacted by hand, again and again, while everything else goes on and is killed."""

from __future__ import annotations

import random
import threading

import psycopg

from tests.acceptance.operators import ANSWER_SECONDS_MAX, ask
from tests.support.service import NotServing, Service

PERCENTS = (30, 90, 100)
PAUSE_SECONDS = (1.0, 4.0)
"""The node looks at one segment a second; a request that comes before it is done takes the place of the one before."""
SEGMENT_ROWS = 500
"""Of the service that it works on: half a second of the kill loop's traffic, so that there is always a segment that was closed with messages
under way in it, and is frozen, compacted and dropped among the kills."""


class Compactor(threading.Thread):
    """What it is refused or not answered because something was killed, it asks again."""

    def __init__(self, service: Service, seed: int) -> None:
        super().__init__(name="compactor", daemon=True)
        self.failure: BaseException | None = None
        self._service, self._chance = service, random.Random(f"{seed} compactor")
        self._stopping = threading.Event()
        self._compacted: dict[int, tuple[int, int]] = {}
        """Of each request as it was told last."""

    @property
    def compacted(self) -> tuple[int, int]:
        """Segments that were told to be compacted, and the messages moved out of them: at least so many."""
        told = list(self._compacted.values())  # at once: the thread may be noting another
        return sum(segments for segments, _ in told), sum(rows for _, rows in told)

    def run(self) -> None:
        try:
            while not self._stopping.wait(self._chance.uniform(*PAUSE_SECONDS)):
                try:
                    ask(self._service, "compact", "", percent=self._chance.choice(PERCENTS))
                    self._note()
                except (NotServing, psycopg.OperationalError):
                    continue
        except Exception as error:  # noqa: BLE001 (the loop reports it with its seed)
            self.failure = error

    def stop(self) -> None:
        """What it is being answered is noted before this returns."""
        self._stopping.set()
        if self.is_alive():
            self.join(ANSWER_SECONDS_MAX + 10)

    def _note(self) -> None:
        with self._service.database() as connection:
            told = connection.execute("SELECT about -> 'compaction' FROM surety.node_status WHERE about ? 'compaction'").fetchall()
        for (compaction,) in told:
            self._compacted[compaction["request"]] = compaction["compacted"], compaction["rows"]
