"""The ledger goes into the lake once, whatever happens on the way."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from broker_core.pipeline import compaction, ingest, jobs, lake
from broker_core.pipeline.lake import Lake, LakeRefused, Manifest
from broker_core.pipeline.runs import Run, RunRefused
from broker_core.pipeline.session import SparkSettings
from tests.pipeline.ledgers import LedgerDatabase
from tests.pipeline.test_connector import filled


class Rig:
    """A lake in a folder, and runs into it."""

    def __init__(self, spark: SparkSession, database: LedgerDatabase, folder: Path) -> None:
        self.spark, self.database, self.folder = spark, database, folder
        self.told: list[str] = []

    @property
    def lake(self) -> Lake:
        return Lake(self.spark, self.folder)

    def run(self, **options: Any) -> Manifest:
        with Run(self.database.url, "ingest") as run:
            return ingest.ingest(self.lake, run, self.database.url, tell=self.told.append, **options)

    def compact(self) -> Manifest:
        with Run(self.database.url, "ingest") as run:
            return compaction.compact(self.lake, run, self.lake.manifest())

    def numbers(self, table: str = "commits") -> list[int]:
        return sorted(row.number for row in self.lake.frame(table).select("number").collect())

    def events(self) -> list[tuple[Any, ...]]:
        rows = self.lake.frame("events").select("number", "kind", "ordinal", "subscription", "first", "last", "outcome").collect()
        return sorted(tuple(row) for row in rows)

    def watermark(self) -> int:
        return self.database.connection.execute("SELECT number FROM surety.ledger_reader WHERE reader = 'pipeline'").fetchone()[0]  # type: ignore[index]

    def states(self) -> list[str]:
        return [state for (state,) in self.database.connection.execute("SELECT state FROM surety.pipeline_run ORDER BY run").fetchall()]


@pytest.fixture
def rig(spark: SparkSession, database: LedgerDatabase, tmp_path: Path) -> Rig:
    return Rig(spark, database, tmp_path / "lake")


def test_runs_bring_what_is_new_and_nothing_twice(rig: Rig) -> None:
    filled(rig.database, tables=2, commits=5)
    first = rig.run(step_octets=8192)
    assert (first.begins, first.upto, first.count("commits"), first.count("events")) == (1, 10, 10, 30)
    assert rig.watermark() == 10
    assert rig.run() == first, "nothing is new"
    rig.database.queue(24, 4, "queue/other")
    rig.database.commit(accepted=[(24, 4, 0, 3)])
    second = rig.run()
    assert rig.numbers() == list(range(1, 12))
    assert second.count("events") == 31
    assert rig.lake.frame("destinations").count() == 2, "of the last run"
    assert {file.folders["bucket"] for file in second.of("events")} == {"7", "8"}
    assert rig.lake.frame("events").where("bucket = 8").select("destination", "run").collect() == [(24, "000000003-0001")]
    assert rig.states() == ["done"] * 3


def test_a_run_that_died_before_it_published_leaves_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(rig.database)
    with monkeypatch.context() as broken:
        broken.setattr(Lake, "publish", lambda *_: (_ for _ in ()).throw(RuntimeError("the disk is out of order")))
        with pytest.raises(RuntimeError, match="out of order"):
            rig.run()
    assert rig.lake.manifest().number == 0
    assert list((rig.folder / "events").iterdir())
    assert rig.watermark() == 0
    rig.run()
    assert rig.numbers() == list(range(1, 11))
    assert [folder.name for folder in (rig.folder / "events").iterdir()] == ["run=000000002-0001"]
    error = rig.database.connection.execute("SELECT error FROM surety.pipeline_run WHERE run = 1").fetchone()
    assert error == ("the disk is out of order",)


def test_a_run_that_died_after_it_published_is_known_by_its_manifest(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(rig.database)
    rig.run()
    before = rig.events()
    rig.database.connection.execute("UPDATE surety.ledger_reader SET number = 5")
    assert rig.run().upto == 10
    assert rig.watermark() == 10
    assert rig.events() == before


def test_files_are_on_the_disk_before_a_manifest_names_them_and_that_before_the_database_lets_go(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(rig.database)
    synced = list[str]()
    sync, publish, move = os.fsync, Lake.publish, Run.move_watermark

    def noted(handle: int) -> None:
        sync(handle)
        synced.append(os.path.realpath(f"/proc/self/fd/{handle}"))

    def published(into: Lake, manifest: Manifest) -> None:
        files = {rig.folder / file.path for file in manifest.files}
        above = {folder for path in files for folder in path.parents if folder.is_relative_to(rig.folder.parent)}
        sums = {path.with_name(f".{path.name}.crc") for path in files}
        assert files and {*map(str, files | sums | above)} <= set(synced)
        publish(into, manifest)
        assert synced[synced.index(str(rig.folder / "manifest" / f".{manifest.number}.{manifest.run}")) :].count(str(rig.folder / "manifest")) == 2

    def moved(run: Run, number: int) -> None:
        assert number == 0 or synced[-2:] == [str(rig.folder), str(rig.folder.parent)], "of the manifest's folder"
        move(run, number)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Lake, "publish", published)
    monkeypatch.setattr(Run, "move_watermark", moved)
    assert rig.run().upto == rig.watermark() == 10


def test_rows_that_were_written_and_are_not_there_end_the_run_before_it_counts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is where Spark's machines each have a folder of their own."""
    filled(rig.database)
    sizes = Lake._sizes
    monkeypatch.setattr(Lake, "_sizes", lambda lake, folder: {} if folder.startswith("events") else sizes(lake, folder))
    with pytest.raises(LakeRefused, match=r"Spark has written 30 rows of events to .*, and 0 are there: name a place for the lake that all"):
        rig.run()
    assert (rig.watermark(), rig.lake.manifest().number) == (0, 0)


