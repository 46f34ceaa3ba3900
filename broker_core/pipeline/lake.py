"""The lake: Parquet files of the pipeline's tables, and a manifest that says which of them count.

    <root>/manifest/000000012.json           what counts; the highest number has the say
    <root>/events/run=<run>/date=2026-11-22/bucket=7/*.parquet
    <root>/commits/run=<run>/date=2026-11-22/*.parquet
    <root>/bodies/run=<run>/date=2026-11-22/destination=12/*.parquet
    <root>/present/run=<run>/*.parquet       and likewise destinations, subscriptions, gaps: as of the last run
    <root>/audit/run=<run>/*.parquet         what the audit of that run hands to the next one; the database says which counts

A file is never changed. A run writes into folders of its own and publishes them, all at once, by the next manifest, which is there whole or not at all. What
no manifest names is of a run that died; the next one removes it. Files are reached through Hadoop's file systems, so that the lake may be where a cluster
sees it (`hdfs:`, `s3a:`) as well as in a folder, whose files are on the disk before a manifest names them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from broker_core import disk

from . import schema

FORMAT = 1
"""Of the manifest."""
RETIRED_MS = 86_400_000
"""Files that others have replaced stay for a day: someone may be reading them."""
MANIFESTS_KEPT = 10
HISTORIES = ("events", "commits", "bodies")
"""Tables to which runs add; of the others the last run's files count."""

_RUN = StructField("run", StringType(), nullable=False, metadata={"comment": "Which run wrote the file."})
_DATE = StructField("date", DateType(), nullable=False, metadata={"comment": "The day of `at`, in UTC."})
_BUCKET = StructField("bucket", IntegerType(), nullable=False, metadata={"comment": "destination modulo the number of buckets."})
_PARTITIONS = {"events": ("date", "bucket"), "commits": ("date",), "bodies": ("date", "destination")}


class LakeRefused(RuntimeError):
    """One sentence that says what is wrong with the lake, and what to do."""


@dataclass(slots=True, frozen=True)
class File:
    """One file that counts. `path` is relative to the lake."""

    table: str
    path: str
    rows: int
    octets: int
    schema: int = schema.VERSION
    """The schema that it was written with: columns that came later are null in it."""

    @property
    def folders(self) -> dict[str, str]:
        """The partition that it belongs to, by the names of its folders."""
        return dict(part.split("=", 1) for part in self.path.split("/")[1:-1])


@dataclass(slots=True, frozen=True)
class Manifest:
    """What the lake consists of."""

    number: int = 0
    """0: there is no lake yet."""
    run: int = 0
    """The run that published it (surety.pipeline_run)."""
    instance: str = ""
    """The installation whose ledger it is."""
    shard: int = 0
    begins: int = 0
    """The first commit in it."""
    upto: int = 0
    """The last one: every commit between is in it, but for what `gaps` names."""
    files: tuple[File, ...] = ()
    holes: tuple[tuple[int, int], ...] = ()
    """Commits that were missing from the ledger and nobody said why: (first, last)."""
    retired: tuple[tuple[str, int], ...] = ()
    """Paths of files that others have replaced, and since when, in ms."""
    archived: int = 0
    """Up to this message (`sequence`) the bodies are in it that are to be."""
    described: int = 0
    """As of this commit, or later, are destinations, subscriptions, gaps and what is present."""
    written_at: int = 0
    format: int = field(default=FORMAT)

    def of(self, table: str) -> list[File]:
        return [file for file in self.files if file.table == table]

    def count(self, table: str) -> int:
        """Its rows."""
        return sum(file.rows for file in self.of(table))

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Manifest:
        """Raises LakeRefused."""
        told = json.loads(text)
        if told.get("format") != FORMAT:
            raise LakeRefused(f"the lake's manifest has format {told.get('format')}, and this version knows {FORMAT}: use the version that wrote it, or newer")
        told["files"] = tuple(File(**file) for file in told["files"])
        told["holes"] = tuple((first, last) for first, last in told["holes"])
        told["retired"] = tuple((path, at) for path, at in told["retired"])
        return cls(**told)


