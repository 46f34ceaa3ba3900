"""A distributed transaction over a message and a row in another PostgreSQL, by real processes: whoever is killed between two of its steps, in the end both have
done it or neither, and the message is there exactly once (checklist items 63 to 66)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from broker_core import control
from broker_core.client import BranchState, ConnectionFactory, JMSException, Queue, XASession
from broker_core.client.aio import XAConnectionFactory
from tests.acceptance import managed_transfer
from tests.acceptance.coordinator import (
    BROKER_COMMITTED,
    BROKER_PREPARED,
    DATABASE_COMMITTED,
    DATABASE_PREPARED,
    DECIDED,
    FORMAT,
    STEPS,
    TABLE,
    WORKED,
    Decisions,
    connected,
    fill,
    name_in,
    queues,
    recover,
    transfer,
)
from tests.acceptance.python_client import texts
from tests.support.postgres import Server
from tests.support.service import REPOSITORY, Service, await_true

UP_SECONDS_MAX = 60
TRANSFERS, KILLED = 1_000, 12
DECIDED_BY = (DECIDED, BROKER_COMMITTED, DATABASE_COMMITTED)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Server]:
    """The server of the other database: it can prepare transactions."""
    server = Server(max_prepared_transactions="40")
    server.start()
    server.execute(TABLE)
    yield server
    server.stop()


class Trial:
    """One kind of accident: transfers, and what became of them."""

    def __init__(self, kind: str, service: Service, elsewhere: Server, folder: Path) -> None:
        self.kind, self.service, self.dsn = kind, service, elsewhere.dsn("postgres")
        self.log, self.errors = folder / "decisions", folder / "errors"
        self.decisions = Decisions(self.log)

    def names(self, steps: tuple[str, ...] = STEPS) -> dict[str, str]:
        """Of a transfer for each step."""
        names = {step: f"{self.kind}.{step}" for step in steps}
        fill(self.service.stomp_port, list(names.values()))
        return names

    @contextlib.contextmanager
    def transfer_until(self, step: str, name: str) -> Iterator[Iterator[str]]:
        """One of this process, which goes on when it is asked for its next step."""
        with contextlib.ExitStack() as stack:
            connection = connected(self.service.stomp_port)
            stack.callback(connection.close)
            database = psycopg.connect(self.dsn)
            stack.callback(database.close)
            steps = transfer(connection.create_xa_session(), database, self.decisions, name)
            while next(steps) != step:
                pass
            yield steps

    def program(self, how: str, name: str, module: str = "coordinator") -> subprocess.Popen[bytes]:
        """One that kills itself after a step, or makes so many transfers."""
        command = [sys.executable, "-m", f"tests.acceptance.{module}", str(self.service.stomp_port), self.dsn, str(self.log), name, how]
        with self.errors.open("a") as errors:
            return subprocess.Popen(command, cwd=REPOSITORY, stderr=errors)

    def is_killed_after_each_step(self, names: dict[str, str], module: str = "coordinator") -> None:
        programs = [self.program(step, name, module) for step, name in names.items()]
        for program in programs:
            assert program.wait(UP_SECONDS_MAX) == -signal.SIGKILL, self.errors.read_text()

    def recovers(self) -> list[str]:
        """What the transaction manager does when it is there again."""
        with self._session() as session, psycopg.connect(self.dsn) as database:
            return recover(session, database, self.decisions, f"{self.kind}.")

    @contextlib.contextmanager
    def _session(self) -> Iterator[XASession]:
        connection = connected(self.service.stomp_port)
        try:
            yield connection.create_xa_session()
        finally:
            connection.close()

    def prepared(self) -> list[str]:
        with self._session() as session:
            names = [name_in(xid.global_transaction_id.decode("ascii", "replace")) for xid in session.tpc_recover()]
        return [name for name in names if name.startswith(f"{self.kind}.")]

    def check_queues(self, expected: dict[Queue, list[str]]) -> None:
        """This is what they have to give now, and no more: what is sent then comes next."""
        factory = ConnectionFactory(address_list=f"127.0.0.1:{self.service.stomp_port}")
        with factory.create_connection() as connection, connection.create_session() as session:
            for queue, bodies in expected.items():
                with session.create_consumer(queue) as consumer:
                    assert texts(consumer, len(bodies)) == bodies, queue
                    session.create_producer(queue).send("the end")
                    assert texts(consumer, 1) == ["the end"], queue

    def check_withheld(self, names: set[str]) -> None:
        """What they send is not to be seen, and what they have received is given to nobody."""
        self.check_queues({queue: [] for name in names for queue in queues(name)})

    def rows(self) -> set[str]:
        with psycopg.connect(self.dsn, autocommit=True) as database:
            return {name for (name,) in database.execute("SELECT name FROM transfer WHERE name LIKE %s", (f"{self.kind}.%",))}

    def check(self, names: list[str], committed: set[str]) -> None:
        """The transfers in `committed` are done on both sides, the others on neither; each message is there once."""
        assert self.rows() == committed
        self.check_queues({
            queue: [name] if is_target == (name in committed) else []
            for name in names
            for is_target, queue in enumerate(queues(name))
        })


def test_a_coordinator_that_is_killed_after_any_step_leaves_both_or_neither(service: Service, elsewhere: Server, tmp_path: Path) -> None:
    trial = Trial("client", service, elsewhere, tmp_path)
    names = trial.names()
    trial.is_killed_after_each_step(names)
    still = {names[step] for step in (BROKER_PREPARED, DATABASE_PREPARED, DECIDED)}
    assert set(trial.prepared()) == still
    trial.check_withheld(still)
    found = trial.recovers()
    assert {name.removesuffix(" broker") for name in found if name.endswith(" broker")} == still
    assert {name for name in found if name.endswith(" database")} == {
        f"{names[step]} database" for step in (DATABASE_PREPARED, DECIDED, BROKER_COMMITTED)
    }
    assert trial.recovers() == []
    trial.check(list(names.values()), {names[step] for step in DECIDED_BY})


def test_a_data_manager_and_another_that_are_killed_between_the_votes_and_the_last_end_leave_both_or_neither(
    service: Service, elsewhere: Server, tmp_path: Path
) -> None:
    """An XADataManager in a transaction of the package `transaction`; its party is a database that prepares."""
    trial = Trial("managed", service, elsewhere, tmp_path)
    names = trial.names(managed_transfer.STEPS)
    trial.is_killed_after_each_step(names, "managed_transfer")
    still = {name for step, name in names.items() if step != BROKER_COMMITTED}
    assert set(trial.prepared()) == still
    trial.check_withheld(still)
    trial.recovers()
    assert trial.recovers() == []
    trial.check(list(names.values()), {names[step] for step in DECIDED_BY})


def test_a_node_that_is_killed_after_any_step_is_waited_for_and_both_or_neither_are_done(
    mortal: Service, elsewhere: Server, tmp_path: Path
) -> None:
    trial = Trial("node", mortal, elsewhere, tmp_path)
    names = trial.names()
    with contextlib.ExitStack() as stack:
        under_way = {step: stack.enter_context(trial.transfer_until(step, name)) for step, name in names.items()}
        pid = mortal.kill("node")
        await_true(lambda: mortal.pid("node") not in (None, pid), UP_SECONDS_MAX, "no other node came")
        still = {names[step] for step in (BROKER_PREPARED, DATABASE_PREPARED, DECIDED)}
        assert set(trial.prepared()) == still, "what is prepared is, and what was only worked on is not"
        trial.check_withheld(still)
        left = {step: list(steps) for step, steps in under_way.items()}
    assert left == {step: [] if step == WORKED else list(STEPS[STEPS.index(step) + 1 :]) for step in STEPS}
    assert trial.recovers() == []
    trial.check(list(names.values()), {name for step, name in names.items() if step != WORKED})


def test_what_an_administrator_has_ended_by_hand_is_told_until_it_is_forgotten(service: Service) -> None:
    connection = connected(service.stomp_port)
    with contextlib.closing(connection), connection.create_xa_session() as session:
        xid = session.xid(FORMAT, "by hand")
        session.tpc_begin(xid)
        session.create_producer(Queue("xa.by.hand")).send("x")
        session.tpc_prepare()
        with service.database() as database, database.cursor() as cursor:
            (branch,) = database.execute("SELECT branch FROM surety.prepared WHERE xid = %s", (str(xid),)).fetchone() or (0,)
            request = control.request(cursor, "commit", arguments={"branch": branch}, requested_by="olga")
            await_true(lambda: control.answer(cursor, request) is not None, UP_SECONDS_MAX, "nobody answers")
        (found,) = [each for each in session.tpc_recover() if each == xid]
        assert found.state is BranchState.HEURISTICALLY_COMMITTED
        with pytest.raises(JMSException, match=r"say tpc_forget\(xid\)") as told:
            session.tpc_commit()
        assert told.value.error_code == "XA_HEURCOM"
        session.tpc_forget(xid)
        assert xid not in session.tpc_recover()
        with pytest.raises(JMSException, match=r"tpc_recover\(\) names those that are there") as told:
            session.tpc_commit(xid)
        assert told.value.error_code == "XAER_NOTA"


async def test_with_asyncio_what_is_prepared_is_committed_after_the_kill_of_the_node(mortal: Service) -> None:
    queue = Queue("xa.asyncio")
    factory = XAConnectionFactory(
        address_list=f"127.0.0.1:{mortal.stomp_port}", reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.1
    )
    async with factory.create_xa_connection() as connection, connection.create_xa_session() as session:
        for name in ("committed", "rolled back"):
            await session.tpc_begin(session.xid(FORMAT, f"asyncio {name}"))
            await session.create_producer(queue).send(name)
            await session.tpc_prepare()
            await asyncio.to_thread(mortal.kill, "node")
            with contextlib.suppress(JMSException):  # by the connection that is being lost
                await session.tpc_recover()
            assert str(session.branch) in [str(xid) for xid in await session.tpc_recover()]
            await (session.tpc_commit() if name == "committed" else session.tpc_rollback())
        async with connection.create_session() as reading, reading.create_consumer(queue) as consumer:
            await reading.create_producer(queue).send("the end")
            messages = [await consumer.receive(10) for _ in range(2)]
            assert [message and message.body for message in messages] == ["committed", "the end"]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["node", "postgres"])
def test_so_it_is_if_coordinator_and_broker_are_killed_one_after_the_other(mortal: Service, elsewhere: Server, tmp_path: Path, role: str) -> None:
    trial = Trial(f"both-{role}", mortal, elsewhere, tmp_path)
    names = trial.names()
    trial.is_killed_after_each_step(names)
    for _ in range(2):
        mortal.kill(role)
        time.sleep(0.5)
        mortal.await_ready(UP_SECONDS_MAX)
    trial.recovers()
    mortal.kill(role)
    time.sleep(0.5)
    mortal.await_ready(UP_SECONDS_MAX)
    assert trial.recovers() == []
    trial.check(list(names.values()), {names[step] for step in DECIDED_BY})


@pytest.mark.slow
def test_so_it_is_if_the_other_database_crashes(service: Service, elsewhere: Server, tmp_path: Path) -> None:
    trial = Trial("elsewhere", service, elsewhere, tmp_path)
    names = trial.names()
    with contextlib.ExitStack() as stack:
        under_way = {step: stack.enter_context(trial.transfer_until(step, name)) for step, name in names.items()}
        elsewhere.crash()
        for step, steps in under_way.items():
            if step in (DECIDED, BROKER_COMMITTED, DATABASE_PREPARED):
                with pytest.raises(psycopg.OperationalError):
                    list(steps)
            else:
                list(steps)
    trial.recovers()
    assert trial.recovers() == []
    trial.check(list(names.values()), {names[step] for step in (DATABASE_PREPARED, *DECIDED_BY)})


@pytest.mark.slow
def test_transfers_are_done_once_while_everybody_is_killed_at_any_moment(mortal: Service, elsewhere: Server, tmp_path: Path) -> None:
    """Killed not between the steps but within them: answers are lost, and what was done is not known before somebody asks."""
    trial = Trial("any", mortal, elsewhere, tmp_path)
    work = {worker: [f"{worker}.{number}" for number in range(TRANSFERS)] for worker in ("any.0", "any.1", "any.2")}
    for worker, names in work.items():
        fill(mortal.stomp_port, names, worker)
    chance, killed = random.Random(7), 0
    running = {worker: trial.program(str(TRANSFERS), worker) for worker in work}
    while (left := [worker for worker, program in running.items() if program.poll() != 0]) and killed < KILLED:
        goal = trial.decisions.count() + chance.randint(1, 30)
        await_true(lambda goal=goal: trial.decisions.count() >= goal, UP_SECONDS_MAX, f"nothing is done: {trial.errors.read_text()}", pause=0.01)
        worker = chance.choice(left)
        if chance.random() < 0.3:
            mortal.kill("node")
            continue
        running[worker].kill()
        killed += 1
        if running[worker].wait():
            running[worker] = trial.program(str(TRANSFERS), worker)
    trial.decisions.end.touch()
    for worker in work:
        while running[worker].wait(UP_SECONDS_MAX):
            running[worker] = trial.program(str(TRANSFERS), worker)
    mortal.await_ready(UP_SECONDS_MAX)
    assert killed == KILLED, f"only {killed} were killed: they have too little to do"
    await_true(lambda: trial.recovers() == [], UP_SECONDS_MAX, "there is always something left", pause=0.5)
    done = trial.rows()
    trial.check_queues({
        queue: [name for name in names if (name in done) == is_target]
        for worker, names in work.items()
        for is_target, queue in enumerate(queues(worker))
    })
