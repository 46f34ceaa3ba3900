"""`manage.py run`: the whole service in the foreground. Database, then migrations, then everything else; stopped in opposite order.

The order of a stop, in seconds after the signal (20 is promised):

    0    web and node are asked; the node drains for at most drain_seconds
    15   what is left of them is killed; tasks worker and beat are asked
    17   what is left of them is killed; PostgreSQL is asked for a fast shutdown
    19   PostgreSQL is killed; its log makes good what its last checkpoint missed
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

from django.core.management import call_command
from django.db import Error, connection

from broker_core.config import BrokerConfig
from broker_core.transport import NODE_QUEUE, TASKS_QUEUE

from .child import WIDTH, Child, Role, die_with_us
from .database import check_database, is_up_to_date
from .home import check_ports, take_home, wait_for_leftovers
from .postgres import ENVIRONMENT, EmbeddedPostgres
from .readiness import is_ready
from .refusal import CannotStart
from .terminal import own_foreground

PYTHON = [sys.executable, "-u"]
MANAGE = str(Path(__file__).parents[2] / "manage.py")
CELERY_WORKER = ["--pool", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
CELERY = [*PYTHON, "-m", "celery", "--quiet"]  # no banner
QUIET = ["--loglevel", "WARNING"]  # two lines for each of 15,000 tasks a day say nothing
NODE_COMMAND = [*CELERY, "-A", "broker_core.worker", "worker", *CELERY_WORKER, "--queues", NODE_QUEUE, "-n", "node@%h", "-l", "INFO"]
BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
NODE_UP = "Serving epoch"
"""A node says so when it has recovered and all its listeners are open (broker_core/server/supervisor.py)."""
POSTGRES_UP = "ready to accept connections"
FIRST_DEADLINE, SECOND_DEADLINE, LAST_DEADLINE = 15.0, 17.0, 19.0
READY_POLL_SECONDS, READY_POLL_SECONDS_MAX = 0.25, 5
"""Ever more seldom: what is not ready after seconds is seldom ready in the next."""
STILL_SECONDS = 15
"""After this long without a ready node, say what is being waited for."""


def roles(config: BrokerConfig) -> dict[str, Role]:
    """All but the database, in the order in which they start."""
    tasks = [*CELERY, "-A", "console.celery"]
    schedule = [*QUIET, "--pidfile", "", "--scheduler", BEAT_SCHEDULER]
    listen = ["--host", config.bind, "--port", str(config.http_port), "--lifespan", "off", "--no-access-log", "--no-server-header"]
    # By itself uvicorn believes what anybody on this machine writes in X-Forwarded-For; console/asgi.py believes only a proxy that was named.
    listen.append("--no-proxy-headers")
    return {
        "node": Role("node", NODE_COMMAND, up=NODE_UP),
        "worker": Role("worker", [*tasks, "worker", *CELERY_WORKER, "--queues", TASKS_QUEUE, "-n", "tasks@%h", *QUIET]),
        "beat": Role("beat", [*tasks, "beat", *schedule]),
        "web": Role("web", [*PYTHON, "-m", "uvicorn", "console.asgi:application", *listen, "--timeout-graceful-shutdown", "5"], up="Uvicorn running on"),
    }


def say(text: str) -> None:
    print(f"{'surety':{WIDTH}} | {text}", flush=True)


class Supervisor:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._children: dict[str, Child] = {}
        self._stop = asyncio.Event()

    async def run(self) -> int:
        """The exit code: 0 after an orderly stop, 1 if something had to be killed. Raises CannotStart."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, self._stop.set)
        try:
            await self._start()
            await self._announce()
            stopped = asyncio.create_task(self._stop.wait())
            keepers = [child.keeper for child in self._children.values()]
            for ended in (await asyncio.wait([stopped, *keepers], return_when=asyncio.FIRST_COMPLETED))[0]:
                ended.result()  # a keeper ends before its stop only by a bug, which shows here
        finally:
            clean = await self._stop_all()
        return 0 if clean else 1

    async def _start(self) -> None:
        if self._config.embedded:
            await self._start_database()
        if not self._stop.is_set():
            await self._prepare_database()
        for name, role in roles(self._config).items():
            if not self._stop.is_set():
                self._children[name] = Child(role, self._config.home)

    async def _start_database(self) -> None:
        postgres = EmbeddedPostgres(self._config.home)
        postgres.prepare()
        role = Role("postgres", postgres.command(), signal.SIGINT, signal.SIGINT, postgres.account, ENVIRONMENT, POSTGRES_UP)  # SIGINT: fast shutdown
        child = self._children["postgres"] = Child(role, self._config.home)
        began = time.monotonic()
        while not self._stop.is_set() and not postgres.is_ready():
            if child.restarts >= 3 and time.monotonic() - began < 60:
                raise CannotStart(f"PostgreSQL does not start; its reasons are in {self._config.home / 'log' / 'postgres.log'}.")
            await asyncio.sleep(0.05)

    async def _prepare_database(self) -> None:
        """Migrations, and the tables of Celery's transport; side by side, for they have nothing in common. Mostly there is nothing of that to be done."""
        if await asyncio.to_thread(is_up_to_date):
            await asyncio.to_thread(_bootstrap)
            return
        migrate = self._run_once("migrate", [*PYTHON, MANAGE, "migrate", "--no-input", "--verbosity", "0"])
        queues = self._run_once("queues", [*PYTHON, "-m", "broker_core.transport"])
        codes = await asyncio.gather(migrate, queues)
        if any(codes) and not self._stop.is_set():
            raise CannotStart("The database could not be prepared; the reason is above.")

    async def _run_once(self, name: str, command: list[str]) -> int:
        """Its output goes to the terminal and to no log: the first run prints a password."""
        process = await asyncio.create_subprocess_exec(*command, process_group=0, preexec_fn=die_with_us(signal.SIGKILL))
        done, stopped = asyncio.create_task(process.wait(), name=name), asyncio.create_task(self._stop.wait())
        await asyncio.wait([done, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not done.done():
            process.terminate()
        return await done

    async def _announce(self) -> None:
        config, began = self._config, time.monotonic()
        patient, pause = True, READY_POLL_SECONDS
        while not self._stop.is_set():
            ready, reason = await is_ready(config)
            if ready:
                say(f"ready: console http://{config.bind}:{config.http_port}/  STOMP {config.bind}:{config.stomp_port}  AMQP {config.bind}:{config.amqp_port}")
                if config.tls:
                    say(f"       with TLS STOMP {config.bind}:{config.stomp_tls_port}  AMQP {config.bind}:{config.amqp_tls_port}")
                say(f"       database {'embedded' if config.embedded else 'as in DATABASE_URL'}, files in {config.home}; Ctrl-C stops")
                return
            if patient and time.monotonic() - began > STILL_SECONDS:
                patient = False
                say(f"not ready yet: {reason}")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)
            pause = min(1.2 * pause, READY_POLL_SECONDS_MAX)

    async def _stop_all(self) -> bool:
        began = time.monotonic()
        if self._children:
            say("stopping")
        for names, deadline in ((("web", "node"), FIRST_DEADLINE), (("worker", "beat"), SECOND_DEADLINE), (("postgres",), LAST_DEADLINE)):
            group = [self._children[name] for name in names if name in self._children]
            await asyncio.gather(*(child.stop(began + deadline) for child in group))
        if self._children:
            say(f"stopped in {time.monotonic() - began:.1f} s")
        return not any(child.killed for child in self._children.values())


def _bootstrap() -> None:
    """In this process, which has all that it takes; `migrate` ends with the same. Raises CannotStart."""
    try:
        call_command("bootstrap")
    except Error as error:
        raise CannotStart(f"The database could not be prepared: {str(error).strip()}") from error
    finally:
        connection.close()
        connection.close_pool()


def run(config: BrokerConfig) -> int:
    """Raises CannotStart."""
    with take_home(config.home), own_foreground():
        wait_for_leftovers(config.home)
        check_ports(config)
        if not config.embedded:
            check_database(config)
        return asyncio.run(Supervisor(config).run())
