"""YAML of definitions: what is written is read again as it was; what could mean something else, or grow, is refused with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as s

from console.services.definition_text import Document, InvalidDefinitions, written

_TEXT = s.text(s.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12) | s.sampled_from(
    ["no", "1e3", "089", "12:30", "~", "null", "0x10", "1_000", "+1", "-0", ".5", "<<", "=", "*a", "&a", "- a", "a: b", " a ", "a\x85b", "\u2028", "!a", "%"]
)
_VALUES = s.recursive(
    s.none() | s.booleans() | s.integers(-(10**18), 10**18) | s.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: s.lists(inner, max_size=4) | s.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(s.dictionaries(_TEXT, s.dictionaries(_TEXT, _VALUES, max_size=3), max_size=3))
def test_what_is_written_is_read_again_as_it_was(value):
    assert Document(written(value)).value == value


def test_words_mean_what_they_mean_in_json():
    found = Document("{a: true, b: yes, c: 010, d: 1.5, e: 0x1F, f: 2026-11-22, g: , h: '1', 12: x}").value
    assert found == {"a": True, "b": "yes", "c": "010", "d": 1.5, "e": "0x1F", "f": "2026-11-22", "g": None, "h": "1", "12": "x"}


@pytest.mark.parametrize(
    ("text", "path", "sentence"),
    [
        ("a: &x {b: 1}\nc: *x", "a", "line 1: anchors and aliases are not read"),
        ("a:\n- 1\n- b: *x", "a[1].b", "line 3: anchors and aliases"),
        ("a:\n  b: !!python/name:os.system x", "a.b", "line 2: tags are not read"),
        ("a:\n  queue/b: 1\n  queue/b: 2", 'a["queue/b"]', "line 2: the name is there twice, again on line 3"),
        ("[" * 100_000, "[0][0]", "line 1: nothing here is deeper than 8 levels"),
        ("a: 1\n---\nb: 1", "", "more than one document"),
        ("? [a]\n: 1", "", "line 1: each name must be a text"),
        ('a: "\\0"', "a", "line 1: a text has NUL"),
        ("a: \x07", "", "characters that YAML does not allow"),
        ("a: [", "", "line 2: this is not YAML"),
    ],
)
def test_what_could_mean_something_else_or_grow_is_refused_with_its_line(text, path, sentence):
    with pytest.raises(InvalidDefinitions) as refused:
        Document(text)
    [(where, told)] = refused.value.errors
    assert where == path
    assert sentence in told


def test_a_document_has_so_many_values_and_no_more():
    with pytest.raises(InvalidDefinitions, match="at most 200000 values"):
        Document(f"a: [{'1,' * 200_000}]")
