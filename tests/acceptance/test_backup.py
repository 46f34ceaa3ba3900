"""Backup and restore by real processes: under load, into another home, into another server, and what is refused or interrupted leaves nothing behind."""

from __future__ import annotations

import itertools
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import psycopg
import pytest

from tests.acceptance import levels
from tests.acceptance.commands import done, refused
from tests.acceptance.levels_table import Row, broken
from tests.acceptance.reading import read_all
from tests.support.clients import Connection, reconnect
from tests.support.postgres import Server
from tests.support.service import REPOSITORY, Service, await_true

BACKLOG = 3_000
WINDOW = 100
BODY = b"x" * 1_000
Kept = tuple[Path, "Load", set[int], set[int], str]
QUEUE, DEAD = "/queue/backup", "/queue/mq.sys.dmq"


class Load:
    """A producer that waits for its receipts, and a consumer that acknowledges with receipts; what each of them knows at any moment."""

    def __init__(self, port: int) -> None:
        self.confirmed: set[int] = set()
        self.acknowledging: set[int] = set()
        self.settled: set[int] = set()
        self.sent = 0
        self._port, self._stop = port, threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        await_true(lambda: len(self.confirmed) > BACKLOG and len(self.settled) > 500, 60, "there is no traffic")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        with Connection(self._port) as connection:
            while not self._stop.is_set():
                first = self.sent
                self.sent += WINDOW
                for number in range(first, self.sent):
                    connection.send(QUEUE, b"%d " % number + BODY, {"persistent": "true", "receipt": str(number)})
                for _ in range(WINDOW):
                    self.confirmed.add(int(connection.expect("RECEIPT").headers["receipt-id"]))

    def _consume(self) -> None:
        """Half as fast: a backlog grows."""
        with Connection(self._port) as connection:
            connection.subscribe(QUEUE, prefetch=WINDOW)
            while not self._stop.is_set():
                frame = connection.expect("MESSAGE")
                number = int(frame.body.split()[0])
                self.acknowledging.add(number)
                connection.confirmed("ACK", {"id": frame.headers["ack"]})
                self.settled.add(number)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A backup taken under load; the load, what was confirmed and what was settled before it began; and what the command said."""
    folder = tmp_path_factory.mktemp("backups") / "first"
    with Service(environment=levels.ENVIRONMENT | {"SURETY_SEGMENT_ROWS_MAX": "1000"}) as service:
        levels.send_all(service, Row.BACKUP, levels.MANY, levels.LARGE)
        with service.database() as session:
            session.execute("SELECT surety.send('/queue/large', %s)", (bytes(range(256)) * 8_193,))
            session.execute("SELECT surety.send('/queue/later', 'm', delay => '1 hour')")
            session.execute("SELECT surety.send('/temp-queue/no-1-1.r', 'dead')")
        with Load(service.stomp_port) as load:
            confirmed, settled = set(load.confirmed), set(load.settled)
            said = done(service, "backup", str(folder))
            time.sleep(1)
        assert len(load.confirmed) > len(confirmed) and len(load.settled) > len(settled), "nothing moved during the backup"
        stolen = refused(service, "restore", str(folder))
        assert "already runs" in stolen
    return folder, load, confirmed, settled, said


def test_a_backup_under_load_is_one_instant(kept: Kept) -> None:
    folder, load, confirmed, settled, said = kept
    assert "Backed up" in said and "1 large bodies" in said and "1 delayed messages" in said
    assert sorted(path.name for path in folder.parent.iterdir()) == ["first"]
    assert folder.stat().st_mode & 0o077 == 0
    other = Service()
    told = done(other, "restore", str(folder))
    assert "Restored" in told and "1 delayed messages" in told
    with Service(home=other.home) as service:
        with reconnect(service.stomp_port) as connection:
            found = [int(frame.body.split()[0]) for frame in read_all(connection, QUEUE)]
            assert len(found) == len(set(found)) and found == sorted(found)
            assert confirmed - load.acknowledging <= set(found), "what was confirmed before the backup is there"
            assert not settled & set(found), "what was settled before the backup does not come back"
            assert set(found) <= set(range(load.sent))
            missing = set(range(max(found) + 1)) - set(found)
            assert missing <= load.acknowledging, "an instant: whatever is not there before its last message was acknowledged"
            assert [frame.body for frame in read_all(connection, "/queue/large")] == [bytes(range(256)) * 8_193]
            connection.subscribe(DEAD)
            assert connection.expect("MESSAGE").body == b"dead"
        of_levels = levels.kept(service, Row.BACKUP, levels.MANY)
        assert not [key for key in broken(of_levels) if key[0] is Row.BACKUP], of_levels
        with service.database() as session:
            assert session.execute("SELECT count(*) FROM surety.scheduled").fetchone() == (1,)
            assert session.execute("SELECT count(*) FROM auth_user WHERE username = 'operator'").fetchone() == (1,)


@pytest.mark.slow
def test_no_identifier_is_given_a_second_time_after_a_restore(kept: Kept) -> None:
    folder = kept[0]
    given: list[set[str]] = []
    for _ in range(2):
        home = Service()
        done(home, "restore", str(folder))
        with Service(home=home.home) as service, reconnect(service.stomp_port) as connection, service.database() as session:
            connection.confirmed("SEND", {"destination": "/queue/new", "persistent": "true"}, b"m")
            (by_sql,) = session.execute("SELECT surety.send('/queue/new', 'm')").fetchone() or ("",)
            await_true(lambda session=session: session.execute("SELECT count(*) FROM surety.inbox").fetchone() == (0,), 10, "it is not taken")
            frames = read_all(connection, "/queue/new")
            assert by_sql in {frame.headers["message-id"] for frame in frames}
            given.append({frame.headers["message-id"] for frame in frames})
    assert not given[0] & given[1]


@pytest.mark.slow
def test_a_broker_with_messages_is_replaced_only_if_that_is_said(kept: Kept) -> None:
    folder, home = kept[0], Service()
    with Service(home=home.home) as service, Connection(service.stomp_port) as connection:
        connection.confirmed("BEGIN", {"xid": "1.aa."})
        connection.confirmed("SEND", {"destination": "/queue/mine", "transaction": "1.aa.", "persistent": "true"}, b"m")
        connection.confirmed("COMMIT", {"xid": "1.aa.", "phase": "prepare"})  # all that there is
    assert "--replace" in refused(home, "restore", str(folder))
    with Service(home=home.home) as service, reconnect(service.stomp_port) as connection:
        connection.confirmed("COMMIT", {"xid": "1.aa.", "phase": "two"})
        assert [frame.body for frame in read_all(connection, "/queue/mine")] == [b"m"]
        connection.confirmed("SEND", {"destination": "/queue/mine", "persistent": "true"}, b"m")
    done(home, "restore", str(folder), "--replace")
    with Service(home=home.home) as service, reconnect(service.stomp_port) as connection:
        assert read_all(connection, "/queue/mine") == []
        assert len(read_all(connection, "/queue/large")) == 1


def test_a_backup_that_is_not_whole_changes_nothing(kept: Kept, tmp_path: Path) -> None:
    folder, home, bad = kept[0], Service(), tmp_path / "bad"
    assert "is no backup" in refused(home, "restore", str(tmp_path))
    bad.mkdir()
    octets, manifest = (folder / "surety.dump").read_bytes(), json.loads((folder / "manifest.json").read_text())
    (bad / "surety.dump").write_bytes(octets[: len(octets) // 2])
    (bad / "manifest.json").write_text(json.dumps(manifest))
    assert "is not whole" in refused(home, "restore", str(bad))
    manifest["octets"]["surety.dump"] //= 2
    (bad / "manifest.json").write_text(json.dumps(manifest))
    assert "failed" in refused(home, "restore", str(bad))
    (bad / "surety.dump").write_bytes(octets)
    manifest["octets"]["surety.dump"] = len(octets)
    manifest["tables"]["destination"] += 1
    (bad / "manifest.json").write_text(json.dumps(manifest))
    assert "surety.destination has" in refused(home, "restore", str(bad))
    manifest["migrations"].append("9999_of_the_future.sql")
    (bad / "manifest.json").write_text(json.dumps(manifest))
    assert "newer version" in refused(home, "restore", str(bad))
    assert "nothing to back up" in refused(home, "backup", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def audited(service: Service, what: str) -> list[tuple[str, str, str | None]]:
    """Who did it, with which folder, and why nothing came of it."""
    with service.database() as session:
        asked = "SELECT who, arguments ->> 'folder', result ->> 'refused' FROM surety.audit WHERE what = %s ORDER BY entry"
        return session.execute(asked, [what]).fetchall()


def waits(service: Service) -> bool:
    """A backup, for a table that is locked."""
    with psycopg.connect(service.dsn(superuser=True)) as session:
        asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE surety.%'"
        return bool(session.execute(asked).fetchall())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_backup_that_is_stopped_leaves_nothing(service: Service, tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "stopped"
    with psycopg.connect(service.dsn(superuser=True)) as blocker:
        blocker.execute("LOCK TABLE surety.control_request IN ACCESS EXCLUSIVE MODE")  # it waits for this
        process = subprocess.Popen([sys.executable, "manage.py", "backup", str(target)], cwd=REPOSITORY, env=service.environment(), stderr=subprocess.PIPE)
        await_true(lambda: waits(service), 30, "it has not begun")
        os.kill(process.pid, number)
        complaint = process.communicate(timeout=20)[1].decode()
    assert process.returncode == (130 if number == signal.SIGINT else 143), complaint
    assert "Traceback" not in complaint
    assert list(tmp_path.iterdir()) == []
    assert audited(service, "backup")[-1] == (f"system account {pwd.getpwuid(os.getuid()).pw_name}", str(target), "stopped by hand")


@pytest.mark.slow
def test_a_database_of_ones_own_is_restored_to_and_backed_up(kept: Kept, tmp_path: Path) -> None:
    """The console's tables are elsewhere there: its role has another name than the schema."""
    server, names = Server(), itertools.count()
    server.start()
    try:
        urls = [f"postgresql://postgres@/{server.create_database()}?host={server.sockets}" for _ in range(2)]
        places = [Service(environment={"DATABASE_URL": url}) for url in urls]
        for place in places:  # each with a file of its own: what the first backs up the second restores
            done(place, "restore", str(kept[0] if place is places[0] else tmp_path / "0"))
            with Service(environment={"DATABASE_URL": place.dsn()}) as service:
                with service.database() as session:
                    assert session.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'auth_user'").fetchall() == [("public",)]
                    assert session.execute("SELECT count(*) FROM public.auth_user WHERE username = 'operator'").fetchone() == (1,)
                assert "holds the lease" in refused(service, "restore", str(kept[0]), "--replace")
                assert "holds the lease" in str(audited(service, "restore")[-1][2])
                assert audited(service, "restore")[0][2] is None
                done(service, "backup", str(tmp_path / str(next(names))))
                assert [row[2] for row in audited(service, "backup")][-1] is None
                with reconnect(service.stomp_port) as connection:
                    assert len(read_all(connection, "/queue/large")) == 1
        assert (tmp_path / "0" / "console.dump").exists()
    finally:
        server.stop()
