"""Ranges of positions and what covers them. Many ranges over the same positions become segments that none of them begins or ends in; what is summed
over the ranges that cover a segment is known of each of its messages. A sort and a running sum, whatever the ranges are like."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

BUCKET = 1 << 16
"""Positions that one task looks at together: at the worst some hundred thousand ranges, and a lane of 20 million messages has 300 of them."""


def pieces(ranges: DataFrame, width: int = BUCKET) -> DataFrame:
    """The ranges (`first` to `last`, inclusive) cut at multiples of `width`: with the number of its `bucket` each."""
    buckets = f.explode(f.sequence(f.expr(f"first div {width}"), f.expr(f"last div {width}")))
    cut = ranges.withColumn("bucket", buckets)
    first, last = f.greatest(f.col("first"), f.col("bucket") * width), f.least(f.col("last"), (f.col("bucket") + 1) * width - 1)
    return cut.withColumns({"first": first, "last": last})


def overlay(ranges: DataFrame, keys: Sequence[str], counts: str, measures: Sequence[str]) -> DataFrame:
    """Segments of the same `keys`, with the sum of each measure over the ranges that cover them. `counts` is one of what is summed: not 0 where anything
    does. Columns: keys, bucket, first, last, counts, measures; positions that nothing covers are in no segment."""
    summed = [counts, *measures]
    begin = f.struct(f.col("first").alias("position"), *[f.col(name) for name in summed])
    end = f.struct((f.col("last") + 1).alias("position"), *[(-f.col(name)).alias(name) for name in summed])
    edges = pieces(ranges).select(*keys, "bucket", f.explode(f.array(begin, end)).alias("edge")).select(*keys, "bucket", "edge.*")
    along = Window.partitionBy(*keys, "bucket").orderBy("position")
    so_far = along.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    swept = edges.select(
        *keys, "bucket", f.col("position").alias("first"), (f.lead("position").over(along) - 1).alias("last"),
        *[f.sum(name).over(so_far).alias(name) for name in summed],
    )  # fmt: skip
    # Of edges at one position only the last has the whole sum; the others are ranges of nothing.
    return swept.where((f.col("last") >= f.col("first")) & (f.col(counts) != 0))


def coalesced(ranges: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What the ranges cover, in as few as there can be: keys, first, last. First within buckets, then what is left of a lane at once."""
    return _joined(_joined(pieces(ranges).select(*keys, "bucket", "first", "last"), [*keys, "bucket"]), keys)


def of_segments(cut: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same of ranges that lie in their `bucket` and beside each other, as those of `overlay` do. Where they fill what is between the first and the last of
    a bucket, as nearly everywhere, they are counted and not sorted."""
    of = [*keys, "bucket"]
    spans = cut.groupBy(*of).agg(f.min("first").alias("first"), f.max("last").alias("last"), f.sum(f.col("last") - f.col("first") + 1).alias("filled"))
    is_full = f.col("filled") == f.col("last") - f.col("first") + 1
    ragged = cut.select(*of, "first", "last").join(f.broadcast(spans.where(~is_full).select(*of)), of, "left_semi")
    return _joined(spans.where(is_full).drop("filled", "bucket").unionByName(_joined(ragged, of).drop("bucket")), keys)


def _joined(ranges: DataFrame, keys: Sequence[str]) -> DataFrame:
    along = Window.partitionBy(*keys).orderBy("first", "last")
    reached = f.max("last").over(along.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.when(f.col("first") > f.coalesce(reached, f.lit(-2)) + 1, 1).otherwise(0)
    numbered = ranges.withColumn("begins", begins).withColumn("run", f.sum("begins").over(along.rowsBetween(Window.unboundedPreceding, Window.currentRow)))
    return numbered.groupBy(*keys, "run").agg(f.min("first").alias("first"), f.max("last").alias("last")).drop("run")