class Lake:
    """One lake, at a folder or a URI of one of Hadoop's file systems."""

    def __init__(self, spark: SparkSession, root: str | Path) -> None:
        """Raises LakeRefused."""
        self.spark = spark
        context = spark.sparkContext
        if "://" not in str(root) and not str(context.master).startswith("local"):
            raise LakeRefused(
                f"the lake is the folder {root}, and Spark runs at {context.master}, where each machine would write to a folder of its own: "
                "name one that all of them see, by its URI (SURETY_LAKE or --lake, as hdfs://..., s3a://..., or file:///... of a shared folder)"
            )
        # Hadoop takes paths as they are written: blanks and letters beyond ASCII are not escaped as in other URIs.
        self.root = f"file://{Path(root).absolute()}" if "://" not in str(root) else str(root).rstrip("/")
        self._jvm: Any = context._jvm
        self._files = self._path("").getFileSystem(context._jsc.hadoopConfiguration())

    def _path(self, relative: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{relative}")

    # -- the manifest -------------------------------------------------------------------------------------------------------------------
    def manifest(self) -> Manifest:
        """The one that has the say. Raises LakeRefused."""
        numbers = self._manifests()
        return Manifest.read(self._text(_manifest_path(numbers[-1]))) if numbers else Manifest()

    def publish(self, manifest: Manifest) -> None:
        """From now on this one has the say: it is there whole, or not at all. Raises LakeRefused if another run was first."""
        aside, there = self._path(f"manifest/.{manifest.number}.{manifest.run}"), self._path(_manifest_path(manifest.number))
        out = self._files.create(aside, True)
        try:
            out.write(bytearray(manifest.text(), "utf-8"))
            out.hsync()
        finally:
            out.close()
        self.to_disk("manifest")
        if self._files.exists(there) or not self._files.rename(aside, there):
            raise LakeRefused(f"the lake {self.root} was changed by another run meanwhile: let only one service write to it")
        self.to_disk("manifest")

    def _manifests(self) -> list[int]:
        folder = self._path("manifest")
        if not self._files.exists(folder):
            return list[int]()
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json") and not name.startswith("."))

    def _text(self, relative: str) -> str:
        stream = self._files.open(self._path(relative))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    # -- reading ------------------------------------------------------------------------------------------------------------------------
    def frame(self, table: str, manifest: Manifest | None = None) -> DataFrame:
        """The table as the manifest has it (None: as it is now), with `run` and the columns of its partitions. Files of older schemas have null for what is
        newer. Conditions on date and bucket read only what they name."""
        manifest = manifest or self.manifest()
        whole = columns(table)
        return self.read(table, manifest.of(table)) if manifest.of(table) else self.spark.createDataFrame([], whole)

    def read(self, table: str, files: Sequence[File]) -> DataFrame:
        """Certain files of one table, one at least."""
        paths = [f"{self.root}/{file.path}" for file in files]
        return self.spark.read.schema(columns(table)).option("basePath", f"{self.root}/{table}").parquet(*paths)

    # -- writing ------------------------------------------------------------------------------------------------------------------------
    def write(self, table: str, name: str, rows: DataFrame) -> list[File]:
        """Write rows of a table's schema under the run's name (no other may have it). They count once a manifest names them. Raises LakeRefused if they are
        not to be found afterwards."""
        folder = f"{table}/run={name}"
        kept = _PARTITIONS.get(table, ())
        if "date" in kept:
            rows = rows.withColumn("date", f.to_date("at"))
        if "bucket" in kept:
            rows = rows.withColumn("bucket", f.pmod(f.coalesce("destination", f.lit(0)), f.lit(schema.BUCKETS)))
        seen = Observation()
        rows.observe(seen, f.count(f.lit(1)).alias("rows")).write.mode("error").partitionBy(*kept).parquet(f"{self.root}/{folder}")
        self.to_disk(folder)
        files = [File(table, path, self._count(path), octets) for path, octets in self._sizes(folder).items()]
        found = sum(file.rows for file in files)
        if found != seen.get["rows"]:
            raise LakeRefused(
                f"Spark has written {seen.get['rows']} rows of {table} to {self.root}/{folder}, and {found} are there: "
                "name a place for the lake that all of Spark's machines see"
            )
        return files

    def to_disk(self, folder: str) -> None:
        """What is in it outlives a power cut. Of other than local file systems that is their own business. Raises LakeRefused."""
        if self.root.startswith("file://"):
            top = Path(self.root.removeprefix("file://"))
            try:
                disk.keep(top / folder, top.parent)
            except OSError as error:
                raise LakeRefused(f"the lake {self.root} cannot be brought to the disk: {error}") from error

    def _count(self, path: str) -> int:
        """Rows of a file, by its footer."""
        parquet, configuration = self._jvm.org.apache.parquet.hadoop, self.spark.sparkContext._jsc.hadoopConfiguration()
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(self._path(path), configuration))
        try:
            return int(reader.getRecordCount())
        finally:
            reader.close()

    def _sizes(self, folder: str) -> dict[str, int]:
        """Paths relative to the lake, and octets, of the Parquet files below."""
        if not self._files.exists(self._path(folder)):
            return dict[str, int]()
        listed = self._files.listFiles(self._path(folder), True)
        sizes = {}
        while listed.hasNext():
            status = listed.next()
            path = status.getPath().toString()
            if path.endswith(".parquet") and "/_temporary/" not in path:
                sizes[f"{folder}/{path.rsplit(folder + '/', 1)[1]}"] = status.getLen()
        return sizes

    def has(self, relative: str) -> bool:
        return bool(self._files.exists(self._path(relative)))

    # -- clearing up --------------------------------------------------------------------------------------------------------------------
    def clear(self, manifest: Manifest, now_ms: int) -> int:
        """Remove what no manifest names: folders of runs that died, files that others replaced a day ago. How many folders and files went."""
        removed = 0
        named: dict[str, set[str]] = {}
        for path in [*(file.path for file in manifest.files), *(path for path, at in manifest.retired if now_ms - at < RETIRED_MS)]:
            table, run, rest = path.split("/", 2)
            named.setdefault(f"{table}/{run}", set()).add(rest)
        for table in schema.TABLES:
            if not self._files.exists(self._path(table)):
                continue
            for status in self._files.listStatus(self._path(table)):
                folder = f"{table}/{status.getPath().getName()}"
                if folder not in named:
                    removed += self._files.delete(status.getPath(), True)
                    continue
                gone = [path for path in self._sizes(folder) if path.removeprefix(folder + "/") not in named[folder]]
                removed += sum(self._files.delete(self._path(path), False) for path in gone)
        for number in self._manifests()[:-MANIFESTS_KEPT]:
            self._files.delete(self._path(_manifest_path(number)), False)
        return removed


    def keep_only(self, folder: str, kept: Collection[str]) -> None:
        """Remove whatever else is in the folder; `kept` are paths relative to the lake."""
        for status in self._files.listStatus(self._path(folder)):
            if f"{folder}/{status.getPath().getName()}" not in kept:
                self._files.delete(status.getPath(), True)


