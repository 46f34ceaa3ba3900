"""What pages are told: a snapshot and then changes are the same as a fresh snapshot, whoever comes, goes and loses his connection."""

from hypothesis import given, settings
from hypothesis import strategies as st

from console.live.board import Board, Told, key_of

NOBODY_HIDES = lambda subject, address: True  # noqa: E731
SUBJECTS = [("overview", ""), *(("destinations", str(number)) for number in range(4))]
CELLS = st.dictionaries(st.sampled_from(["depth", "in", "out"]), st.none() | st.sampled_from("abc"), max_size=3)
READINGS = st.dictionaries(st.sampled_from(SUBJECTS), st.builds(Told, st.sampled_from(["", "queue/a"]), CELLS), max_size=5)
STEPS = st.lists(st.tuples(READINGS, st.sampled_from(["told", "asleep", "lost", "looks elsewhere"])), max_size=25)


class Page:
    """A page in a browser, as static/console/live.js has it."""

    def __init__(self):
        self.version, self.cells = None, {}

    def told(self, change):
        assert change.full or self.version is not None, "changes mean something to who has a snapshot"
        self.cells = {**({} if change.full else self.cells), **change.cells}
        self.version = change.version

    def shown(self):
        """What is not there is shown as unknown."""
        return {key: text for key, text in self.cells.items() if text is not None}


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_a_snapshot_and_its_changes_are_a_fresh_snapshot(steps):
    board, page, subjects = Board(), Page(), SUBJECTS[:3]
    for reading, fate in steps:
        board.put({subject: told for subject, told in reading.items() if subject in subjects})
        if fate == "looks elsewhere":
            subjects, page = SUBJECTS[2:], Page()
        elif fate == "lost":
            page.version = None
        if fate != "asleep":
            page.told(board.since(page.version, subjects, NOBODY_HIDES))
            fresh = Page()
            fresh.told(board.since(None, subjects, NOBODY_HIDES))
            assert page.shown() == fresh.shown()


def test_what_did_not_change_is_not_told_again():
    board = Board()
    board.put({SUBJECTS[0]: Told("", {"in": "1", "out": "2"})})
    board.put({SUBJECTS[0]: Told("", {"in": "1", "out": "3"})})
    change = board.since(1, SUBJECTS[:1], NOBODY_HIDES)
    assert (change.full, change.cells) == (False, {"overview/out": "3"})


def test_who_may_not_see_it_is_not_told():
    board = Board()
    board.put({SUBJECTS[1]: Told("queue/secret", {"depth": "9"}), SUBJECTS[2]: Told("queue/open", {"depth": "1"})})
    assert board.since(None, SUBJECTS, lambda subject, address: address == "queue/open").cells == {"destinations/1/depth": "1"}


def test_a_number_that_another_destination_had_is_told_anew():
    board = Board()
    board.put({SUBJECTS[1]: Told("queue/a", {"depth": "9"})})
    board.put({SUBJECTS[1]: Told("queue/b", {"depth": "9"})})
    change = board.since(1, SUBJECTS, NOBODY_HIDES)
    assert (change.full, change.cells) == (True, {key_of(SUBJECTS[1], "depth"): "9"})


def test_a_version_that_never_was_brings_a_snapshot():
    board = Board()
    board.put({SUBJECTS[0]: Told("", {"in": "1"})})
    assert board.since(99, SUBJECTS, NOBODY_HIDES).full
