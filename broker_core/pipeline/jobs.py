"""What a command of the pipeline does, from the lock to the result."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from .archiving import archive
from .compaction import compact
from .ingest import ingest
from .lake import Lake, Manifest
from .runs import Run
from .session import SparkSettings, session

Tell = Callable[[str], None]
_RAISED = re.compile(r"(?:\w+\.)+\w+: |\w+(?:Error|Exception): ")
"""How the last line of a Python traceback begins."""


class DatabaseLost(RuntimeError):
    """The database is not there, or has ended the run's session. The next run goes on where this one was."""


class SparkFailed(RuntimeError):
    """One sentence: what Spark, or a task of it, could not do. The next run goes on where this one was."""


@contextmanager
def spark_told(work: Path) -> Iterator[None]:
    """Pages of Java and of Python become the sentence that they began with. Raises SparkFailed."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"Spark did not get through: {_first_cause(error)} (more is in {work / 'spark.log'})") from error


def _first_cause(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while thrown is not None and thrown.getCause() is not None:
        thrown = thrown.getCause()
    text = str(error) if thrown is None else str(thrown.getMessage() or thrown.toString())
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if not any("Traceback (most recent call last)" in line for line in lines):
        return lines[0].strip()
    raised = [line for line in lines if _RAISED.match(line)] or lines
    return _RAISED.sub("", raised[-1]).strip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run reads and writes."""

    url: str
    """Of the broker's database."""
    lake: str
    """A folder, or a URI of one of Hadoop's file systems."""
    spark: SparkSettings
    shard: int = 0


def run(place: Place, *, tell: Tell, requested_by: str = "", anew: bool = False) -> dict[str, Any]:
    """Bring the lake up to date. Returns what has come of it. Raises RunRefused, LakeRefused, SparkMissing, SparkFailed, DatabaseLost."""
    try:
        with Run(place.url, "ingest", shard=place.shard, requested_by=requested_by) as begun, spark_told(place.spark.work):
            tell(f"run {begun.number} has begun")
            forget_dead(place.spark.work)
            lake = Lake(session(place.spark), place.lake)
            manifest = bring_up_to_date(lake, begun, place.url, tell=tell, anew=anew)
            totals = {"files": len(manifest.files), "octets": sum(file.octets for file in manifest.files)}
            begun.says("", upto=manifest.upto, **totals)
            return begun.counts
    except psycopg.Error as error:
        raise DatabaseLost(f"the database does not go on with the run: {str(error).strip() or type(error).__name__}") from error


def bring_up_to_date(lake: Lake, run: Run, url: str, *, tell: Tell, anew: bool = False) -> Manifest:
    """The ledger, then the bodies that are archived. Raises as `run`."""
    manifest = ingest(lake, run, url, tell=tell, anew=anew)
    return compact(lake, run, archive(lake, run, url, manifest, tell=tell))


def forget_dead(work: Path) -> None:
    """What processes that were killed had put aside. Nobody else runs."""
    for left in [*work.glob("spark-*"), *work.glob("blockmgr-*")]:
        shutil.rmtree(left, ignore_errors=True)