def _manifest_path(number: int) -> str:
    return f"manifest/{number:09d}.json"


def columns(table: str) -> StructType:
    """The table's columns in the lake."""
    added = {"date": _DATE, "bucket": _BUCKET}
    return StructType([*schema.TABLES[table].fields, *(added[name] for name in _PARTITIONS.get(table, ()) if name in added), _RUN])


def spread(spark: SparkSession, table: str, parts: Sequence[Callable[[], Iterator[pa.RecordBatch]]]) -> DataFrame:
    """Rows of a table's schema that a task for each part reads."""

    def rows(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for part in task.column(0).to_pylist():
                yield from parts[part]()

    return spark.range(0, len(parts), 1, max(len(parts), 1)).mapInArrow(rows, schema.TABLES[table])


def dates(files: Iterable[File]) -> list[date]:
    """Of files of histories, each once, in order."""
    return sorted({date.fromisoformat(file.folders["date"]) for file in files})


def replaced(manifest: Manifest, old: Sequence[File], new: Sequence[File], now_ms: int) -> Manifest:
    """The next manifest, in which `new` stand for `old`. Whoever reads the old ones may go on for a day."""
    gone = {file.path for file in old}
    retired = [(path, at) for path, at in manifest.retired if now_ms - at < RETIRED_MS]
    kept = [file for file in manifest.files if file.path not in gone]
    return replace(
        manifest, number=manifest.number + 1, files=(*kept, *new), retired=(*retired, *((path, now_ms) for path in sorted(gone))), written_at=now_ms
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000
