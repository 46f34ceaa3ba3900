"""`manage.py mq` and messages: listed, sent, moved and deleted, delayed, exported and imported."""

import io
import json
import re
import sys

import pytest

from console.cli import exits, portions
from console.cli.program import Terminal, main
from console.services import browsing
from console.services.looking import NodeSilent
from tests.console import facts
from tests.console.terminal import mq


@pytest.fixture
def messages(node):
    node.send(b"one", b"two", b"three")
    return node


def test_messages_are_listed_shown_sent_and_fetched(messages, tmp_path):
    listed = mq("list", "msg", "queue/orders", "--json").document
    assert (len(listed["items"]), listed["complete"], listed["next"]) == (3, True, None)
    key = listed["items"][0]["key"]
    assert re.search(r"body.text +one\n", mq("query", "msg", "queue/orders", key).told)
    assert mq("download", "msg", "queue/orders", key).octets == b"one"
    assert mq("list", "msg", "queue/orders", "--text", "no such").said == "None of the 3 that were looked at.\n"
    assert "--output" in mq("download", "msg", "queue/orders", key, there=True).said
    assert mq("download", "msg", "queue/orders", key, "--output", str(tmp_path / "body")).code == exits.DONE
    assert (tmp_path / "body").read_bytes() == b"one"
    assert mq("download", "msg", "queue/orders", key, "--output", str(tmp_path / "body")).code == exits.USAGE
    assert mq("send", "msg", "queue/orders", "--json-body", '{"id": 7}', "--priority", "6", "-o", "colour=red", "-o", "count=7").code == exits.DONE
    assert mq("send", "msg", "queue/orders", "--from-destination", "queue/orders", "--from-message", key).code == exits.DONE
    assert mq("list", "dead", "queue/orders", "--json").document["items"][0]["count"] >= 3


def test_an_operation_is_counted_agreed_to_and_followed_to_its_end(messages):
    mq("create", "dst", "queue/other")
    ran = mq("move", "msg", "queue/orders", "--to", "queue/other", "--text", "t", typed="no\n")
    assert ran.said == "queue/orders: 2 messages of 3 that were looked at. move msg queue/orders? Type yes to go on: Nothing was done.\n"
    ran = mq("copy", "msg", "queue/orders", "--to", "queue/other", "--text", "t", "--force", "--json")
    assert (ran.code, ran.document["state"], ran.document["done"]) == (exits.DONE, "done", 2), ran
    begun = mq("delete", "msg", "queue/orders", "--force", "--no-wait", "--json").document
    assert mq("query", "operation", str(begun["number"])).code == exits.DONE
    assert mq("list", "operation").told.splitlines()[1].split()[1] == "delete"
    assert mq("cancel", "operation", "4711", "--force").code == exits.REFUSED


def test_ctrl_c_leaves_an_operation_running_and_says_how_to_go_on(messages, monkeypatch):
    running = {"number": 7, "state": "running", "done": 3, "skipped": 0, "failed": 0, "looked_at": 4, "total": None, "verb": "copy", "error": ""}
    monkeypatch.setattr("console.cli.program._Run._outcome", lambda run, answer: running)

    def stop(progress, operation):
        raise KeyboardInterrupt

    monkeypatch.setattr("console.cli.following.Progress.tell", stop)
    ran = mq("copy", "msg", "queue/orders", "--to", "queue/orders", "--force")
    assert (ran.code, ran.said) == (exits.STOPPED, "It goes on: `query operation 7` tells how far it is, `cancel operation 7` ends it.\n")


def test_an_operation_that_does_not_end_well_is_told_from_one_that_does(messages, monkeypatch):
    ended = {"number": 7, "state": "failed", "done": 3, "skipped": 0, "failed": 1, "looked_at": 4, "total": 8, "verb": "move", "error": "the queue is full"}
    monkeypatch.setattr("console.cli.program.show", lambda document, out, columns: None)
    monkeypatch.setattr("console.cli.program._Run._outcome", lambda run, answer: ended)
    ran = mq("move", "msg", "queue/orders", "--to", "queue/other", "--force", there=True)
    assert ran.code == exits.UNFINISHED
    assert "50% [###############---------------] 3 of 8, looked at 4" in ran.said
    assert ran.said.endswith("Operation 7 is failed after 3 messages: the queue is full.\n")


def test_delayed_messages_are_listed_cancelled_delivered_and_moved(messages, database):
    messages.send(b"a", b"b", b"c", delay=3_600_000)
    first, second, third = (str(each["number"]) for each in mq("list", "delayed", "queue/orders", "--json").document["items"])
    assert mq("cancel", "delayed", "queue/orders", first, typed="yes\n").code == exits.DONE
    assert mq("deliver", "delayed", "queue/orders", second).code == exits.DONE
    assert mq("reschedule", "delayed", "queue/orders", third, "--due-at", "2100-01-01T00:00:00Z").code == exits.DONE
    [left] = mq("list", "delayed", "queue/orders", "--json").document["items"]
    assert left["due_at"].startswith("2100-01-01")


