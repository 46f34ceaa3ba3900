"""The life of a node: acquire the lease, recover, serve, step down; again after whatever went wrong. Start, crash and failover are one path."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

import psycopg

from broker_core import __version__
from broker_core.config import BrokerConfig
from broker_core.conversion import decode
from broker_core.engine import recover
from broker_core.engine.access import RULES_MAX, Rule
from broker_core.engine.access import problem as rule_problem
from broker_core.engine.commands import Control, SetAccess
from broker_core.engine.effects import Effects
from broker_core.engine.levels import LevelMapping
from broker_core.foreign.definition import ForeignLink, problem
from broker_core.scram import Verifier
from broker_core.store import CommitLost, SpaceExhausted
from broker_core.store.lease import Lease
from broker_core.store.operators import ACCESS_CHANGED, OperatorTables
from broker_core.store.postgres import PostgresStore

from .amqp_peer import AmqpPeer
from .auth import Account, Accounts
from .clock import Clock, believable
from .forwarding import Forwarding
from .host import Host
from .inbox import Inbox
from .limits import ledger_cap, limits_of, times_of
from .listening import Node
from .managing import VERBS as NODE_VERBS
from .managing import Managing
from .memory_watch import MemoryWatch
from .metrics import Metrics
from .sessions import Sessions
from .space import Space
from .stomp_peer import StompPeer

log = logging.getLogger("surety.node")

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Between terms that failed at once; the last repeats."""
STATUS_SECONDS = 1.0
SIZE_SECONDS = 3.0
"""The database's size is asked for so often, if it has a cap (R21). At 100 MB/s it grows by 300 MB in between: a cap leaves that much room."""
ABOUT = {"version": __version__, "host": platform.node()}
"""What every node tells of itself."""
CONTROL_SECONDS = 0.2
"""Operators' requests are looked for so often: well under the second in which a change takes effect."""


