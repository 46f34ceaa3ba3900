"""A backup becomes the broker of a database: in one transaction, by which everything that was there goes and everything of the backup is there, or nothing
has happened (see backup).

What the broker gave out between the backup and its end is unknown here, and must not be given out again: message identifiers, and the names of
temporary destinations, which others may still know. Both are made of numbers that grow; so these go on from the present second, shifted far enough
that no broker has counted so far in the time since 1970.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, BinaryIO

from django.db.backends.utils import CursorWrapper

from .backup import BROKER, CONSOLE, FORMAT, MANIFEST, Program, Run, Say, console_tables, programs
from .database import own_session
from .refusal import CannotStart

LEASE_CLASS = 1398100549
"""The class of the advisory lock that is the lease, as in the view surety.lease_held."""
LOCK_SECONDS = 10
"""Others who read the tables, such as an open console, get so long to end."""
SHIFT = 24
"""2^24 message identifiers a second, on the average since 1970: 280 times what a node can do."""
CHUNK = 1 << 20
PREAMBLE_OCTETS = 1 << 16
UNKNOWN_BEFORE_17 = b"SET transaction_timeout = 0;"
"""pg_restore says it to every server."""
NOT_EMPTY = """
SELECT EXISTS (SELECT FROM surety.destination WHERE address <> 'queue/mq.sys.dmq' AND destroyed_at IS NULL)
    OR EXISTS (SELECT FROM surety.alias) OR EXISTS (SELECT FROM surety.lane) OR EXISTS (SELECT FROM surety.scheduled) OR EXISTS (SELECT FROM surety.inbox)
    OR EXISTS (SELECT FROM surety.prepared) OR EXISTS (SELECT FROM surety.policy) OR EXISTS (SELECT FROM surety.administered)
    OR EXISTS (SELECT FROM surety.foreign_link)
"""


def read_manifest(folder: Path, known_migrations: list[str]) -> dict[str, Any]:
    """Raises CannotStart if the folder is no whole backup that this version understands."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        octets = {name: (folder / name).stat().st_size for name in manifest["octets"]}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CannotStart(f"{folder} is no backup of this service: {error}.") from error
    if manifest.get("format") != FORMAT or not set(manifest["migrations"]) <= set(known_migrations):
        raise CannotStart(f"{folder} was written by a newer version of this service: restore it with that one.")
    if octets != manifest["octets"]:
        raise CannotStart(f"{folder} is not whole: its files have {octets}, they had {manifest['octets']} octets.")
    return manifest


def restore(folder: Path, manifest: dict[str, Any], say: Say, *, replace: bool) -> None:
    """Put it in place of what the database holds of a broker. Raises CannotStart; nothing has changed then."""
    with own_session() as session, session.cursor() as cursor:
        _check(cursor, replace=replace)
        old = console_tables(cursor)
    goes = sorted(name for name, schema in old.items() if schema == "public")
    loading = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", "--file=-"]
    with programs() as run, run(loading, stdin=PIPE, stdout=DEVNULL) as psql:
        given = psql.process.stdin
        assert given is not None
        try:
            given.write(_before(goes))
            for name in (BROKER, CONSOLE):
                if name in manifest["octets"]:
                    _copy(folder / name, run, given, psql, say)
            given.write(_after(manifest["tables"], sorted(manifest["console"]), int(time.time())))
            given.close()
        except BrokenPipeError:
            psql.process.wait()
        psql.finish(lambda: say("indexes, counts"))


def _check(cursor: CursorWrapper, *, replace: bool) -> None:
    cursor.execute("SELECT to_regclass('surety.lease_held') IS NOT NULL")
    if not cursor.fetchone()[0]:
        return
    cursor.execute("SELECT bool_or(held) FROM surety.lease_held")
    if cursor.fetchone()[0]:
        raise CannotStart("A node holds the lease of this database: stop all nodes first.")
    cursor.execute(NOT_EMPTY)
    if cursor.fetchone()[0] and not replace:
        there = "destinations, messages, aliases, settings by pattern, administered objects or links"
        raise CannotStart(f"The broker of this database has {there}: --replace throws them away for those of the backup.")


def _before(tables: list[str]) -> bytes:
    drops = "".join(f'DROP TABLE IF EXISTS public."{name}" CASCADE;\n' for name in tables)
    return f"""
SET lock_timeout = '{LOCK_SECONDS}s';
SET client_min_messages = warning;
DO $$ BEGIN
    IF NOT pg_try_advisory_xact_lock({LEASE_CLASS}, 0) THEN
        RAISE EXCEPTION 'a node holds the lease of this database: stop all nodes first';
    END IF;
END $$;
DROP SCHEMA IF EXISTS surety CASCADE;
{drops}""".encode()


def _copy(archive: Path, run: Run, given: BinaryIO, psql: Program, say: Say) -> None:
    """The archive as statements. Owners and rights are those of the database that it comes to."""
    done = 0
    with run(["pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "--file=-", str(archive)], stdout=PIPE) as reading:
        taken = reading.process.stdout
        assert taken is not None
        given.write(taken.read(PREAMBLE_OCTETS).replace(UNKNOWN_BEFORE_17, b""))
        while octets := taken.read(CHUNK):
            given.write(octets)
            done += len(octets)
            psql.look(partial(say, f"{done >> 20} MiB of statements done"))
        reading.finish(lambda: None)


def _after(counts: dict[str, int], console: list[str], second: int) -> bytes:
    """What a restored broker needs to be another one than that of the backup, and whether everything is there."""
    checks = "\n".join(
        f"""    SELECT count(*) INTO found FROM surety."{table}";
    IF found <> {count} THEN RAISE EXCEPTION 'surety.{table} has % rows, it had {count}', found; END IF;"""
        for table, count in counts.items()
    )
    return f"""
RESET search_path;
DO $$ DECLARE found int8; BEGIN
{checks}
END $$;
DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY ARRAY[{", ".join(f"'{name}'" for name in console)}]::text[] LOOP
        IF current_schema() <> 'surety' AND to_regclass(format('surety.%I', name)) IS NOT NULL THEN
            EXECUTE format('ALTER TABLE surety.%I SET SCHEMA %I', name, current_schema());  -- of the embedded server, here by another role
        END IF;
    END LOOP;
END $$;
UPDATE surety.lease SET epoch = greatest(epoch, {second}), holder_pid = NULL, node = NULL, acquired_at = NULL, heartbeat_at = NULL;
UPDATE surety.checkpoint SET sequence = greatest(sequence, {second << SHIFT});
DO $$ BEGIN PERFORM setval('surety.inbox_entry_seq', greatest(nextval('surety.inbox_entry_seq'), {second << SHIFT})); END $$;
DELETE FROM surety.node_status;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA surety FROM PUBLIC;
""".encode()
