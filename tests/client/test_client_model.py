"""A session under every history of receiving, acknowledging, failing, rolling back and losing the connection, beside a naive broker that keeps the
books: nothing is acknowledged that the application has not had, nothing is lost, and what must be acknowledged is."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.client import AcknowledgeMode, JMSException, Message, Queue, TextMessage
from broker_core.client.machine import ConsumerMachine, Subscription
from tests.client.broker import INSTANT, Broker, Frame

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.SESSION_TRANSACTED
)  # fmt: skip
QUEUES = ("a", "b")
DEPTH = 40
PREFETCH = 6


class Books:
    """A broker's, of two queues: where each message is, and what was done about it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.waiting = {f"/queue/{name}": deque(f"{name}{number}" for number in range(DEPTH)) for name in QUEUES}
        self.links: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.reserved: dict[str, list[tuple[str, str]]] = {}
        self.sent: dict[str, list[str]] = {}
        self.stored: list[str] = []

    def connect(self) -> None:
        """The earlier connection is gone, and all that was outstanding on it is back."""
        for link in list(self.links):
            self._release(link)
        for name in list(self.reserved):
            self._end(name, commit=False)
        self.broker.lets_in()

    def serve(self) -> None:
        """Do what the client has asked for, answer, deliver what may be delivered."""
        while frames := self.broker.hears():
            for frame in frames:
                getattr(self, f"_{frame.command.lower()}")(frame)
                self.broker.confirms(frame)
            self._deliver()

    def _deliver(self) -> None:
        octets = b""
        for number, link in self.links.items():
            while len(link["outstanding"]) < link["credit"] and self.waiting[link["queue"]]:
                link["tag"] += 1
                body = self.waiting[link["queue"]].popleft()
                link["outstanding"][link["tag"]] = body
                head = f"MESSAGE\nsubscription:{number}\nmessage-id:{body}\nack:{number}.{link['tag']}\n"
                octets += f"{head}destination:{link['queue']}\ncontent-length:{len(body)}\n\n{body}\0".encode()
        self.broker.says(octets)

    # -- frames -------------------------------------------------------------------------------------------------------------------------
    def _subscribe(self, frame: Frame) -> None:
        headers = frame.headers
        self.links[headers["id"]] = {
            "queue": headers["destination"], "credit": int(headers["prefetch-count"]), "mode": headers["ack"], "outstanding": {}, "tag": 0,
        }  # fmt: skip

    def _unsubscribe(self, frame: Frame) -> None:
        self._release(frame.headers["id"])

    def _release(self, number: str) -> None:
        link = self.links.pop(number)
        self.waiting[link["queue"]].extendleft(reversed(link["outstanding"].values()))

    def _settled(self, frame: Frame) -> list[tuple[str, str]]:
        number, _, tag = frame.headers["id"].partition(".")
        link = self.links[number]  # to name one that is closed would end the connection
        outstanding = link["outstanding"]
        cumulative = link["mode"] == "client" and "ack" not in frame.headers
        tags = [each for each in outstanding if each <= int(tag)] if cumulative else [int(tag)]
        assert tags and all(each in outstanding for each in tags), f"{frame} names nothing that is outstanding"
        return [(link["queue"], outstanding.pop(each)) for each in tags]

    def _ack(self, frame: Frame) -> None:
        settled = self._settled(frame)
        if "transaction" in frame.headers:
            self.reserved[frame.headers["transaction"]] += settled
        else:
            self.acknowledged += [body for _, body in settled]

    def _nack(self, frame: Frame) -> None:
        for queue, body in reversed(self._settled(frame)):
            self.waiting[queue].appendleft(body)

    def _send(self, frame: Frame) -> None:
        self.sent[frame.headers["transaction"]].append(frame.body.decode())

    def _begin(self, frame: Frame) -> None:
        name = frame.headers["transaction"]
        assert name not in self.reserved
        self.reserved[name], self.sent[name] = [], []

    def _commit(self, frame: Frame) -> None:
        self._end(frame.headers["transaction"], commit=True)

    def _abort(self, frame: Frame) -> None:
        self._end(frame.headers["transaction"], commit=False)

    def _end(self, name: str, commit: bool) -> None:
        settled, sent = self.reserved.pop(name), self.sent.pop(name)
        if commit:
            self.acknowledged += [body for _, body in settled]
            self.stored += sent
        else:
            for queue, body in reversed(settled):
                self.waiting[queue].appendleft(body)


