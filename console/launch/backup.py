"""A backup of a running service: one instant of the database, in a folder.

    surety.dump      the schema `surety`, as pg_dump writes it (custom format)
    console.dump     the console's tables, operators and their rights, where they are in the schema `public`: the role of the embedded server has the
                     schema's name, and so they are in `surety` there
    manifest.json    when, of what, and how many rows each table had; written last

All of it is seen through one snapshot. A commit that was confirmed before the snapshot is in it, whole, and with it the acknowledgements of its ledger
row; so what was confirmed is there and what was settled does not come back. Tables that come and go with segments are locked against being dropped
before the snapshot is taken: pg_dump alone would fail if one went between its look at the catalogue and its lock. Volatile messages that were spilled
are left out, as after any other start; so are operators' sessions, failed logins and the tasks' queues.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.db import ProgrammingError, connection
from django.db.backends.utils import CursorWrapper

from broker_core import disk

from .child import die_with_us
from .database import own_session
from .postgres import client_programs
from .refusal import CannotStart

FORMAT = 1
MANIFEST, BROKER, CONSOLE = "manifest.json", "surety.dump", "console.dump"
EMPTY = ("django_session", "console_loginattempt", "console_idempotentcall")
"""Tables of the console whose rows are left out: they end with the machine, and a session is as good as a password."""
TASKS = ("kombu_queue", "kombu_message", "queue_id_sequence", "message_id_sequence")
"""Celery's, made anew at every start."""
COMPRESSION = "gzip:1"
"""Measured beside other work: 25 MB/s of bodies that cannot be compressed, twice as much of others; without compression no file is smaller than twice
its bodies, which pg_dump writes in hexadecimal. zstd and lz4 are not in the programs that come with us."""
LOCK_TRIES = 20
"""A table may be dropped between its being listed and locked, a few times a minute."""
TELL_SECONDS = 5.0

Say = Callable[[str], object]
TABLES = """
SELECT relname, relpersistence = 'p' FROM pg_class WHERE relnamespace = to_regnamespace('surety') AND relkind = 'r' ORDER BY relname
"""


def back_up(target: Path, say: Say) -> dict[str, Any]:
    """Write the folder `target`; it is there when it is whole, and not before. Returns its manifest. Raises CannotStart."""
    if target.exists():
        raise CannotStart(f"{target} is there already: name a folder that is not.")
    with unfinished_folder(target) as unfinished:
        try:
            manifest = _write(unfinished, say)
            unfinished.rename(target)
            disk.sync(target.parent)
        except OSError as error:
            raise CannotStart(f"{unfinished} cannot be written: {error.strerror}.") from error
    return manifest


@contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, for as long as nobody else writes a backup of that name: two in one folder would be none. What one that was killed
    has left there goes, and so does whatever is there in the end. Raises CannotStart."""
    folder = target.with_name(f"{target.name}.unfinished")
    lock = -1
    try:
        try:
            if folder.exists():
                left = _lock(folder)
                try:
                    shutil.rmtree(folder)
                finally:
                    os.close(left)
            folder.mkdir(mode=0o700, parents=True)
            lock = _lock(folder)
        except BlockingIOError as error:
            raise CannotStart(f"Another backup is being written to {folder}: wait for it, or name another folder.") from error
        except OSError as error:
            raise CannotStart(f"{folder} cannot be made: {error.strerror}.") from error
        yield folder
    finally:  # whatever ended it, Ctrl-C too
        if lock >= 0:
            if _is_at(folder, lock):
                shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int:
    """A descriptor of the folder; while it is open nobody else has the lock. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(folder, descriptor):
            raise BlockingIOError  # somebody else has made it anew meanwhile
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(folder: Path, descriptor: int) -> bool:
    """That folder is still the one of this name."""
    return folder.exists() and os.fstat(descriptor).st_ino == folder.stat().st_ino


def _write(folder: Path, say: Say) -> dict[str, Any]:
    with own_session() as session, session.cursor() as cursor, programs() as run:
        tables, snapshot = _freeze(cursor)
        cursor.execute("SELECT clock_timestamp()::text, current_setting('server_version'), pg_database_size(current_database())")
        at, version, octets = cursor.fetchone()
        ours = console_tables(cursor)
        say(f"the instant of the backup is {at}; the database has {octets >> 20} MiB")
        left_out = [f"--exclude-table-data={schema}.{name}" for schema in ("surety", "public") for name in EMPTY]
        common = ["pg_dump", *left_out, "--format=custom", f"--compress={COMPRESSION}", f"--snapshot={snapshot}", "--no-unlogged-table-data"]
        began = time.monotonic()
        counts: dict[str, int] = {}
        broker = ["--schema=surety", *(f"--exclude-table=surety.{name}" for name in TASKS)]
        with run([*common, *broker, "--file", str(folder / BROKER)]) as dump:
            for table in tables:
                if table not in (*EMPTY, *TASKS):
                    cursor.execute(f'SELECT count(*) FROM surety."{table}"')
                    (counts[table],) = cursor.fetchone()
                dump.look(lambda: say(f"{_octets(folder / BROKER) >> 20} MiB written, {time.monotonic() - began:.0f} s"))
            dump.finish(lambda: say(f"{_octets(folder / BROKER) >> 20} MiB written, {time.monotonic() - began:.0f} s"))
        public = [name for name, schema in ours.items() if schema == "public"]
        if public:
            with run([*common, *(f'--table=public."{name}"' for name in public), "--file", str(folder / CONSOLE)]) as dump:
                dump.finish(lambda: None)
        cursor.execute("SELECT name FROM surety.migration ORDER BY name")
        migrations = [name for (name,) in cursor.fetchall()]
        manifest = {
            "format": FORMAT, "at": at, "server": version, "migrations": migrations, "tables": counts, "console": ours,
            "octets": {path.name: path.stat().st_size for path in folder.iterdir()}, "restores": summary(cursor, counts),
        }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    for path in folder.iterdir():
        disk.sync(path)
    disk.sync(folder)
    return manifest


