"""The ledger into the lake: what is new since the last run, step by step. Each step is in the lake exactly once, whenever a run dies:

1. its files are written under a name of their own, and count for nothing;
2. a manifest that names them is published, and they count: `upto` in it is where the lake ends;
3. the watermark in PostgreSQL follows, and the ledger may drop what is behind it.

Who dies before 2 leaves files that the next run removes; who dies between 2 and 3 leaves a watermark that the next run moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from . import schema, tables
from .database import snapshot
from .extents import PARTITION_OCTETS, Extent, Interval, extent, intervals
from .lake import HISTORIES, File, Lake, LakeRefused, Manifest, now_ms, replaced, spread
from .ledger import commits_of, events_of
from .runs import Run

STEP_OCTETS = 512 << 20
"""Of the ledger in one step: minutes of work that a crash may cost, and files of some size all the same."""
SNAPSHOTS = ("present", "destinations", "subscriptions", "gaps")
"""Tables that are as of the last run."""
MISSING = "missing from the ledger, and nobody says why"
BEFORE = "before the lake began"
REPLACED = "the lake was begun anew, or is an older copy, and the ledger had dropped them by then"

Tell = Callable[[str], None]


@dataclass(slots=True)
class Sources:
    """Where it comes from. The data source `surety` reads by the same functions; but Spark starts three processes to plan one reading of it, which here are
    not needed, since it is known what is to be read."""

    spark: SparkSession
    url: str
    shard: int

    def history(self, table: str, parts: Sequence[Interval]) -> DataFrame:
        """Events or commits of these intervals, by as many tasks as can run: each writes a file in every partition, so that more would make them small."""
        read, url = {"events": events_of, "commits": commits_of}[table], self.url
        tasks = min(self.spark.sparkContext.defaultParallelism, len(parts))
        edges = [len(parts) * task // tasks for task in range(tasks + 1)]
        return spread(self.spark, table, [partial(_each, read, url, parts[low:high]) for low, high in pairwise(edges)])

    def whole(self, table: str) -> DataFrame:
        """A table that is as of now."""
        read = {"destinations": tables.destinations, "subscriptions": tables.subscriptions, "present": tables.present_now}[table]
        return spread(self.spark, table, [partial(read, self.url, self.shard)])


def _each(read: Callable[[str, Interval], Iterator[pa.RecordBatch]], url: str, parts: Sequence[Interval]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        yield from read(url, part)


def ingest(lake: Lake, run: Run, url: str, *, tell: Tell, anew: bool = False, step_octets: int = STEP_OCTETS) -> Manifest:
    """Bring the lake up to the last commit that there is now. `anew`: a lake that ends elsewhere than the database says is taken as it is. Returns what the
    lake is then. Raises LakeRefused, LedgerDropped, psycopg.Error, and what Spark raises."""
    manifest = _agreed(lake, run, lake.manifest(), url, anew=anew)
    removed = lake.clear(manifest, now_ms())
    if removed:
        tell(f"removed {removed} files or folders that do not count")
    if manifest.described == manifest.upto == _last(url, run.shard):
        tell(f"nothing is new since commit {manifest.upto}")
        return manifest
    sources = Sources(lake.spark, url, run.shard)
    # The state of the store comes first, so that the lake has all commits that it is about.
    present = lake.write("present", f"{run.number:09d}", sources.whole("present"))
    with snapshot(url) as connection:
        upto = extent(connection, run.shard).last
        steps = _steps(connection, run.shard, manifest.upto, upto, step_octets)
    run.reads(manifest.upto, upto)
    began = manifest
    for index, parts in enumerate(steps, 1):
        after, last = manifest.upto, parts[-1].upto
        run.says(f"ingest {index}/{len(steps)}: commits {after + 1} to {last}")
        manifest = _step(lake, run, sources, manifest, f"{run.number:09d}-{index:04d}", parts)
        counts = {table: manifest.count(table) - began.count(table) for table in HISTORIES}
        run.says(f"ingested {index}/{len(steps)}", **counts)
        tell(f"commits {after + 1} to {last}: {counts['events']} events of {counts['commits']} commits so far, step {index} of {len(steps)}")
    return _described(lake, run, sources, manifest, present)


def _last(url: str, shard: int) -> int:
    with snapshot(url) as connection:
        return extent(connection, shard).last


def _step(lake: Lake, run: Run, sources: Sources, manifest: Manifest, name: str, parts: Sequence[Interval]) -> Manifest:
    """One step: written, published, then known to the database."""
    after, upto = manifest.upto, parts[-1].upto
    commits = lake.write("commits", name, sources.history("commits", parts))
    events = lake.write("events", name, sources.history("events", parts))
    # What was dropped before it could be read says so by now, since that was one transaction.
    holes = _holes(lake, commits, after, upto, [(first, last) for first, last, _, _ in _gaps(sources)])
    published = replaced(manifest, [], [*commits, *events], now_ms())
    published = replace(published, run=run.number, upto=upto, holes=(*manifest.holes, *holes))
    run.says(f"publishing commits {after + 1} to {upto}")
    lake.publish(published)
    run.move_watermark(upto)
    return published


def _described(lake: Lake, run: Run, sources: Sources, manifest: Manifest, present: Sequence[File]) -> Manifest:
    """Beside the commits what they are about, as it is now."""
    name = f"{run.number:09d}"
    known: list[tuple[Any, ...]] = [(first, last, MISSING, None) for first, last in manifest.holes]
    if manifest.begins > 1:
        known.append((1, manifest.begins - 1, BEFORE, None))
    known += [gap for gap in _gaps(sources) if gap[1] >= manifest.begins]
    gaps = sources.spark.createDataFrame([(sources.shard, *gap) for gap in known], schema.GAPS).coalesce(1)
    files = [*present, *lake.write("gaps", name, gaps)]
    for table in ("destinations", "subscriptions"):
        files += lake.write(table, name, sources.whole(table))
    old = [file for file in manifest.files if file.table in SNAPSHOTS]
    published = replace(replaced(manifest, old, files, now_ms()), run=run.number, described=manifest.upto)
    run.says("publishing definitions")
    lake.publish(published)
    return published


def _gaps(sources: Sources) -> list[tuple[int, int, str, Any]]:
    """What the database says of what it dropped: (first, last, reason, when)."""
    statement = "SELECT first_number, last_number, reason, dropped_at FROM surety.ledger_gap WHERE shard = %s ORDER BY first_number"
    with snapshot(sources.url) as connection:
        return [(first, last, reason, at) for first, last, reason, at in connection.execute(statement, [sources.shard]).fetchall()]


# -- what is missing --------------------------------------------------------------------------------------------------------------------
def _holes(lake: Lake, commits: Sequence[File], after: int, upto: int, told: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Numbers in (after, upto] that neither the lake has nor the database says were dropped. Numbers are dense, so there are none as long as all is well;
    commits are counted always, and looked through only if their number is not right."""
    wanted = upto - after - sum(max(min(last, upto) - max(first, after + 1) + 1, 0) for first, last in told)
    if sum(file.rows for file in commits) == wanted:
        return list[tuple[int, int]]()
    numbers = lake.read("commits", commits).select("number") if commits else lake.spark.createDataFrame([], "number bigint")
    edges = lake.spark.createDataFrame([(after,), (upto + 1,)], "number bigint")
    within = [(max(first, after + 1), min(last, upto)) for first, last in told if last > after and first <= upto]
    gaps = lake.spark.createDataFrame(within, "a bigint, b bigint")
    spans = numbers.select(f.col("number").alias("a"), f.col("number").alias("b")).union(edges.selectExpr("number", "number")).union(gaps)
    before = f.max("b").over(Window.orderBy("a").rowsBetween(Window.unboundedPreceding, -1))
    rows = spans.withColumn("before", before).where(f.col("a") > f.col("before") + 1).selectExpr("before + 1", "a - 1").collect()
    return sorted((row[0], row[1]) for row in rows)


