"""What the port promises of prepared branches (R13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine.branch import State
from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.writes import PreparedBranch
from broker_core.store import BodyMissing, CommitLost
from tests.store.rows import PLAIN, RICH, Rig, body_of, chunks, commit, delayed, message, messages, told

ODD = "O'Brien \\ \"ü\""


def branch(number: int = 7, xid: str = "1.aa.", **how: object) -> PreparedBranch:
    return replace(PreparedBranch(number, xid, "guest", 1_700_000_000_000, State.PREPARED), **how)  # type: ignore[arg-type]


def sent(body: bytes | StoredBody = b"body", header: Header = PLAIN, at: int = 1_600_000_000_000) -> Message:
    """As the engine has it before the commit: neither sequence nor position are known."""
    made = Message(header, body, len(header.octets) + (body.size if isinstance(body, StoredBody) else len(body)))
    made.accepted_at = at
    return made


def acknowledged(position: int, header: Header = PLAIN) -> Message:
    """Its body has left with the delivery."""
    made = message(position, header=header)
    made.body = None
    return made


def said(found: PreparedBranch) -> tuple[object, ...]:
    """Everything of it, comparable."""
    sends = [(address, told(one), one.header.delay, one.header.duplicate_id) for address, one in found.sends]
    settled = [(subscription, outcome, told(one)[:11], told(one)[12:]) for subscription, outcome, one in found.settled]
    return found.branch, found.xid, found.account, found.prepared_at, found.state, found.octets, sends, settled


def placed(one: Message) -> Message:
    """As the store tells it: what is not known is 0."""
    made = one.again() if hasattr(one, "sequence") else Message(one.header, one.body, one.size)
    made.accepted_at = one.accepted_at
    if not hasattr(one, "sequence"):
        made.destination = made.sequence = made.position = 0
    return made


def expected(one: PreparedBranch) -> tuple[object, ...]:
    sends = [(address, placed(each)) for address, each in one.sends]
    return said(replace(one, sends=sends))


class PreparedContract:
    async def test_a_prepared_branch_comes_back_as_it_was(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        large = StoredBody(await store.write_body(chunks(b"large")), 5)
        late = Header(b"a:b", 9, Reliability.EXPRESS, 77, delay=99, duplicate_id=ODD)
        sends = [("queue/" + ODD, sent(b"it's \\ \0 binary", RICH)), ("topic/t", sent(b"", late)), ("queue/l", sent(large))]
        settled = [(3, Outcome.ACCEPTED, acknowledged(8)), (4, Outcome.REJECTED, acknowledged(1 << 40, RICH)), (3, Outcome.FAILED, acknowledged(9))]
        rows = [branch(8, account=ODD, octets=123, sends=sends, settled=settled), branch(7, "2.bb.cc")]
        await store.commit(commit(1, prepared=rows))
        store = await rig.open()
        found = (await store.recover()).prepared
        assert [said(one) for one in found] == [expected(rows[1]), expected(rows[0])]
        assert await body_of(store, large.body) == b"large"

    async def test_its_outcome_takes_it_along_and_leaves_its_large_body_to_the_message(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        large = StoredBody(await store.write_body(chunks(b"large")), 5)
        await store.commit(commit(1, prepared=[branch(sends=[("queue/1", sent(large))]), branch(8)]))
        closed = SegmentClosed(1, 9, {(1, 4): (1, 1)})
        await store.commit(commit(2, messages(1, 1, body=large, sequence=9), resolved=[(7, 0)], definitions=[closed]))
        store = await rig.open()
        assert [one.branch for one in (await store.recover()).prepared] == [8]
        assert await body_of(store, large.body) == b"large"
        assert await store.drop_segment(1)
        with pytest.raises(BodyMissing):
            await body_of(store, large.body)

    async def test_its_large_body_may_go_on_to_the_schedule(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        large = StoredBody(await store.write_body(chunks(b"large")), 5)
        await store.commit(commit(1, prepared=[branch(sends=[("queue/1", sent(large))])]))
        await store.commit(commit(2, scheduled=[delayed(9, 10, body=large)], resolved=[(7, 0)]))
        store = await rig.open()
        await store.recover()
        assert await body_of(store, large.body) == b"large"

    async def test_the_large_body_of_what_is_rolled_back_is_nobodys(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        bodies = [await store.write_body(chunks(b"large")) for _ in range(2)]
        sends = [("queue/1", sent(StoredBody(body, 5))) for body in bodies]
        await store.commit(commit(1, prepared=[branch(sends=sends)]))
        await store.commit(commit(2, resolved=[(7, 0)]))
        await store.discard_bodies(bodies[:1])
        with pytest.raises(BodyMissing):
            await body_of(store, bodies[0])
        store = await rig.open()
        await store.recover()
        with pytest.raises(BodyMissing):
            await body_of(store, bodies[1])

    async def test_what_is_ended_by_hand_leaves_its_name_until_it_is_forgotten(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        rows = [branch(number, octets=5, sends=[("queue/1", sent())], settled=[(1, Outcome.ACCEPTED, acknowledged(1))]) for number in (7, 8)]
        await store.commit(commit(1, prepared=rows))
        await store.commit(commit(2, resolved=[(8, State.HEURISTICALLY_COMMITTED), (7, State.HEURISTICALLY_ROLLED_BACK)]))
        store = await rig.open()
        found = (await store.recover()).prepared
        assert [(one.branch, one.state, one.sends, one.settled) for one in found] == [(7, 6, [], []), (8, 5, [], [])]
        await store.commit(commit(3, resolved=[(7, 0)]))
        assert [one.branch for one in (await (await rig.open()).recover()).prepared] == [8]

    async def test_prepare_and_outcome_in_one_commit_leave_nothing(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        rows = [branch(sends=[("queue/1", sent())]), branch(8, settled=[(1, Outcome.ACCEPTED, acknowledged(1))]), branch(9)]
        await store.commit(commit(1, prepared=rows, resolved=[(7, 0), (8, 0)]))
        assert [one.branch for one in (await (await rig.open()).recover()).prepared] == [9]

    async def test_a_prepare_that_is_lost_leaves_nothing_and_an_outcome_that_is_lost_leaves_the_branch(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, prepared=[branch(sends=[("queue/1", sent())])]))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, prepared=[branch(8)], resolved=[(7, 0)]))
        (found,) = (await (await rig.open()).recover()).prepared
        assert (found.branch, len(found.sends)) == (7, 1)
