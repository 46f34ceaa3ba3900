"""Tests from outside run against really running processes. Those that harm nothing share one service, those that kill and restart it another; those
that need other settings start their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from broker_core.client import Connection, Queue, Topic
from tests.acceptance import secured as certified
from tests.acceptance.python_client import factory
from tests.support import jms
from tests.support.service import Service

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def home() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def mortal(home: Service) -> Service:
    """A service whose roles a test may kill, and which it may stop; it is started again in the same home for the next one."""
    if home.process is None or home.process.poll() is not None:
        home.start()
    home.await_ready()
    return home


@pytest.fixture(scope="package")
def fuzzed() -> Iterator[Service]:
    """Hostile input gets a service of its own: its log on failure is then about nothing else. A stranger has 2 s to log in."""
    with Service(environment={"SURETY_LOGIN_SECONDS": "2"}) as service:
        yield service


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[certified.Secured]:
    with certified.running(tmp_path_factory.mktemp("service"), tmp_path_factory.mktemp("client")) as running:
        yield running


@pytest.fixture(scope="package")
def class_path() -> str:
    """Of what Qpid JMS is asked to do: `jms/Scenarios.java`, compiled once."""
    if problem := jms.missing():
        pytest.skip(problem)
    return jms.compiled(jms.FOLDER / "Scenarios.java", jms.FOLDER / "classes")


@pytest.fixture
def queue() -> str:
    """The name of a queue that nobody else uses."""
    return f"own.{next(_numbers)}"


# -- the Python client ----------------------------------------------------------------------------------------------------------------
@pytest.fixture
def connection(service: Service) -> Iterator[Connection]:
    """Of the Python client."""
    with factory(service).create_connection() as connection:
        yield connection


@pytest.fixture
def orders() -> Queue:
    """A queue that nobody else uses."""
    return Queue(f"python.{next(_numbers)}")


@pytest.fixture
def prices() -> Topic:
    """A topic that nobody else uses."""
    return Topic(f"python.{next(_numbers)}")
