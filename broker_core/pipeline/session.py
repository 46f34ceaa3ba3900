"""One Spark session a process, bounded and quiet: it shares its machine with a broker."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from .connector import Surety
from .surroundings import JAVA_WANTED, SparkMissing

_LOCAL = re.compile(r"local\[([1-9]\d{0,5})(?:,\d+)?\]")
"""A number of processors, and of attempts at a task."""
_JAVA = "-XX:+UseParallelGC"
"""The collector that costs least in all. From two processors on Java would choose G1, which pauses less, and pays for that at each write of a reference."""
_TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How much of which machine Spark may have."""

    work: Path
    """A folder for what does not fit in memory, and for Spark's log; it is made."""
    master: str = "local[*]"
    """Where: this machine's processors, so many of them (`local[2]`: Java and Python's workers keep to two, whatever their threads), or a cluster
    (`spark://host:7077`, `yarn`)."""
    memory_mib: int = 2048
    """Of the driver, which on one machine does everything. Python's workers come on top: about 200 MiB each."""
    niceness: int = 10
    """0 to 19: the broker's processes go first."""
    shuffle_partitions: int = 16
    """At the most; adaptive execution joins small ones. Few spare small frames their start."""
    ui_port: int = 0
    """Of Spark's own pages, on loopback; 0: there are none."""


def session(settings: SparkSettings) -> SparkSession:
    """The process's session; the settings are the first caller's. Raises SparkMissing."""
    known = SparkSession.getActiveSession()
    if known is not None:
        return known
    work = settings.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    os.setpriority(os.PRIO_PROCESS, 0, max(settings.niceness, os.getpriority(os.PRIO_PROCESS, 0)))  # its Java and its workers inherit both
    keep_to(settings.master)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf = _conf(settings, work)
    log = work / "spark.log"
    try:
        with log.open("ab") as written:
            gateway = launch_gateway(conf, {"stderr": written, "stdout": written})  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
    except PySparkRuntimeError as error:
        raise SparkMissing(f"Spark did not start: it needs {JAVA_WANTED}; what it said is in {log}.") from error
    if settings.master.startswith("local"):
        context.pythonExec = sys.executable
    else:
        context.addPyFile(_packed(work))
    opened = SparkSession(context)
    opened.dataSource.register(Surety)
    return opened


def keep_to(master: str) -> None:
    """`local[2]` says how many tasks run at once, and Java's compilers, its collector and Python's workers run beside them: on so many processors, the last
    ones, so that the others are the broker's. Java sees no more than those, and has as many threads for itself."""
    asked = _LOCAL.fullmatch(master)
    if asked is None or not hasattr(os, "sched_setaffinity"):  # macOS has no such thing
        return
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[-min(int(asked[1]), len(allowed)) :])


def _conf(settings: SparkSettings, work: Path) -> SparkConf:
    conf = SparkConf(loadDefaults=False).setMaster(settings.master).setAppName("surety")
    options = {
        "spark.driver.memory": f"{settings.memory_mib}m",
        "spark.driver.extraJavaOptions": f"{_JAVA} -Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": (work / "warehouse").as_uri(),
        "spark.ui.enabled": str(settings.ui_port > 0).lower(),
        "spark.ui.showConsoleProgress": "false",
        # What Spark keeps of each query for its own pages, and each of its plans as text, fills the memory of who runs for long.
        **dict.fromkeys(("spark.sql.ui.retainedExecutions", "spark.ui.retainedJobs", "spark.ui.retainedStages"), "50"),
        "spark.sql.maxPlanStringLength": "10000",
        "spark.log.structuredLogging.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(_TOP),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A date's buckets are written beside each other instead of being sorted first.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
        "spark.sql.optimizer.plannedWrite.enabled": "false",
        # As many as there are buckets are open in each task.
        "spark.hadoop.parquet.block.size": str(16 << 20),
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    }
    if settings.ui_port:
        options["spark.ui.port"] = str(settings.ui_port)
    if settings.master.startswith("local"):
        options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in options.items():
        conf.set(name, value)
    return conf


def _packed(work: Path) -> str:
    """The code as one file, for the workers of a cluster."""
    return shutil.make_archive(str(work / "broker_core"), "zip", _TOP, "broker_core")
