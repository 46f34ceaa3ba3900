"""Small files become large ones: what runs have written of one date and bucket is written again as a whole, once there is enough of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from pyspark.sql import functions as f

from .lake import HISTORIES, File, Lake, LakeRefused, Manifest, dates, now_ms, replaced
from .runs import Run

SMALL_OCTETS = 64 << 20
"""A file that is smaller is joined with others."""
TARGET_OCTETS = 128 << 20
"""About so large are those that come of it."""
FILES_OF_TODAY = 8
"""Of the newest date files are joined when there are so many in a partition, so that what is still growing is not written again by every run."""
FILES_OF_THE_PAST = 2
_KEYS = {
    "events": (2, ["date", "bucket", "destination", "lane", "kind", "number", "ordinal"]), "commits": (1, ["date", "number"]),
    "bodies": (2, ["date", "destination", "sequence"]),
}  # fmt: skip
"""What is sorted by what, and how many of these say which partition it is."""


def compact(lake: Lake, run: Run, manifest: Manifest) -> Manifest:
    """Join small files of every date that has enough of them, date by date: each is published by itself, so that a crash costs one. Raises LakeRefused, and
    what Spark raises."""
    for table in HISTORIES:
        newest = max(dates(manifest.of(table)), default=None)
        for date, small in sorted(_small(manifest.of(table), str(newest)).items()):
            run.says(f"joining {len(small)} small files of {table} of {date}")
            manifest = _join(lake, run, manifest, table, f"{run.number:09d}-{manifest.number:09d}c", small)
    return manifest


def _small(files: Sequence[File], newest: str) -> dict[str, list[File]]:
    """By date the files to be joined."""
    found: dict[str, list[File]] = {}
    ordered = sorted((file for file in files if file.octets < SMALL_OCTETS), key=_partition)
    for partition, group in groupby(ordered, _partition):
        members = list(group)
        date = partition[0]
        if len(members) >= (FILES_OF_TODAY if date == newest else FILES_OF_THE_PAST):
            found.setdefault(date, []).extend(members)
    return found


def _partition(file: File) -> tuple[str, str]:
    folders = file.folders
    return folders["date"], folders.get("bucket") or folders.get("destination", "")


def _join(lake: Lake, run: Run, manifest: Manifest, table: str, name: str, small: Sequence[File]) -> Manifest:
    """What lies in one partition stays together, by destinations and in the order of the ledger, in as few files as their size asks for."""
    sizes: Counter[tuple[str, str]] = Counter()
    for file in small:
        sizes[_partition(file)] += file.octets
    each = max(round(octets / TARGET_OCTETS) or 1 for octets in sizes.values())
    together, keys = _KEYS[table]
    span = max(manifest.upto - manifest.begins + 1, 1)
    part = f.pmod(f.col("sequence"), f.lit(each)) if table == "bodies" else f.floor((f.col("number") - manifest.begins) * each / span)
    rows = lake.read(table, small).repartition(len(sizes) * each, *keys[:together], part).sortWithinPartitions(*keys)
    files = lake.write(table, name, rows.drop("date", "bucket", "run"))
    before, after = (sum(file.rows for file in each) for each in (small, files))
    if before != after:
        raise LakeRefused(f"joining {len(small)} files of {table} made {after} rows of {before}: the lake is as it was")
    published = replace(replaced(manifest, small, files, now_ms()), run=run.number)
    lake.publish(published)
    return published