class Application:
    """One session with a consumer of each queue, and what it believes."""

    def __init__(self, mode: AcknowledgeMode, **factory: Any) -> None:
        self.mode = mode
        self.broker = Broker(reconnect_enabled=True, connected=False, consumer_flow_limit=PREFETCH, **factory)
        self.books = Books(self.broker)
        self.books.connect()
        self.session = self.broker.session(mode)
        self.consumers: list[ConsumerMachine] = []
        self.had: set[str] = set()
        """Every message that it has ever had in its hands."""
        self.mine: dict[str, Message] = {}
        """Had on this connection, and neither acknowledged nor given back."""
        self.sent: list[str] = []
        self.committed: list[str] = []
        self.count = 0
        self.doomed = False
        self.handling: Message | None = None
        self.recovering = False
        for name in QUEUES:
            self.subscribe(name)

    def subscribe(self, name: str) -> None:
        self.consumers.append(self.session.create_consumer(Subscription(destination=Queue(name)))[0])
        self.books.serve()

    def do(self, what: str, which: int) -> None:
        getattr(self, what)(which)
        self.books.serve()
        self.check()

    # -- what it does ---------------------------------------------------------------------------------------------------------------------
    def receive(self, which: int) -> None:
        """Not while a listener of the session runs: the driver sees to that."""
        self.return_(0)
        consumer = self.consumers[which % len(self.consumers)]
        with contextlib.suppress(JMSException):  # it holds as much as it may
            taken = consumer.receive(self.broker.now, INSTANT)
            if taken is not None:
                self.had.add(taken[0].body)
                self.mine[taken[0].body] = taken[0]

    def listen(self, which: int) -> None:
        """A listener gets it, and has it in its hands until `return_`."""
        self.return_(0)
        consumer = self.consumers[which % len(self.consumers)]
        self.handling = consumer.next_for_listener(self.broker.now, INSTANT)
        if self.handling is not None:
            self.had.add(self.handling.body)
            if self.mode in (CLIENT, INDIVIDUAL, TRANSACTED):
                self.mine[self.handling.body] = self.handling

    def return_(self, which: int) -> None:
        """The listener returns, or raises."""
        message, self.handling = self.handling, None
        if message is not None:
            here = message.delivery.epoch == self.broker.client.epoch and not self.recovering
            self.session.handled("LookupError" if which % 2 else None, self.broker.now)
            if self.mode in (AUTO, DUPS_OK) and not which % 2 and here:
                self.mine[message.body] = message
        self.recovering = False

    def acknowledge(self, which: int) -> None:
        self._acknowledge(which, self.session.acknowledge, self.mode is CLIENT)

    def acknowledge_this(self, which: int) -> None:
        if self.mode in (CLIENT, INDIVIDUAL):
            self._acknowledge(which, self.session.acknowledge_this, False)

    def _acknowledge(self, which: int, how: Any, everything: bool) -> None:
        if self.mine:
            body = list(self.mine)[which % len(self.mine)]
            with contextlib.suppress(JMSException):  # the connection was lost
                how(self.mine[body].delivery)
            if self.mode in (CLIENT, INDIVIDUAL):
                for each in list(self.mine) if everything else [body]:
                    del self.mine[each]
                    self.books.serve()
                    assert each in self.books.acknowledged

    def recover(self, which: int) -> None:
        if self.mode is not TRANSACTED:
            self.session.recover()
            self.mine.clear()
            self.recovering = self.handling is not None

    def send(self, which: int) -> None:
        if self.mode is TRANSACTED:
            self.count += 1
            self.broker.producer(self.session).send(TextMessage(f"sent {self.count}"), INSTANT)
            self.sent.append(f"sent {self.count}")

    def commit(self, which: int) -> None:
        if self.mode is TRANSACTED:
            mine, self.mine = list(self.mine), {}
            sent, self.sent = self.sent, []
            doomed, self.doomed = self.doomed, False
            try:
                self.session.commit()
            except JMSException:
                assert doomed
                return
            self.books.serve()
            assert not doomed and set(mine) <= set(self.books.acknowledged)
            self.committed += sent

    def roll_back(self, which: int) -> None:
        if self.mode is TRANSACTED:
            self.session.roll_back()
            self.mine, self.sent, self.doomed = {}, [], False

    def close_consumer(self, which: int) -> None:
        consumer = self.consumers.pop(which % len(self.consumers))
        self.session.close_consumer(consumer)
        self.books.serve()
        self.subscribe(consumer.what.destination.name)

    def lose(self, which: int) -> None:
        self.doomed = self.doomed or bool(self.mine or self.sent)
        self.broker.loses_the_connection()
        self.mine.clear()
        self.sent = []
        self.books.connect()

    def wait(self, which: int) -> None:
        self.broker.passes(which * 500)

    # -- what must be true ----------------------------------------------------------------------------------------------------------------
    def check(self) -> None:
        books = self.books
        assert set(books.acknowledged) <= self.had, "something was acknowledged that nobody had"
        assert len(books.acknowledged) == len(set(books.acknowledged)), "something was acknowledged twice"
        assert books.stored == self.committed
        unacknowledged = [body for body in self.mine if body not in books.acknowledged]
        if self.mode is AUTO and not self.broker.client.settings.optimize_acknowledge:
            assert not unacknowledged
        if self.mode is DUPS_OK:
            assert len(unacknowledged) < 10
        everywhere = [body for queue in books.waiting.values() for body in queue]
        everywhere += [body for link in books.links.values() for body in link["outstanding"].values()]
        everywhere += [body for settled in books.reserved.values() for _, body in settled]
        assert sorted(everywhere + books.acknowledged) == sorted(f"{name}{number}" for name in QUEUES for number in range(DEPTH))
        assert self.broker.client.held == sum(len(consumer.buffer) for consumer in self.consumers) >= 0

    def end(self) -> None:
        self.return_(0)
        mine = list(self.mine)
        self.session.close()
        self.books.serve()
        self.check()
        assert not self.books.links and not self.books.reserved
        if self.mode in (AUTO, DUPS_OK):
            assert set(mine) <= set(self.books.acknowledged)


ACTIONS = (
    "receive", "receive", "receive", "receive", "listen", "listen", "return_", "acknowledge", "acknowledge_this", "recover", "send", "commit", "roll_back",
    "close_consumer", "lose", "wait",
)  # fmt: skip
HISTORIES = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 15)), max_size=80)


@pytest.mark.parametrize("mode", [AUTO, CLIENT, DUPS_OK, INDIVIDUAL, TRANSACTED], ids=lambda mode: mode.name)
@pytest.mark.parametrize("optimized", [False, True], ids=["plain", "optimized"])
def test_a_session_keeps_its_promises_through_every_history(mode: AcknowledgeMode, optimized: bool) -> None:
    @settings(max_examples=60, deadline=None)
    @given(HISTORIES)
    def keeps(history: list[tuple[str, int]]) -> None:
        application = Application(mode, optimize_acknowledge=optimized)
        for what, which in history:
            application.do(what, which)
        application.end()

    keeps()