def _freeze(cursor: CursorWrapper) -> tuple[list[str], str]:
    """The logged tables of the schema, none of which can be dropped any more, and a snapshot taken after that. The transaction stays open."""
    for _ in range(LOCK_TRIES):
        cursor.execute(TABLES)
        listed = [name for name, _ in cursor.fetchall()]
        if not listed:
            raise CannotStart("There is no broker in this database yet: nothing to back up.")
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            names = ", ".join([f'surety."{name}"' for name in listed])
            cursor.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")  # takes no snapshot yet
            cursor.execute(TABLES)
            seen = dict(cursor.fetchall())
            if seen.keys() <= set(listed):
                cursor.execute("SELECT pg_export_snapshot()")
                return [name for name, logged in seen.items() if logged], cursor.fetchone()[0]
        except ProgrammingError:  # one of them was dropped meanwhile
            pass
        cursor.execute("ROLLBACK")
    raise CannotStart("Tables of the broker came and went each time they were to be locked: try again.")


def console_tables(cursor: CursorWrapper) -> dict[str, str]:
    """The console's tables that are there, and each one's schema."""
    wanted = {*connection.introspection.django_table_names(include_views=False), "django_migrations"}
    cursor.execute("SELECT tablename, schemaname FROM pg_tables WHERE schemaname IN ('public', 'surety') ORDER BY tablename, schemaname")
    return {name: schema for name, schema in cursor.fetchall() if name in wanted}


def summary(cursor: CursorWrapper, counts: dict[str, int]) -> dict[str, int]:
    """What a person wants to know of it."""
    cursor.execute("SELECT count(*) FROM surety.destination WHERE destroyed_at IS NULL")
    (destinations,) = cursor.fetchone()
    cursor.execute("SELECT count(*) FROM surety.subscription WHERE destroyed_at IS NULL AND name <> '' AND (destination = 0 OR client_id <> '' OR shared)")
    (subscriptions,) = cursor.fetchone()
    cursor.execute("SELECT count(*) FROM auth_user")
    (operators,) = cursor.fetchone()
    stored = sum(count for name, count in counts.items() if name.startswith("message_") or name == "retained")
    return {
        "destinations": destinations, "durable subscriptions": subscriptions, "message rows, settled ones among them": stored,
        "delayed messages": counts["scheduled"], "messages in the inbox": counts["inbox"], "large bodies": counts["body"],
        "client accounts": counts["account"], "operators": operators,
    }  # fmt: skip


def _octets(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# -- sessions and programs ----------------------------------------------------------------------------------------------------------------
class Program:
    """One of PostgreSQL's programs, at work."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process, self._name, self._said = process, name, said
        self._told = time.monotonic()

    def look(self, tell: Callable[[], object]) -> None:
        """Tell now and then how far it is. Raises CannotStart if it has failed."""
        if self.process.poll():
            raise CannotStart(f"{self._name} failed: {self.complaint()}")
        if time.monotonic() - self._told > TELL_SECONDS:
            self._told = time.monotonic()
            tell()

    def finish(self, tell: Callable[[], object]) -> None:
        """The same until it has done its work."""
        while self.process.poll() is None:
            self.look(tell)
            time.sleep(0.05)
        self.look(tell)

    def complaint(self) -> str:
        """What it said, for a sentence."""
        return " ".join(self._said.read_text("utf-8", "replace")[-2000:].split())


Run = Callable[..., Any]


@contextmanager
def programs() -> Iterator[Run]:
    """Gives what runs one of PostgreSQL's programs on our database. No password appears among its arguments, where every account could read it: how
    to connect is in a file that only we can read."""
    folder = client_programs()
    with tempfile.TemporaryDirectory(prefix="surety-") as aside:
        service = Path(aside, "service")
        service.write_text("[surety]\n" + "".join(f"{name}={value}\n" for name, value in _place().items()))
        # The rest of the environment is theirs, too: libpq finds certificates and a password file by it, as it does for us.
        ours = ["/usr/bin/env", f"PGSERVICEFILE={service}", "PGSERVICE=surety", "PGAPPNAME=surety backup", "LC_ALL=C"]

        @contextmanager
        def run(command: list[str], **how: Any) -> Iterator[Program]:
            name, *arguments = command
            said = Path(aside, f"{name}.said")
            arrange = die_with_us(signal.SIGKILL)
            with said.open("wb") as output:
                process: Any = subprocess.Popen(
                    [*ours, str(folder / name), *arguments],
                    stderr=output,
                    process_group=0,
                    preexec_fn=arrange,  # noqa: PLW1509 - no threads run here
                    **({"stdin": subprocess.DEVNULL} | how),
                )
            try:
                yield Program(name, process, said)
            finally:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None and not pipe.closed:
                        with suppress(BrokenPipeError):  # it ended with something unread
                            pipe.close()

        yield run


def _place() -> dict[str, str]:
    """Of the database, in libpq's words."""
    known = connection.settings_dict
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {word: known[name] for word, name in named.items()}
    given |= {name: value for name, value in known["OPTIONS"].items() if name not in ("pool", "application_name")}
    return {name: str(value) for name, value in given.items() if value}
