"""The log of the dead: a line for each, a bounded number of lines, nothing of what a message holds."""

from __future__ import annotations

import logging

import pytest

from broker_core.engine.effects import Death, Effects, Turned
from broker_core.engine.limits import Limits
from broker_core.engine.settings import Settings
from broker_core.server.dead_log import LINES_PER_SECOND, DeadLog

from .conftest import Run
from .rig import Broker, turns


def effects(count: int, *, more: int = 0, name: str = "ID:a-1") -> Effects:
    return Effects(None, [], [], noted=[Death(name, "queue/a", "EXPIRED", "too late", "queue/mq.sys.dmq")] * count, noted_more=more)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "surety.dead")
    return caplog


def test_fields_go_with_the_line_for_who_reads_json(lines: pytest.LogCaptureFixture) -> None:
    told = effects(1)
    told.noted = [Death("ID:a-1", "queue/a", "EXPIRED", "too late", "", "00-aa"), Turned("queue/b", "shop", "DESTINATION_FULL", "queue/b", "00-bb")]
    DeadLog().write(told, 0.0)
    assert [record.fields["event"] for record in lines.records] == ["dead", "refused"]  # type: ignore[attr-defined]
    assert [record.fields["traceparent"] for record in lines.records] == ["00-aa", "00-bb"]  # type: ignore[attr-defined]
    assert lines.messages[1] == "A message to queue/b of account shop is refused, DESTINATION_FULL: queue/b. Trace 00-bb."


def test_what_cannot_be_printed_is_not(lines: pytest.LogCaptureFixture) -> None:
    DeadLog().write(effects(1, name="ID:\n\x1b[2J" + "x" * 300), 0.0)
    (line,) = lines.messages
    assert line == f"Message ID:??[2J{'x' * 192} died in queue/a, EXPIRED: too late; it is in queue/mq.sys.dmq."


def test_no_more_than_so_many_are_named_in_a_second_and_the_others_are_counted(lines: pytest.LogCaptureFixture) -> None:
    log = DeadLog()
    log.write(effects(LINES_PER_SECOND - 1), 100.0)
    log.write(effects(5, more=7), 100.9)
    assert len(lines.messages) == LINES_PER_SECOND
    log.write(effects(0), 100.95)
    log.write(effects(0), 101.0)
    assert lines.messages[LINES_PER_SECOND:] == [f"11 more messages died or were refused; no more than {LINES_PER_SECOND} are named in a second."]
    log.write(effects(2), 101.1)
    log.finish()
    assert len(lines.messages) == LINES_PER_SECOND + 3


@pytest.mark.parametrize(("use_dead", "became"), [(True, "it is in queue/mq.sys.dmq"), (False, "it is discarded")])
def test_a_node_names_what_died_when_that_is_durable(run: Run, lines: pytest.LogCaptureFixture, use_dead: bool, became: str) -> None:
    async def story() -> None:
        broker = await Broker().start(Limits(settings=Settings(redelivery_max=0, use_dead=use_dead), dead_log=True))
        client = await broker.client("q")
        client.send(b"secret", "1")
        await turns()
        (frame,) = [frame for frame in client.take() if frame[0] == "MESSAGE"]
        door = broker.store.shut("commit")
        client.say("NACK", ("id", frame[1]["ack"]))
        await turns()
        assert lines.messages == []
        door.set()
        await turns()
        (line,) = lines.messages
        assert line.endswith(f" died in queue/q, UNDELIVERABLE: delivery failed 1 times; redelivery maximum 0; {became}.") and "secret" not in line
        await broker.end()

    run(story())
