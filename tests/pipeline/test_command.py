"""The command of the pipeline, as a process: with Spark and without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_core.engine.definitions import SubscriptionDefined
from broker_core.pipeline import surroundings
from broker_core.pipeline.runs import Run
from console.launch import spark as launch
from console.launch.refusal import CannotStart
from tests.pipeline.ledgers import LedgerDatabase
from tests.pipeline.test_killed import REPOSITORY, uri

NO_JAVA = "The data pipeline needs Java 17 or later"
SECONDS_MAX = 240


@pytest.fixture
def surrounded(database: LedgerDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LedgerDatabase:
    """What processes inherit: a database with one commit, and no Java."""
    for name, value in {"DATABASE_URL": uri(database.url), "SURETY_HOME": str(tmp_path / "home"), "JAVA_HOME": str(tmp_path / "no Java")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "home").mkdir()
    database.commit(definitions=[SubscriptionDefined(3, 7)])
    return database


@pytest.fixture
def with_java(surrounded: LedgerDatabase, monkeypatch: pytest.MonkeyPatch) -> LedgerDatabase:
    """The same with Java, and a queue."""
    if surroundings.java_missing(""):
        pytest.skip("there is no Java")
    monkeypatch.delenv("JAVA_HOME")
    surrounded.queue(7, 3, "queue/orders")
    return surrounded


def command(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", "pipeline", *arguments]


def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def await_true(met: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    ends = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.parametrize("what", ["run", "audit", "replay"])
def test_without_java_it_says_so_in_one_sentence(surrounded: LedgerDatabase, what: str) -> None:
    done = told(what)
    assert (done.returncode, done.stdout) == (1, "")
    assert NO_JAVA in done.stderr and "there is none in JAVA_HOME, which is " in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_how_far_it_is_is_told_without_java(surrounded: LedgerDatabase) -> None:
    assert told("status").stdout.splitlines() == ["The pipeline has never run; the ledger has commits up to 1."]
    with Run(surrounded.url, "ingest", requested_by="ann") as run:
        run.move_watermark(1)
        found = json.loads(told("status", "--json").stdout)
        run.says("", commits=1)
    assert (found["running"], found["watermark"], found["last"], [each["requested_by"] for each in found["runs"]]) == (True, 1, 1, ["ann"])
    first, second = told("status").stdout.splitlines()
    assert first == "The lake has the ledger up to commit 1 of 1."
    assert second.startswith("  1 ingest done: ") and second.endswith(" commits 1")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nobody waits for it, and Python minds
@pytest.mark.parametrize("begin", [lambda log: launch.begin_run(log, "ann"), lambda log: launch.begin_replay(log, 7, "ann")], ids=["run", "replay"])
def test_what_the_service_begins_is_such_a_process_and_its_log_has_what_it_says(
    surrounded: LedgerDatabase, tmp_path: Path, begin: Callable[[Path], int]
) -> None:
    log = tmp_path / "log" / "pipeline.log"
    os.waitpid(begin(log), 0)
    assert NO_JAVA in log.read_text() and len(log.read_text().strip().splitlines()) == 1, "its arguments were understood"


def test_java_is_looked_for_where_it_is_said_to_be_or_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert surroundings.java_missing("") == f"The data pipeline needs {surroundings.JAVA_WANTED}: there is no java on the PATH."
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    assert surroundings.java_missing(str(tmp_path)) == ""
    monkeypatch.setenv("PATH", str(java.parent))
    assert surroundings.java_missing("") == ""


def test_what_cannot_be_fetched_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    find, asked, said = surroundings.importlib.util.find_spec, list[list[str]](), list[str]()
    monkeypatch.setattr(surroundings.importlib.util, "find_spec", lambda name: None if name == "pyspark" else find(name))
    monkeypatch.setattr(launch, "java_missing", lambda _: "")
    monkeypatch.setattr(launch.subprocess, "run", lambda command, check: asked.append(command) or subprocess.CompletedProcess(command, 1))
    with pytest.raises(CannotStart, match=r"^The data pipeline needs pyspark, which is not installed: run .* It was tried, and ended with code 1\.$"):
        launch.provide("", said.append)
    assert [command[-2:] for command in asked] == [["-r", str(surroundings.REQUIREMENTS)]]
    assert said == ["Fetching Apache Spark for the first command of the data pipeline: 400 MB, once."]


@pytest.mark.slow
def test_an_audit_that_is_killed_has_left_nothing_and_the_next_one_does_it_again(with_java: LedgerDatabase, tmp_path: Path) -> None:
    with_java.commit(accepted=[(7, 4, 0, 9)])
    with (tmp_path / "log").open("ab") as log:
        killed = subprocess.Popen(command("audit"), cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True)
    ask = with_java.connection.execute
    await_true(lambda: ask("SELECT FROM surety.pipeline_run WHERE stage LIKE 'audit%'").fetchone() is not None or killed.poll() is not None)
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert ask("SELECT count(*) FROM surety.pipeline_audit").fetchone() == (0,)
    assert told("audit").returncode == 3, "the rows of what was accepted are not there"
    audits = ask("SELECT from_number, to_number, violations FROM surety.pipeline_audit").fetchall()
    assert audits == [(1, 2, 1)]
    assert ask("SELECT state FROM surety.pipeline_run ORDER BY run").fetchall() == [("died",), ("done",)]


@pytest.mark.slow
def test_an_audit_is_refused_while_a_run_goes_on_or_waits_for_its_end(with_java: LedgerDatabase) -> None:
    with Run(with_java.url, "ingest"):
        waits = subprocess.Popen(command("audit", "--waits"), cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        refused = told("audit")
        assert (refused.returncode, "the pipeline is running already" in refused.stderr) == (1, True)
        assert waits.poll() is None
    _, said = waits.communicate(timeout=SECONDS_MAX)
    assert waits.returncode == 0, said
    assert with_java.connection.execute("SELECT kind, state FROM surety.pipeline_run ORDER BY run").fetchall() == [("ingest", "done"), ("audit", "done")]
