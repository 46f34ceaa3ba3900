"""What the port promises of messages that sessions of the database sent (R17)."""

from __future__ import annotations

import pytest

from broker_core.engine.message import StoredBody
from broker_core.store import BodyMissing, CommitLost, Store
from tests.store.rows import Rig, body_of, commit, message


async def entries(store: Store, limit: int = 99, bytes_max: int = 1 << 20) -> list[int]:
    return [arrival.entry for arrival in await store.inbox(limit, bytes_max)]


class InboxContract:
    async def test_what_was_sent_is_read_in_the_order_of_its_numbers_and_cut_by_rows_and_octets(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        assert await store.inbox(99, 1 << 20) == []
        sent = await rig.sent("queue/a", b"1", b"2", b"3")
        assert await entries(store) == sent == sorted(sent)
        assert await entries(store, limit=2) == sent[:2]
        (size, *_) = [arrival.message.size for arrival in await store.inbox(99, 1 << 20)]
        assert await entries(store, bytes_max=1) == sent[:1]
        assert await entries(store, bytes_max=2 * size) == sent[:2]
        assert await entries(store, bytes_max=3 * size - 1) == sent[:2]

    async def test_a_row_says_what_was_sent(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        (entry,) = await rig.sent("topic/a:b", b"it's \0 binary")
        (arrival,) = await store.inbox(1, 1)
        row = arrival.message
        assert (arrival.entry, arrival.address, row.body, row.size) == (entry, "topic/a:b", b"it's \0 binary", len(row.header.octets) + 13)
        assert (row.header.priority, row.header.reliability, row.header.lane, row.header.expiration, row.header.delay) == (4, 4, 4, 0, 0)
        assert row.header.octets.startswith(b"destination:/topic/a\\cb\n")
        assert row.header.message_id.endswith(f"-sql-{entry}")

    async def test_the_commit_that_takes_a_row_deletes_it_and_no_other_commit_does(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        first, second, third = await rig.sent("queue/a", b"1", b"2", b"3")
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(1, [message(1)], taken=[first]))
        store = await rig.open()
        await store.recover()
        assert await entries(store) == [first, second, third]
        await store.commit(commit(1, [message(1)], taken=[first, third]))
        assert await entries(store) == [second]
        store = await rig.open()
        await store.recover()
        assert await entries(store) == [second]

    async def test_a_commit_that_takes_what_is_gone_does_nothing_at_all(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        first, second = await rig.sent("queue/a", b"1", b"2")
        await store.commit(commit(1, [message(1)], taken=[first]))
        with pytest.raises(CommitLost, match="inbox"):
            await store.commit(commit(2, [message(2)], taken=[first, second]))
        store = await rig.open()
        assert [row.number for row in (await store.recover()).ledger] == [1]
        assert await entries(store) == [second]

    async def test_a_large_body_waits_with_its_row_and_goes_with_its_message(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        octets = bytes(range(256)) * 10_241
        (entry,) = await rig.sent("queue/a", octets)
        store = await rig.open()
        await store.recover()
        (arrival,) = await store.inbox(1, 1)
        large = arrival.message.body
        assert isinstance(large, StoredBody) and large.size == len(octets)
        assert await body_of(store, large.body) == octets
        await store.commit(commit(1, [message(1, body=large)], taken=[entry]))
        store = await rig.open()
        await store.recover()
        assert await body_of(store, large.body) == octets
        (entry,) = await rig.sent("queue/a", octets)
        (arrival,) = await store.inbox(1, 1)
        large = arrival.message.body
        assert isinstance(large, StoredBody)
        await store.commit(commit(2, taken=[entry]))
        store = await rig.open()
        await store.recover()
        with pytest.raises(BodyMissing):
            await body_of(store, large.body)