# -- where it goes on -------------------------------------------------------------------------------------------------------------------
def _agreed(lake: Lake, run: Run, manifest: Manifest, url: str, *, anew: bool) -> Manifest:
    """The manifest to go on from, after lake and database have agreed on where that is."""
    instance = run.instance()
    if manifest.number and (manifest.instance, manifest.shard) != (instance, run.shard):
        raise LakeRefused(f"the lake {lake.root} is that of installation {manifest.instance}, and this is {instance}: name another place")
    mark = run.watermark()
    with snapshot(url) as connection:
        there = extent(connection, run.shard)
    if not manifest.number:
        return _begun(lake, run, manifest, instance, mark, there, anew=anew)
    if manifest.upto > (mark or 0):
        if run.has_read(manifest.run, manifest.upto):  # it died between the two
            run.move_watermark(manifest.upto)
            return manifest
        raise LakeRefused(
            f"the lake {lake.root} ends at commit {manifest.upto} of a run that the database does not know, which was restored from an older backup, it seems: "
            "name another place for the lake, where it begins anew, and keep this one as the history of what the backup had lost"
        )
    if mark is not None and manifest.upto < mark:
        if not anew:
            raise LakeRefused(_elsewhere(lake, manifest.upto, mark))
        return _skip(manifest, there)
    return manifest


def _begun(lake: Lake, run: Run, manifest: Manifest, instance: str, mark: int | None, there: Extent, *, anew: bool) -> Manifest:
    """A lake begins with what the ledger still has; from now on the ledger waits for the pipeline."""
    if mark is not None and mark > there.first - 1 and there.first and not anew:
        raise LakeRefused(_elsewhere(lake, 0, mark))
    begins = max(there.first, 1)
    run.move_watermark(begins - 1)
    return replace(manifest, instance=instance, shard=run.shard, begins=begins, upto=begins - 1)


def _elsewhere(lake: Lake, ends: int, mark: int) -> str:
    return (
        f"the lake {lake.root} {f'ends at commit {ends}' if ends else 'is empty'}, and the database says that commits up to {mark} are in the lake: if it is "
        "another lake, name the right one; if this is what is left of it, say --anew to go on with what the ledger still has"
    )


def _skip(manifest: Manifest, there: Extent) -> Manifest:
    """An older copy of the lake goes on; what the ledger has no more is a hole."""
    if there.first > manifest.upto + 1:
        return replace(manifest, holes=(*manifest.holes, (manifest.upto + 1, there.first - 1)), upto=there.first - 1)
    return manifest


def _steps(connection: psycopg.Connection[Any], shard: int, after: int, upto: int, octets: int) -> list[list[Interval]]:
    """What is new, in portions for a task each, in steps of about so many octets of the ledger."""
    parts = intervals(connection, shard, after, upto, octets=min(PARTITION_OCTETS, octets))
    each = max(octets // PARTITION_OCTETS, 1)
    return [parts[start : start + each] for start in range(0, len(parts), each)]