async def serve(config: BrokerConfig, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Serve terms until `stop` is set. `ready` is called at the start of each. Raises what is a bug; waits out what is the database's trouble."""
    name = f"{platform.node()}:{os.getpid()}"
    failures = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            await _term(config, name, stop, ready)
        except (CommitLost, SpaceExhausted, psycopg.Error, OSError) as error:
            if time.monotonic() - began > RETRY_SECONDS[-1]:
                failures = 0
            delay = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
            failures += 1
            log.error("Stepped down: %s: %s. Again in %.1f s.", type(error).__name__, error, delay)
            await _wait(stop, delay)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


async def _term(config: BrokerConfig, name: str, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """One term: from waiting for the lease to giving it up."""
    operators = OperatorTables(config.database_url)
    try:
        lease = await _acquire(config, name, stop, operators)
    except BaseException:
        await operators.close()
        raise
    if lease is None:
        await operators.retire(name)
        await operators.close()
        return
    try:
        store = await PostgresStore.open(lease)
        try:
            await _Term(config, name, lease, store, operators).serve(stop, ready)
        finally:
            await store.close()
    finally:
        await operators.close()
        await lease.release()


async def _acquire(config: BrokerConfig, name: str, stop: asyncio.Event, operators: OperatorTables) -> Lease | None:
    """Stand by until the lease is ours; None: told to stop first."""
    acquiring = asyncio.create_task(Lease.acquire(config.database_url, name, times=times_of(config)))
    stopping = asyncio.create_task(stop.wait())
    standing_by = asyncio.create_task(_stand_by(name, operators))
    try:
        await asyncio.wait({acquiring, stopping, standing_by}, return_when=asyncio.FIRST_COMPLETED)
        if acquiring.done():  # first of all: nobody else would release it
            return acquiring.result()
        if standing_by.done():
            standing_by.result()
        return None
    finally:
        for task in (acquiring, stopping, standing_by):
            task.cancel()
        await asyncio.gather(acquiring, stopping, standing_by, return_exceptions=True)


async def _stand_by(name: str, operators: OperatorTables) -> None:
    """Tell operators that a node waits; not in the first second, for most nodes are given the lease at once."""
    started_at = time.time()
    while True:
        await asyncio.sleep(STATUS_SECONDS)
        try:
            await operators.write_status(name, 0, "standby", started_at, {}, {}, ABOUT)
        except SpaceExhausted as error:  # the holder says so, too; standing by goes on
            log.warning("The status of this node cannot be written: %s", error)


class _Term:
    def __init__(self, config: BrokerConfig, name: str, lease: Lease, store: PostgresStore, operators: OperatorTables) -> None:
        self._config = config
        self._name = name
        self._lease = lease
        self._store = store
        self._operators = operators
        self._metrics = Metrics()
        self._asked: set[int] = set()
        self._asked_now = asyncio.Event()
        """Operators have asked something, as far as they were heard."""
        self._unusable: dict[str, None] = {}
        """Foreign links that cannot be."""
        self._started_at = time.time()

    async def serve(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        config = self._config
        began = time.monotonic()
        found = believable(await self._store.recover())
        engine = recover(found, limits_of(config), found.instance, decode)
        clock = Clock(self._lease.clock_ms, self._lease.acquired_monotonic)
        clock.not_before(engine.shard.now)
        folder = await self._operators.data_folder() if config.embedded else ""
        self._space = Space(folder or None, config.disk_free_min_octets, config.database_octets_max)
        self._host = Host(engine, self._store, clock, self._lease, self._metrics, self._space, config.checkpoint_interval_ms / 1000, self._publish)
        sessions = Sessions()
        accounts = self._accounts = Accounts(_Source(self._operators), sessions)
        self._node = Node(config, self._host, self._store, clock, accounts, self._metrics, __version__, found.instance, found.epoch, sessions)
        managing = self._managing = Managing(self._node, self._host, self._operators, self._name, self._lease.epoch)
        await self._follow_access()  # before anybody comes
        running = asyncio.create_task(self._host.run(), name="host")
        inbox = Inbox(self._store, self._host)
        self._forwarding = Forwarding(self._node, self._foreign_links)
        carrying = (inbox.run(), self._forwarding.run())
        beside = (self._watch_lease(), self._tell_status(), self._take_requests(), self._measure_lag(), self._watch_accounts(accounts), *carrying)
        tasks = [running, *(asyncio.create_task(work) for work in beside)]
        if config.database_octets_max:
            tasks.append(asyncio.create_task(self._ask_size()))
        stopping, succeeded = asyncio.create_task(stop.wait()), asyncio.create_task(managing.successor.wait())
        try:
            await self._node.listen(StompPeer, AmqpPeer, await self._operators.paused_listeners())
            log.info("Serving epoch %d: recovered in %.2f s, %d ledger rows replayed", self._lease.epoch, time.monotonic() - began, len(found.ledger))
            ready()
            await asyncio.wait({stopping, succeeded, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self._drain(running)
            if managing.successor.is_set() and not stop.is_set():
                await self._lease.name_successor(managing.successor_name)
        finally:
            await managing.close()
            await self._node.close("the broker is stepping down; connect again")
            accounts.close()
            ending: list[asyncio.Task[Any]] = [stopping, succeeded, *tasks]
            for each in ending:
                each.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _drain(self, running: asyncio.Task[None]) -> None:
        """Planned shutdown, or handing over: no new connections; what was taken in is committed and answered; then everyone is told and closed."""
        log.info("Draining %d connections", self._metrics.connections)
        await self._forwarding.close()
        await self._managing.close()
        self._node.wind_down()
        await self._host.flushed()
        to = self._managing.successor_name
        await self._node.close("another node takes over; connect again" if to else "the broker is shutting down; connect again later")
        self._host.stop()
        await running
        await self._operators.retire(self._name)
        try:
            await self._operators.note_node(self._name, "node stop", self._lease.epoch)
        except SpaceExhausted as error:
            log.warning("The audit cannot say that this node stops: %s", error)

    # -- beside the host ----------------------------------------------------------------------------------------------------------------
    async def _watch_lease(self) -> None:
        await self._lease.lost.wait()
        error = CommitLost("the lease is lost")
        self._host.fail(error)  # and with it whoever waits for the host, as a drain does
        raise error

    async def _tell_status(self) -> None:
        forgotten, memory = False, MemoryWatch()
        while True:
            self._space.look()
            self._node.bound_unsettled()
            self._node.follow_certificates()
            await self._accounts.lapse()
            gauges = self._host.gauges()
            memory.look(gauges["memory_level"], gauges["body_memory_octets"], gauges["body_memory_octets_max"])
            metrics = self._metrics.as_dict() | {
                "space_low": self._space.low,
                "space_reason": self._space.reason,
                "space_free_octets": self._space.free_octets,
                "space_database_octets": self._space.database_octets,
                "certificate_end_timestamp_seconds": self._node.certificate_ends_at,
                **gauges,
                **self._forwarding.metrics(),
            }
            listeners, about = self._node.listeners, ABOUT | self._managing.about()
            try:
                if not forgotten:
                    await self._operators.forget_nodes()
                    await self._operators.forget_destroyed()
                    await self._operators.note_node(self._name, "node start", self._lease.epoch)
                    forgotten = True
                await self._operators.write_status(self._name, self._lease.epoch, "active", self._started_at, listeners, metrics, about)
                now = asyncio.get_running_loop().time()
                if refused := [*self._node.refused_logins.take(now), *self._node.refused_uses.take(now)]:
                    await self._operators.note_refused_tries([(each.who, each.remote, each.what, each.address, each.sentence) for each in refused])
            except SpaceExhausted as error:  # operators see the last status grow old
                self._space.exhausted(str(error))
            await asyncio.sleep(STATUS_SECONDS)

    async def _ask_size(self) -> None:
        while True:
            self._space.database_octets = await self._operators.database_octets()
            self._space.look()
            await asyncio.sleep(SIZE_SECONDS)

    async def _take_requests(self) -> None:
        """Operators' and the scheduler's requests become commands, in order, once each."""
        while True:
            self._asked_now.clear()
            waiting = await self._store.control_requests()
            new = [r for r in waiting if r.request not in self._asked]
            self._asked = {r.request for r in waiting}
            for request in [r for r in new if r.verb in NODE_VERBS]:
                self._host.spawn(self._managing.do(request))
            new = [r for r in new if r.verb not in NODE_VERBS]
            for request in new:
                if request.verb == "ledger":
                    self._host.spawn(self._trim_ledger())
                elif request.verb == "connections":
                    request.arguments["origins"] = self._host.origins(request.arguments.get("only"))
                elif request.verb == "producers":
                    request.arguments["produced"] = self._host.producers(request.arguments)
            if new:
                self._host.submit([Control(r.request, r.verb, r.address, r.arguments, r.deadline) for r in new])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked_now.wait(), CONTROL_SECONDS)

    async def _watch_accounts(self, accounts: Accounts) -> None:
        """An account's connections end with it, within the second."""
        while True:
            try:
                async with aclosing(self._operators.account_changes(self._asked_now.set)) as changes:
                    async for name in changes:
                        if name is None or name == ACCESS_CHANGED:
                            await self._follow_access()
                        if name != ACCESS_CHANGED:
                            await accounts.review(name)
            except psycopg.Error as error:
                log.warning("Changes of accounts are not heard of until there is a connection again: %s", error)
            await asyncio.sleep(STATUS_SECONDS)

    async def _follow_access(self) -> None:
        """The rules as the database has them now. One that cannot be, which nobody made by the console, is left out: nothing is allowed by it."""
        rows, groups = await self._operators.access(RULES_MAX)
        rules = [Rule(*row) for row in rows]
        wrong = [rule for rule in rules if rule_problem(rule)]
        if wrong:
            log.warning("%d rules of access are left out; the first: %r: %s", len(wrong), wrong[0].resource[:80], rule_problem(wrong[0]))
        self._host.submit([SetAccess([rule for rule in rules if rule not in wrong], groups)])

    async def _foreign_links(self) -> list[ForeignLink]:
        """Those that can be. What else is in the table nobody made by the console."""
        found = []
        for row in await self._operators.foreign_links():
            name, values = row["name"], {**row["attributes"], "passcode": row["passcode"]}
            if wrong := problem(name, values):
                if name not in self._unusable:
                    log.warning("The foreign link %r is left alone: %s", name[:80], wrong)
                self._unusable[name] = None
            else:
                self._unusable.pop(name, None)
                found.append(ForeignLink(name, **values))
        return found

    async def _trim_ledger(self) -> None:
        """Ledger segments beyond age or size go (R26)."""
        before = int(time.time() * 1000) - self._config.ledger_retention_days * 86_400_000
        try:
            dropped = await self._store.trim_ledger(before, ledger_cap(self._config))
        except SpaceExhausted as error:
            self._space.exhausted(str(error))
            log.warning("The ledger is trimmed when it is asked for the next time: %s", error)
            return
        if dropped:
            log.info("Dropped %d ledger segments beyond their age or size", dropped)

    async def _measure_lag(self) -> None:
        while True:
            due = time.monotonic() + STATUS_SECONDS
            await asyncio.sleep(STATUS_SECONDS)
            self._metrics.loop_lag_seconds = max(time.monotonic() - due, 0.0)

    async def _publish(self, effects: Effects) -> None:
        if effects.statistics:
            await self._operators.write_statistics(effects.statistics)
        if effects.unlisted:
            await self._operators.forget_ended(effects.unlisted)


class _Source:
    """Accounts as the database has them now."""

    def __init__(self, operators: OperatorTables) -> None:
        self._operators = operators

    async def account(self, name: str) -> Account | None:
        row = await self._operators.account(name)
        if row is None:
            return None
        name, salt, iterations, stored_key, server_key, disabled, loopback_only, persistent, nonpersistent, *former, seconds, connections, sessions = row
        previous = Verifier(salt, iterations, *former) if seconds is not None and seconds > 0 else None
        limits = {"previous": previous, "previous_seconds": seconds or 0, "connections_max": connections, "sessions_max": sessions}
        verifier = Verifier(salt, iterations, stored_key, server_key)
        return Account(name, verifier, disabled, loopback_only, LevelMapping(persistent, nonpersistent), **limits)

    async def administered(self, name: str) -> dict[str, object] | None:
        return await self._operators.administered(name)