def test_what_clients_wrote_does_not_reach_the_terminal_as_it_is(messages):
    messages.send("a\x1b[2Jb\u202ec".encode())
    key = mq("list", "msg", "queue/orders", "--order", "newest", "--json").document["items"][0]["key"]
    told = mq("query", "msg", "queue/orders", key).told
    assert r"a\x1b[2Jb\u202ec" in told
    assert "\x1b" not in told


# -- exported and imported ---------------------------------------------------------------------------------------------------------------------
def test_an_export_is_an_import(messages):
    lines = mq("export", "msg", "queue/orders").told
    assert len(lines.splitlines()) == 3
    assert mq("import", "msg", "queue/orders", "--json", typed=lines).document == {"sent": 3}
    ran = mq("import", "msg", "queue/orders", typed="no json\n")
    assert (ran.code, "line 1: it is no JSON" in ran.said) == (exits.REFUSED, True)


def test_an_export_that_stops_before_its_end_says_so(messages, monkeypatch):
    looked = iter((browsing.look,))

    def look(*arguments):
        found = next(looked, None)
        if found is None:
            raise NodeSilent
        return found(*arguments)

    monkeypatch.setattr(browsing, "EXPORT_PAGE", 1)
    monkeypatch.setattr(browsing, "look", look)
    ran = mq("export", "msg", "queue/orders")
    assert (ran.code, len(ran.told.splitlines())) == (exits.UNREACHABLE, 1)
    assert ran.said == "It is not all there: No node answered: what it holds is not known. [node-silent]\n"


def test_what_is_too_much_for_one_call_is_imported_by_several(messages, monkeypatch):
    monkeypatch.setattr(portions, "LINES_MAX", 2)
    lines = "".join(json.dumps({"text": f"line {number}"}) + "\n" for number in range(5))
    ran = mq("import", "msg", "queue/orders", "--idempotency-key", "k", "--json", typed=lines)
    assert (ran.code, ran.document) == (exits.DONE, {"sent": 5})
    assert mq("import", "msg", "queue/orders", "--idempotency-key", "k", "--json", typed=lines).document == {"sent": 5}
    ran = mq("import", "msg", "queue/orders", typed=lines + "no json\n")
    assert ran.code == exits.UNFINISHED
    assert "4 messages were sent, those before line 5" in ran.said
    audited = "SELECT (result ->> 'sent')::int FROM surety.audit WHERE what = 'import' AND result ? 'sent' ORDER BY entry"
    assert facts.rows(messages.dsn, audited) == [(2,), (2,), (1,), (2,), (2,)], "the repetition with the same key sends nothing"


@pytest.mark.parametrize(("octets", "sizes"), [(8, [8, 4]), (7, [4, 4, 4]), (3, [4])])
def test_a_portion_has_no_more_octets_than_a_call_takes(octets, sizes, monkeypatch, tmp_path):
    monkeypatch.setattr(portions, "LINES_OCTETS_MAX", octets)
    (tmp_path / "lines").write_bytes(b"abc\n" * 3)
    found = list(portions.portions(str(tmp_path / "lines"), sys.stdin))
    assert [len(lines) for lines in found][: len(sizes)] == sizes


class _Ending(io.StringIO):
    """Standard input that gives its lines, and then this."""

    def __init__(self, lines, ending):
        super().__init__(lines)
        self._ending = ending

    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            raise self._ending
        return line


@pytest.mark.parametrize(
    ("ending", "code", "why"),
    [(KeyboardInterrupt(), exits.STOPPED, "Stopped: "), (OSError(5, "Input/output error"), exits.UNFINISHED, "- cannot be read (Input/output error)")],
    ids=["Ctrl-C", "unreadable"],
)
def test_an_import_that_stops_half_way_says_what_was_sent(messages, monkeypatch, ending, code, why):
    monkeypatch.setattr(portions, "LINES_MAX", 2)
    lines = "".join(json.dumps({"text": f"line {number}"}) + "\n" for number in range(3))
    terminal = Terminal(_Ending(lines, ending), io.StringIO(), io.StringIO())
    assert main(["import", "msg", "queue/orders"], terminal) == code
    assert "2 messages were sent, those before line 3" in terminal.stderr.getvalue()
    assert why in terminal.stderr.getvalue()
    assert facts.rows(messages.dsn, "SELECT sum((result ->> 'sent')::int) FROM surety.audit WHERE what = 'import'") == [(2,)]


def test_an_import_that_is_refused_half_way_says_to_programs_what_was_sent(messages, monkeypatch):
    monkeypatch.setattr(portions, "LINES_MAX", 2)
    ran = mq("import", "msg", "queue/orders", "--json", typed='{"text": "a"}\n{"text": "b"}\nno json\n')
    assert (ran.code, json.loads(ran.said)["code"]) == (exits.UNFINISHED, "invalid")
    assert json.loads(ran.said)["detail"].startswith("2 messages were sent, those before line 3;")
