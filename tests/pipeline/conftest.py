"""One small Spark session for all tests of a process: it takes seconds to start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from broker_core.pipeline.session import SparkSettings, session
from tests.pipeline.ledgers import LedgerDatabase
from tests.store.conftest import dsn, server, template  # noqa: F401


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    # Tests end before the second compiler has paid for itself.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    settings = SparkSettings(tmp_path_factory.mktemp("spark"), "local[2]", memory_mib=1024, niceness=0, shuffle_partitions=2)
    opened = session(settings)
    yield opened
    opened.stop()


@pytest.fixture
def database(dsn: str) -> Iterator[LedgerDatabase]:  # noqa: F811
    with LedgerDatabase(dsn) as filled:
        yield filled
