"""The order of a stop, with processes that say when they end: web and node, then tasks worker and beat; what will not end is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from django.db import OperationalError

from broker_core.config import BrokerConfig
from console.launch import supervisor
from console.launch.child import Role
from console.launch.home import take_home
from console.launch.refusal import CannotStart
from console.launch.supervisor import NODE_COMMAND, Supervisor, roles

OBEDIENT = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep({linger})
    with pathlib.Path({ends!r}).open("a") as ends: ends.write({name!r} + " ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path({ready!r}).touch()
time.sleep(60)
"""
DEAF = "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); pathlib.Path({ready!r}).touch(); time.sleep(60)"
NAMES = ("node", "worker", "beat", "web")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BrokerConfig:
    """Without database and migrations, and ready as soon as all four run."""

    async def nothing(_self: Supervisor) -> None: ...

    async def is_ready(_config: BrokerConfig) -> tuple[bool, str]:
        return all((tmp_path / name).exists() for name in NAMES), "starting"

    monkeypatch.setattr(Supervisor, "_prepare_database", nothing)
    monkeypatch.setattr(supervisor, "is_ready", is_ready)
    monkeypatch.setattr(supervisor, "READY_POLL_SECONDS", 0.02)
    return BrokerConfig(home=tmp_path, database_url="postgresql://nobody@127.0.0.1:1/none")


def play(monkeypatch: pytest.MonkeyPatch, home: Path, scripts: dict[str, str]) -> None:
    def role(name: str) -> Role:
        given = {"ends": str(home / "ends"), "linger": 0, "name": name, "ready": str(home / name)}
        return Role(name, [sys.executable, "-c", scripts.get(name, OBEDIENT).format(**given)])

    monkeypatch.setattr(supervisor, "roles", lambda _config: {name: role(name) for name in NAMES})


async def run_until_ready_then(config: BrokerConfig, number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> int:
    with take_home(config.home):
        running = asyncio.create_task(Supervisor(config).run())
        async with asyncio.timeout(30):
            said = ""
            while "ready:" not in said:
                await asyncio.sleep(0.02)
                said += capsys.readouterr().out
            os.kill(os.getpid(), number)
            return await running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_web_and_node_end_before_tasks_and_beat(
    config: BrokerConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    slow_node = OBEDIENT.replace("{linger}", "0.5")
    play(monkeypatch, config.home, {"node": slow_node})
    assert await run_until_ready_then(config, number, capsys) == 0
    ends = (config.home / "ends").read_text().split()
    assert ends[:2] == ["web", "node"], "nobody else was asked while the node drained"
    assert sorted(ends[2:]) == ["beat", "worker"]
    assert list((config.home / "run").glob("*.pid")) == []


async def test_a_node_that_will_not_end_is_killed_and_the_exit_code_says_so(
    config: BrokerConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_DEADLINE", 0.3)
    play(monkeypatch, config.home, {"node": DEAF})
    assert await run_until_ready_then(config, signal.SIGTERM, capsys) == 1
    assert "node     | did not stop in time and is killed" in capsys.readouterr().out


async def test_a_database_that_cannot_be_prepared_stops_the_start(
    config: BrokerConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(supervisor, "is_up_to_date", lambda: False)
    monkeypatch.setattr(supervisor, "MANAGE", str(config.home / "nothing.py"))
    with take_home(config.home), pytest.raises(CannotStart, match="could not be prepared"):
        await Supervisor(config).run()
    assert "nothing.py" in capfd.readouterr().err
    assert list((config.home / "run").glob("*.pid")) == []


async def test_a_database_that_is_up_to_date_is_not_prepared_again(config: BrokerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what each start looks after is."""
    monkeypatch.undo()
    called: list[str] = []
    monkeypatch.setattr(supervisor, "is_up_to_date", lambda: True)
    monkeypatch.setattr(supervisor, "MANAGE", str(config.home / "nothing.py"))
    monkeypatch.setattr(supervisor, "call_command", called.append)
    await Supervisor(config)._prepare_database()
    assert called == ["bootstrap"]


async def test_what_each_start_looks_after_is_refused_in_a_sentence(config: BrokerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def fails(_command: str) -> None:
        raise OperationalError("the server ends")

    monkeypatch.setattr(supervisor, "is_up_to_date", lambda: True)
    monkeypatch.setattr(supervisor, "call_command", fails)
    with pytest.raises(CannotStart, match="could not be prepared: the server ends"):
        await Supervisor(config)._prepare_database()


def test_the_last_deadline_leaves_time_to_say_goodbye() -> None:
    assert supervisor.FIRST_DEADLINE < supervisor.SECOND_DEADLINE < supervisor.LAST_DEADLINE < 20


def test_both_workers_run_without_a_pool_of_processes() -> None:
    for command in (NODE_COMMAND, roles(BrokerConfig())["worker"].command):
        assert command[command.index("--pool") + 1] == "solo"
