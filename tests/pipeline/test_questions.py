"""What docs/pipeline.md asks of the lake can be asked, and its pictures are there."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.questions import DOCUMENT, answer, picture, questions


def test_every_question_has_its_picture() -> None:
    assert list(questions()) == ["backlog", "consumers", "deaths"]
    for name in questions():
        assert f"(pictures/lake-{name}.svg)" in DOCUMENT.read_text("utf-8")
        assert (DOCUMENT.parent / "pictures" / f"lake-{name}.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.slow
def test_the_statements_say_what_the_document_says(spark: SparkSession) -> None:
    rows = [(0, "accepted", None, None, 10), (1, "offered", 7, None, 4), (2, "settled", None, "accepted", 3), (6, "offered", 8, None, 5)]
    rows.append((7, "settled", None, "expired", 2))
    events = spark.createDataFrame(rows, "second long, kind string, link long, outcome string, messages long")
    events.selectExpr("timestamp_seconds(second) AS at", "1 AS destination", "kind", "link", "outcome", "messages").createOrReplaceTempView("events")
    spark.sql("SELECT 1 AS destination, 'queue/shop.orders' AS address").createOrReplaceTempView("destinations")
    asked = questions()
    assert answer(spark, asked["backlog"]) == {"arrived": [(0, 10), (5, 0)], "left": [(0, 3), (5, 2)], "waiting": [(0, 7), (5, 5)]}
    assert answer(spark, asked["consumers"]) == {"consumer 1": [(0, 4), (5, 0)], "consumer 2": [(0, 0), (5, 5)]}
    assert answer(spark, asked["deaths"]) == {"expired": [(0, 0), (5, 2)]}


def test_a_picture_has_a_line_for_each_series() -> None:
    drawn = picture({"a & b": [(0, 0), (10, 900)], "c": [(0, 5)]}, "title")
    assert drawn.count("<polyline") == 2
    assert "a &amp; b" in drawn and ">1000<" in drawn