def test_a_folder_is_no_lake_for_a_cluster() -> None:
    cluster: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://elsewhere:7077"))
    with pytest.raises(LakeRefused, match="each machine would write to a folder of its own: name one that all of them see, by its URI"):
        Lake(cluster, "var/lake")


def test_the_next_run_begins_as_soon_as_one_has_ended(database: LedgerDatabase) -> None:
    """The server may need a moment to notice that the session before has ended."""
    for _ in range(100):
        with Run(database.url, "ingest"):
            pass


def test_only_one_run_at_a_time(rig: Rig) -> None:
    with Run(rig.database.url, "ingest"), pytest.raises(RunRefused, match=r"running already: run 1 \(ingest\) in process .+:\d+"):
        Run(rig.database.url, "ingest")
    rig.database.connection.execute("UPDATE surety.pipeline_run SET state = 'running'")
    with Run(rig.database.url, "ingest"):
        assert rig.states() == ["died", "running"]


def test_a_run_whose_session_was_ended_publishes_nothing_more(rig: Rig) -> None:
    run = Run(rig.database.url, "ingest")
    rig.database.connection.execute("SELECT pg_terminate_backend(%s)", [run.connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError), run:
        run.says("publishing")


@pytest.mark.slow
def test_what_the_size_cap_dropped_and_what_is_missing_are_gaps(rig: Rig) -> None:
    filled(rig.database, tables=4, commits=5)
    rig.database.connection.execute("DELETE FROM surety.ledger_0_3 WHERE number IN (12, 13)")
    with Run(rig.database.url, "ingest") as run:
        run.move_watermark(0)  # it has begun
    rig.database.drop(1)
    rig.database.connection.execute("DELETE FROM surety.ledger_reader")
    manifest = rig.run()
    assert (manifest.begins, manifest.upto, manifest.holes) == (6, 20, ((12, 13),))
    gaps = rig.lake.frame("gaps").select("first_number", "last_number", "reason").orderBy("first_number").collect()
    assert [tuple(gap) for gap in gaps] == [(1, 5, ingest.BEFORE), (12, 13, ingest.MISSING)]
    rig.database.roll()
    rig.database.commit(accepted=[(7, 4, 20, 20)])
    rig.database.roll()
    rig.database.commit(accepted=[(7, 4, 21, 21)])
    rig.database.drop(5)
    manifest = rig.run()
    assert (manifest.upto, manifest.holes) == (22, ((12, 13),)), "what the database tells of is no hole"
    assert rig.lake.frame("gaps").where(f.col("reason").contains("size cap")).select("first_number").collect() == [(21,)]


@pytest.mark.slow
def test_small_files_are_joined_and_keep_every_row(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FILES_OF_TODAY", 3)
    for _ in range(3):
        rig.database.number or filled(rig.database, tables=1, commits=1)
        rig.database.commit(accepted=[(7, 4, rig.database.number, rig.database.number)])
        rig.run()
    before, events = rig.lake.manifest(), rig.events()
    after = rig.compact()
    assert len(before.of("events")) >= 3
    assert len(after.of("events")) == len(after.of("commits")) == 1
    assert rig.events() == events
    assert rig.compact() == after, "nothing is left to be joined"
    assert rig.lake.read("events", before.of("events")).count() == len(events), "for those who are reading"
    assert rig.lake.clear(after, after.written_at + lake.RETIRED_MS) == len(after.retired)
    assert rig.events() == events


def test_what_spark_cannot_do_is_told_in_a_sentence(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(rig.database, tables=1, commits=1)
    settings = SparkSettings(tmp_path / "work")
    (tmp_path / "file").touch()
    with pytest.raises(jobs.SparkFailed, match=r"^Spark did not get through: .*file.*\(more is in .*spark.log\)$"):
        jobs.run(jobs.Place(rig.database.url, str(tmp_path / "file" / "lake"), settings), tell=rig.told.append)
    step = ingest._step

    def too_late(*arguments: Any) -> Manifest:
        rig.database.drop(1, reason="")
        return step(*arguments)

    monkeypatch.setattr(ingest, "_step", too_late)
    with pytest.raises(jobs.SparkFailed, match=r"^Spark did not get through: commits 1 to 1 were dropped from the ledger before they were read"):
        jobs.run(jobs.Place(rig.database.url, str(tmp_path / "of 100% Jörg"), settings), tell=rig.told.append)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("of")] == ["of 100% Jörg"]
    errors = rig.database.connection.execute("SELECT error FROM surety.pipeline_run").fetchall()
    assert all(error.startswith("Spark did not get through") and len(error) < 500 for (error,) in errors)


@pytest.mark.slow
def test_lake_and_database_must_agree_on_where_they_are(rig: Rig, tmp_path: Path) -> None:
    filled(rig.database)
    manifest = rig.run()
    elsewhere = Rig(rig.spark, rig.database, tmp_path / "another")
    with pytest.raises(LakeRefused, match="is empty, and the database says that commits up to 10 are in the lake"):
        elsewhere.run()
    assert elsewhere.run(anew=True).count("events") == 30
    rig.lake.publish(replace(manifest, number=manifest.number + 1, upto=12, run=99))
    with pytest.raises(LakeRefused, match="restored from an older backup"):
        rig.run()
    rig.database.connection.execute("SELECT setval(pg_get_serial_sequence('surety.pipeline_run', 'run'), 98)")
    for _ in range(2):  # the number of the run that it lost is given out again, and then is that of one that was refused
        with pytest.raises(LakeRefused, match="restored from an older backup"):
            rig.run()
    assert (rig.watermark(), rig.states()[-2:]) == (10, ["failed", "failed"])
    rig.lake.publish(replace(manifest, number=manifest.number + 2, instance="another"))
    with pytest.raises(LakeRefused, match="is that of installation another"):
        rig.run()
    with pytest.raises(LakeRefused, match="changed by another run"):
        rig.lake.publish(manifest)


@pytest.mark.slow
def test_files_of_an_older_schema_have_null_for_what_is_newer(rig: Rig) -> None:
    filled(rig.database)
    manifest = rig.run()
    (file, *_) = manifest.of("events")
    rows = rig.spark.read.parquet(f"{rig.folder}/{file.path}")
    older = rig.folder / "events" / "run=older" / "date=2026-01-01" / "bucket=7"
    rows.drop("octets", "mode").coalesce(1).write.parquet(str(older))
    (path,) = older.glob("*.parquet")
    old = replace(file, path=str(path.relative_to(rig.folder)), schema=0)
    frame = rig.lake.frame("events", replace(manifest, files=(*manifest.files, old)))
    assert frame.where("date = '2026-01-01'").select("mode").distinct().collect() == [(None,)]
    assert frame.where("mode = 'persistent'").count() == 30
