"""Histories of delayed messages, operators who cancel, deliver and move them, slow reads and crashes: each message comes once or, if it was cancelled,
never, and none before its time. Planted bugs are found."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.schedule import Schedule
from tests.engine.rig import ASSURED, QUEUE, Bench, now_of

SEEDS, STEPS = 30, 60
AHEAD = 300


class History:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bench = Bench(slow=True, schedule_ahead_ms=AHEAD, page_rows=3, schedule_rows=8)
        self.due: dict[str, int] = {}
        """Of what is still to come."""
        self.over: dict[str, str] = {}
        """What came, or was cancelled."""
        self.asked: dict[int, tuple[str, dict[str, Any]]] = {}
        self.done = 0
        self._begin()

    def _begin(self) -> None:
        self.bench.apply(c.Attach(1, 7, QUEUE, credit=1000, presettled=True))
        self.flush()

    def run(self) -> None:
        for step in range(STEPS):
            self.random.choices([self.send, self.ask, self.wait, self.read, self.crash], [4, 6, 4, 4, 0.3])[0](step)
        while self.due or self.bench.reads or self.asked:
            self.bench.now += AHEAD
            self.flush()
            self.read(0)

    def send(self, step: int) -> None:
        body, delay = f"m{step}", self.random.choice((50, 200, 400, 900, 2000))
        self.due[body] = self.bench.now + delay
        self.bench.apply(*self._send(body, delay))
        self.flush()

    def _send(self, body: str, delay: int) -> list[c.Command]:
        from broker_core.engine.message import Header, Message

        return [c.Send(1, None, QUEUE, Message(Header(b"", 4, ASSURED, delay=delay), body.encode(), 10))]

    def ask(self, step: int) -> None:
        """Whatever the schedule's table says, it may be about to change."""
        rows = self.bench.database.tables.scheduled
        if not rows:
            return
        number = self.random.choice(list(rows))
        row = rows[number]
        arguments: dict[str, Any] = {"schedule": number, "due_at": row.accepted_at, "action": self.random.choice(("cancel", "deliver", "reschedule"))}
        if arguments["action"] == "reschedule":
            arguments["at"] = self.bench.now + self.random.choice((1, 300, 1000))
        request = self.bench.database.request("delayed", QUEUE, arguments)
        self.asked[request] = (bytes(row.body).decode(), arguments)
        self.bench.apply(c.Control(request, "delayed", QUEUE, arguments))
        if self.random.random() < 0.7:
            self.flush()

    def wait(self, step: int) -> None:
        self.bench.now += self.random.choice((1, 60, 200, 500))
        self.flush()

    def read(self, step: int) -> None:
        """Reads are done at one time, and heard of at another, in any order."""
        done = [(read, now_of(self.bench.store.read(read))) for read in self.bench.reads]
        self.bench.reads = []
        if self.random.random() < 0.5:
            self.bench.now += self.random.choice((1, 60, 500))
            self.flush()
        self.random.shuffle(done)
        for read, (messages, complete) in done:
            self.bench.apply(c.PageLoaded(read.read, messages, complete))
            if self.random.random() < 0.5:
                self.flush()
        self.flush()

    def crash(self, step: int) -> None:
        self.bench.start()
        self.asked = {}
        self._begin()

    def flush(self) -> None:
        outputs = self.bench.flush()
        for request in list(self.asked):
            answer = self.bench.database.answer(request)
            if answer is not None:
                self._answered(*self.asked.pop(request), answer[1])
        for message in self.bench.delivered(outputs):
            if not (message.redelivered and self.over.get(self.bench.body(message)) == "delivered"):  # it left before a crash
                self._came(self.bench.body(message))

    def _answered(self, body: str, arguments: dict[str, Any], answer: dict[str, Any]) -> None:
        if "refusal" in answer:
            return
        self.done += 1
        assert body in self.due, f"{body} is {self.over.get(body)}, and {arguments['action']} was done"
        if arguments["action"] == "cancel":
            del self.due[body]
            self.over[body] = "cancelled"
        else:
            self.due[body] = arguments.get("at", 0)

    def _came(self, body: str) -> None:
        assert body in self.due, f"{body} comes, and it is {self.over.get(body)}"
        assert self.due.pop(body) <= self.bench.now, f"{body} comes before its time"
        self.over[body] = "delivered"


def test_each_message_comes_once_in_its_time_whatever_operators_do() -> None:
    done = 0
    for seed in range(SEEDS):
        history = History(seed)
        history.run()
        done += history.done
    assert done > SEEDS * 3


def forgets_what_went(self: Schedule) -> None:
    """What a read on its way may still bring is not remembered."""
    self.gone = {}


@pytest.mark.parametrize("bug", ["page brings it back", "nothing is remembered"])
def test_planted_bugs_are_found(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    if bug == "nothing is remembered":
        right = Schedule.withdraw
        monkeypatch.setattr(Schedule, "withdraw", lambda self, message, *, in_memory: (right(self, message, in_memory=in_memory), forgets_what_went(self))[0])
    else:
        take = Schedule.take

        def forgetful(self: Schedule, rows: Any, complete: bool, exists: Any) -> None:
            self.gone = {}
            take(self, rows, complete, exists)

        monkeypatch.setattr(Schedule, "take", forgetful)
    with pytest.raises(AssertionError):
        _play(10 * SEEDS)


def _play(seeds: int) -> None:
    for seed in range(seeds):
        History(seed).run()
