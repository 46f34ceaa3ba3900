"""The tables of the pipeline."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from broker_core.engine.outcome import Outcome
from broker_core.pipeline import schema


@pytest.mark.parametrize("table", schema.TABLES)
def test_every_column_says_what_it_means(table: str) -> None:
    assert [column.name for column in schema.TABLES[table] if not column.metadata["comment"].endswith((".", ")"))] == []


def test_outcomes_have_the_numbers_of_the_ledger() -> None:
    assert schema.OUTCOMES[Outcome.MOVED] == "moved"
    assert len(schema.OUTCOMES) == len(Outcome)


def test_an_empty_frame_has_the_columns_of_its_table(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], schema.EVENTS)
    assert frame.columns == schema.EVENTS.names
    assert frame.count() == 0
