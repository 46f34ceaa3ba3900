"""Which topics a pattern means, and that no pattern costs more than its length."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.engine.pattern import Pattern, problem


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("a.*", ["a.b", "a.c"], ["a", "a.b.c", "b.a", "ab.c"]),
        ("*", ["a", "b"], ["a.b"]),
        ("*.b.*", ["a.b.c", "b.b.b"], ["a.b", "b.c", "a.c.b"]),
        ("a.**", ["a.b", "a.b.c.d"], ["a", "b.a"]),
        ("**", ["a", "a.b", "a.b.c"], []),
        ("a.**.z", ["a.b.z", "a.b.c.z", "a.z.z"], ["a.z", "a.b.c", "a.z.b"]),
        ("**.z", ["a.z", "a.b.z"], ["z", "z.a"]),
        ("a.>", ["a", "a.b", "a.b.c"], ["ab", "b.a"]),
        (">", ["a", "a.b"], []),
        ("a.*.>", ["a.b", "a.b.c"], ["a"]),
        ("**.*", ["a.b", "a.b.c"], ["a"]),
    ],
)
def test_a_pattern_matches_level_by_level(pattern: str, names: list[str], others: list[str]) -> None:
    assert not problem(f"topic/{pattern}")
    matched = Pattern(f"topic/{pattern}")
    assert [name for name in [*names, *others] if matched.matches(f"topic/{name}")] == names


@pytest.mark.parametrize("pattern", [">", "**", "*.**", "*.x"])
def test_the_brokers_own_topics_are_meant_only_by_name(pattern: str) -> None:
    assert not Pattern(f"topic/{pattern}").matches("topic/mq.x")
    assert Pattern("topic/mq.>").matches("topic/mq.x")
    assert Pattern("topic/>").matches("topic/mq")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("queue/a.*", "wildcards are for subscriptions of topics"),
        ("temp-topic/a.*", "wildcards are for subscriptions of topics"),
        ("topic/a*", "a wildcard stands for whole levels, which are separated by dots"),
        ("topic/a.***", "a wildcard stands for whole levels, which are separated by dots"),
        ("topic/a>", "a wildcard stands for whole levels, which are separated by dots"),
        ("topic/**.a.**", "** or > may stand in a pattern once"),
        ("topic/**.>", "** or > may stand in a pattern once"),
        ("topic/>.a", "> stands at the end of a pattern; ** may stand before its end"),
        ("topic/ .*", "its names are not valid"),
        ("topic/*." + "a" * 260, "its names are not valid"),
        ("topic/*.\n", "its names are not valid"),
    ],
)
def test_what_is_no_pattern_is_told_why(address: str, sentence: str) -> None:
    assert problem(address) == sentence


levels = st.sampled_from(["a", "b", "", "cc"])
patterns = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4).flatmap(
    lambda plain: st.sampled_from([plain, *([*plain[:n], "**", *plain[n:]] for n in range(len(plain) + 1)), [*plain, ">"]])
)


@given(patterns, st.lists(levels, min_size=1, max_size=6))
def test_a_pattern_means_what_the_same_regular_expression_means(pattern: list[str], name: list[str]) -> None:
    words = {"*": r"\.[^.]*", "**": r"(\.[^.]*)+", ">": r"(\.[^.]*)*"}
    expression = "".join(words.get(level, rf"\.{level}") for level in pattern)
    matches = re.fullmatch(expression, "." + ".".join(name)) is not None
    assert Pattern(f"topic/{'.'.join(pattern)}").matches(f"topic/{'.'.join(name)}") == matches


def test_the_worst_pattern_and_the_worst_name_take_microseconds() -> None:
    name = "topic/" + ".".join("a" * 127)
    pattern = Pattern("topic/" + ".".join(["a", "*"] * 30 + ["**"] + ["*", "a"] * 30 + ["b"]))
    began = time.perf_counter()
    for _ in range(1000):
        assert not pattern.matches(name)
    assert time.perf_counter() - began < 1.0
