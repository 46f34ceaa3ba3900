"""The embedded PostgreSQL, really initialised and started: whom it lets in, where it lives, what a broken start leaves."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.config import BrokerConfig
from console.launch import account, child, postgres, supervisor
from console.launch.account import Account, can_enter, database_account
from console.launch.child import Role
from console.launch.home import take_home
from console.launch.postgres import SOCKET_NAME, SOCKET_PATH_OCTETS_MAX, EmbeddedPostgres
from console.launch.refusal import CannotStart
from console.launch.supervisor import Supervisor
from console.launch.tuning import settings
from tests.tidy.rules import REPOSITORY

PATIENCE_SECONDS = 30
ROOT = os.geteuid() == 0


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that everyone may pass through; pytest's own is closed to PostgreSQL's account when root runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="surety-test-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def running(server: EmbeddedPostgres) -> Iterator[None]:
    switch = {"user": server.account.user, "group": server.account.group, "extra_groups": []} if server.account.switches else {}
    with subprocess.Popen(server.command(), stderr=subprocess.DEVNULL, **switch) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not server.is_ready():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            yield
        finally:
            process.send_signal(signal.SIGINT)


def ask(server: EmbeddedPostgres, statement: str, role: str = "surety", **switch) -> subprocess.CompletedProcess[str]:
    command = [server.programs / "psql", "-XAt", "-h", server.socket_folder, "-U", role, "-d", "surety", "-c", statement]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", **switch)


def test_the_first_start_makes_a_database_of_the_brokers_own(home: Path) -> None:
    server = EmbeddedPostgres(home)
    server.prepare()
    with running(server):
        shown = [ask(server, f"SHOW {name}").stdout.strip() for name in ("fsync", "full_page_writes", "listen_addresses", "is_superuser")]
        assert shown == ["on", "on", "", "off"]
        assert ask(server, "SELECT count(*) FROM pg_stat_io").returncode == 0
        assert ask(server, "CREATE TABLE kept (n int)").returncode == 0
    again = EmbeddedPostgres(home)
    again.prepare()
    with running(again):
        assert ask(again, "SELECT count(*) FROM kept").stdout.strip() == "0"


def test_only_the_account_of_the_supervisor_gets_in(home: Path) -> None:
    server = EmbeddedPostgres(home)
    server.prepare()
    assert server.socket_folder.stat().st_mode & 0o777 == 0o700
    assert (home / "postgres" / "data").stat().st_mode & 0o077 == 0
    with running(server):
        if ROOT:
            for name in {server.account.name, "nobody"}:
                refused = ask(server, "SELECT 1", user=pwd.getpwnam(name).pw_uid)
                assert refused.returncode != 0
                assert any(reason in refused.stderr for reason in ("authentication failed", "Permission denied")), refused.stderr
        assert ask(server, "SELECT 1", role="postgres").returncode == 0
        assert ask(server, "SELECT 1", role="somebody").returncode != 0


def test_a_socket_whose_path_would_be_too_long_is_put_elsewhere(home: Path) -> None:
    deep = home / ("deep" * 30)
    deep.mkdir(mode=0o711)
    server = EmbeddedPostgres(deep)
    server.prepare()
    try:
        assert len(os.fsencode(server.socket_folder / SOCKET_NAME)) <= SOCKET_PATH_OCTETS_MAX
        assert server.socket_folder.stat().st_mode & 0o777 == 0o700
        with running(server):
            assert ask(server, "SELECT 1").stdout.strip() == "1"
        shutil.rmtree(server.socket_folder)
        server.prepare()
        assert server.socket_folder.is_dir(), "a folder that the system has removed is made again"
    finally:
        shutil.rmtree(server.socket_folder)


def test_a_home_that_the_account_cannot_enter_gets_a_link(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(mode=0o711)
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(postgres, "ELSEWHERE", elsewhere)
    server = EmbeddedPostgres(closed)
    server.prepare()
    if server.account.switches:
        assert (closed / "postgres").readlink().parent == elsewhere
        assert str(elsewhere) in capsys.readouterr().out
    else:
        assert not (closed / "postgres").is_symlink()
    with running(server):
        assert ask(server, "SELECT 1").stdout.strip() == "1"


def test_programs_that_the_account_cannot_reach_are_copied_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "can_enter", lambda _account, folder: "site-packages" not in folder.parts)
    for _ in range(2):
        server = EmbeddedPostgres(home)
        server.prepare()
        assert server.programs.is_relative_to(home / "postgres")
        assert server.programs.relative_to(home / "postgres").parts[0].startswith("programs-0.")
    with running(server):
        assert ask(server, "SHOW server_version").stdout.startswith("18.")


def test_an_interrupted_first_start_is_begun_anew(home: Path) -> None:
    (home / "postgres" / "data.unfinished" / "base").mkdir(parents=True)
    (home / "postgres").chmod(0o711)
    EmbeddedPostgres(home).prepare()
    assert (home / "postgres" / "data" / "PG_VERSION").read_text().strip() == "18"


def test_a_first_start_that_fails_says_what_postgresql_said_and_leaves_no_half(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "FIRST_STATEMENTS", "CREATE ROLE surety IN ROLE nobody_there\n")
    with pytest.raises(CannotStart, match='role "nobody_there" does not exist'):
        EmbeddedPostgres(home).prepare()
    assert not (home / "postgres" / "data").exists()


async def test_a_database_that_does_not_start_is_given_up_with_a_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "BACKOFF_SECONDS", 0.02)
    EmbeddedPostgres(home).prepare()
    (home / "postgres" / "data" / "PG_VERSION").write_text("9.6\n")
    with take_home(home), pytest.raises(CannotStart, match=f"PostgreSQL does not start; its reasons are in {home}/log/postgres.log"):
        await Supervisor(BrokerConfig(home=home)).run()
    assert "database files are incompatible with server" in (home / "log" / "postgres.log").read_text()
    assert list((home / "run").glob("*.pid")) == []


async def test_the_database_runs_without_our_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURETY_ADMIN_PASSWORD", "of-the-operator")
    seen = []

    def look(_config: BrokerConfig) -> dict[str, Role]:
        seen.append(Path(f"/proc/{(home / 'run' / 'postgres.pid').read_text().strip()}/environ").read_bytes())
        raise CannotStart("seen enough")

    async def nothing(_self: Supervisor) -> None: ...

    monkeypatch.setattr(Supervisor, "_prepare_database", nothing)
    monkeypatch.setattr(supervisor, "roles", look)
    with take_home(home), pytest.raises(CannotStart, match="seen enough"):
        await Supervisor(BrokerConfig(home=home)).run()
    assert b"of-the-operator" not in seen[0]


def test_a_standby_without_a_database_is_refused_in_a_sentence(home: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SURETY_HOME": str(home)}
    done = subprocess.run([sys.executable, "manage.py", "node"], cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"No database runs on {home}: `make run` starts one" in done.stderr


def test_a_link_to_a_folder_that_is_gone_is_not_replaced_by_an_empty_database(home: Path) -> None:
    (home / "postgres").symlink_to(home / "gone")
    with pytest.raises(CannotStart, match="bring it back or remove the link"):
        EmbeddedPostgres(home).prepare()


def test_root_hands_the_database_to_an_unprivileged_account(home: Path) -> None:
    chosen = database_account(home / "data")
    assert chosen.user != 0
    assert chosen.switches is ROOT


def test_without_any_account_for_it_root_is_told_what_to_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "UNPRIVILEGED", ("nobody-by-that-name",))
    monkeypatch.setattr(account, "own_account", lambda: Account("root", 0, 0))
    with pytest.raises(CannotStart, match="add a system user named surety"):
        database_account(home / "data")


def test_the_data_of_another_user_are_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "own_account", lambda: Account("somebody", os.geteuid() + 12_345, 12_345))
    with pytest.raises(CannotStart, match="belongs to another user"):
        database_account(home)


def test_an_account_enters_where_everyone_or_its_owner_may(home: Path) -> None:
    stranger, owner = Account("stranger", os.geteuid() + 1, 0), Account("owner", os.geteuid(), 0)
    assert can_enter(stranger, home)
    home.chmod(0o700)
    assert not can_enter(stranger, home)
    (home / "below").mkdir(mode=0o711)
    assert not can_enter(stranger, home / "below")
    assert can_enter(owner, home / "below") is can_enter(owner, home)
    home.chmod(0o711)


@pytest.mark.parametrize(("memory", "shared"), [(256 << 20, "32MB"), (2 << 30, "256MB"), (64 << 30, "512MB")])
def test_a_small_machine_gives_an_eighth_of_its_memory(memory: int, shared: str) -> None:
    assert f"shared_buffers = {shared}\n" in settings(memory)


def test_half_a_second_at_most_is_confirmed_and_not_on_disk() -> None:
    """As README.md says: PostgreSQL writes what nobody waits for within three times its wal_writer_delay."""
    delay = re.search(r"^wal_writer_delay = (\d+)ms$", settings(1 << 30), re.MULTILINE)
    assert delay is not None and 3 * int(delay[1]) <= 500
