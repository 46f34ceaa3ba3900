"""`manage.py mq` on this installation: its commands do what the API does, in this process."""

import io
import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings
from django.urls import Resolver404, resolve

from console.cli import commands, described, exits, portions
from console.cli.completion import script
from console.cli.described import form
from console.cli.options import parser_of, split
from console.cli.program import Terminal, main
from console.services import browsing
from console.services.looking import NodeSilent
from tests.console import facts
from tests.console.api import granted, person
from tests.console.engine_node import EngineNode
from tests.console.store_node import StoreNode
from tests.console.terminal import mq

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 3}) as node:
        yield node


# -- refused ----------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], ""),
        (["lsit", "dst"], "There is no lsit: the verbs are list,"),
        (["pause"], "There is no pause: pause takes dst, svc."),
        (["pause", "usr"], "There is no pause usr: pause takes dst, svc."),
        (["list", "dst", "--lmit", "5"], "Unrecognized arguments: --lmit 5."),
        (["list", "dst", "--limit", "0"], "Argument --limit: '0' must be a whole number from 1 on."),
        (["list", "dst", "--sort", "colour"], "Argument --sort: invalid choice"),
        (["purge", "dst"], "The following arguments are required: DESTINATION."),
        (["create", "dst", "queue/a", "-o", "max_messages"], "settings: 'max_messages' must be NAME=VALUE."),
        (["create", "dst", "queue/a", "-o", "max_messages=many"], "settings: 'many' must be a whole number."),
        (["create", "dst", "queue/a", "-o", "use_dead=1"], "settings: '1' must be true or false."),
        (["create", "usr", "shop"], "Give the password with --password-file FILE"),
        (["create", "usr", "shop", "--password-file", "/not/there"], "password: /not/there cannot be read (No such file or directory)."),
        (["create", "link", "a", "-o", "passcode=secret"], "write passcode=@FILE"),
        (["list", "dst", "--token", "surety_x"], "A token goes with --url"),
        (["purge", "dst", "1", "--idempotency-key", "k"], "goes with --depth"),
        (["query", "msg", "7", "4-1/body"], "key: '4-1/body' is none."),
        (["query", "usr", "a\udcff"], "is not in the encoding"),
        (["completion", "csh"], "Completion is for bash, zsh, fish"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong_and_asks_nothing(words, sentence, database):
    ran = mq(*words)
    assert ran.code == exits.USAGE
    assert sentence in ran.said
    assert facts.rows(database, "SELECT count(*) FROM surety.audit WHERE who = 'olga'") == [(0,)]


def test_what_the_api_refuses_is_its_sentence_on_standard_error_and_one_of_the_exit_codes(node):
    ran = mq("create", "dst", "queue/orders")
    assert (ran.code, ran.told) == (exits.REFUSED, "")
    assert ran.said == "a destination with this name exists already (queue/orders). [refused]\n"
    assert mq("query", "dst", "queue/none").said == "There is no destination queue/none, or you may not see it. [not-found]\n"
    assert mq("query", "dst", "4711").code == exits.REFUSED
    ran = mq("create", "dst", "orders", "--json")
    assert json.loads(ran.said)["code"] == "invalid"
    assert ran.code == exits.REFUSED


def test_several_mistakes_are_all_told(database):
    ran = mq("create", "dst", "queue/a", "-o", "max_messages=-9", "-o", "sizes=5")
    assert ran.code == exits.REFUSED
    assert "settings" in ran.said


@pytest.mark.parametrize("typed", ["no\n", "y\n", "", "\n"])
def test_what_discards_is_not_done_before_a_person_types_yes(typed, node, database):
    ran = mq("purge", "dst", "queue/orders", typed=typed)
    assert ran.code == exits.REFUSED
    assert ran.said.startswith("queue/orders: 3 of 3 messages would be discarded. purge dst ")
    assert "Type yes to go on: Nothing was done." in ran.said
    assert ("--force" in ran.said) == (typed == "")
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request") == [(0,)]


@override_settings(CONTROL_WAIT_SECONDS=0.05, LOOK_WAIT_SECONDS=0.05)
def test_without_a_node_nothing_is_discarded_and_nothing_is_waited_for_twice(database):
    facts.destination(database, 7, "queue/orders")
    ran = mq("purge", "dst", "queue/orders", "--force")
    assert ran.code == exits.UNREACHABLE
    assert ran.said == "How many messages there are is not known: no node tells it. Nothing was done; say --depth if you know.\n"
    ran = mq("list", "msg", "queue/orders")
    assert (ran.code, ran.said) == (exits.UNREACHABLE, "No node answered: what it holds is not known. [node-silent]\n")


def test_a_request_that_lapsed_is_said_to_have(database, monkeypatch):
    monkeypatch.setattr("console.cli.program.POLL_SECONDS", 0)
    facts.destination(database, 7, "queue/orders")
    facts.execute(database, "CREATE FUNCTION surety.late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.deadline := 1; RETURN NEW; END'")
    facts.execute(database, "CREATE TRIGGER late BEFORE INSERT ON surety.control_request FOR EACH ROW EXECUTE FUNCTION surety.late()")
    try:
        with override_settings(CONTROL_WAIT_SECONDS=0.01):
            ran = mq("pause", "dst", "queue/orders")
    finally:
        facts.execute(database, "DROP FUNCTION surety.late CASCADE")
    assert (ran.code, ran.said) == (exits.UNREACHABLE, "No node answered in time, and none will do it any more. [lapsed]\n")


# -- who ---------------------------------------------------------------------------------------------------------------------------------------
def test_it_is_the_operator_of_the_installation_and_the_audit_says_from_where(node, database):
    assert mq("query", "me", "--json").document["name"] == "olga"
    assert mq("pause", "dst", "queue/orders").code == exits.DONE
    mine = pwd.getpwuid(os.getuid()).pw_name
    assert facts.rows(database, "SELECT who, origin, what FROM surety.audit WHERE what = 'pause'") == [("olga", f"command line of {mine}", "pause")]


def test_it_may_be_another_operator_who_may_what_he_may(node, database):
    granted(person("vera", role="restricted"), "queue/else", "metrics")
    assert mq("list", "dst", "--as", "vera", "--json").document == {"items": [], "next": None}
    assert mq("list", "usr", "--as", "vera").code == exits.NOT_ALLOWED
    ran = mq("list", "dst", "--as", "nobody")
    assert (ran.code, ran.said) == (exits.NOT_ALLOWED, "There is no operator nobody, or he is disabled.\n")


def test_without_the_operator_of_the_settings_it_is_the_first_administrator(database):
    with override_settings(ADMIN_USER="gone"):
        assert mq("query", "me", "--json").document["name"] == "olga"
    facts.execute(database, "UPDATE auth_user SET is_active = false")
    try:
        ran = mq("query", "me")
    finally:
        facts.execute(database, "UPDATE auth_user SET is_active = true")
    assert ran.code == exits.REFUSED
    assert "Nobody is an administrator here" in ran.said


# -- done --------------------------------------------------------------------------------------------------------------------------------------
def test_a_destination_from_its_creation_to_its_end(node):
    assert mq("create", "dst", "queue/new", "-o", "max_messages=5", "-o", "limit_behavior=REJECT_NEWEST").code == exits.DONE
    shown = mq("query", "dst", "queue/new", "--json").document
    assert (shown["address"], shown["settings"]["max_messages"]) == ("queue/new", 5)
    assert mq("update", "dst", "queue/new", "-o", "max_messages=6").code == exits.DONE
    assert re.search(r"settings.max_messages +6\n", mq("query", "dst", "queue/new").told)
    assert mq("pause", "dst", "queue/new", "--direction", "PRODUCERS").code == exits.DONE
    assert mq("query", "dst", str(shown["number"]), "--json").document["state"] == "PRODUCERS_PAUSED"
    assert mq("resume", "dst", "queue/new").code == exits.DONE
    ran = mq("destroy", "dst", "queue/new", typed="yes\n")
    assert ran.code == exits.DONE
    assert ran.said.startswith("queue/new: 0 of 0 messages would be discarded.")
    assert mq("query", "dst", "queue/new").code == exits.REFUSED


def test_a_purge_is_of_the_depth_that_was_counted(node, database):
    assert mq("purge", "dst", "queue/orders", "--dry-run", "--json").document["discarded"] == 3
    ran = mq("purge", "dst", "queue/orders", "--force")
    assert (ran.code, ran.told, ran.said) == (exits.DONE, "Done: undo 1, purged 3, undoable 3, outstanding 0.\n", "")
    assert facts.rows(database, "SELECT arguments FROM surety.control_request WHERE verb = 'purge'") == [({"depth": 3},)]


def test_a_list_is_a_table_for_people_and_a_document_for_scripts(node):
    for name in "cab":
        mq("create", "dst", f"queue/{name}")
    table = mq("list", "dst", "--search", "queue/", "--limit", "3")
    head, *lines = table.told.splitlines()
    assert head.split()[:3] == ["address", "state", "consumers"]
    assert [line.split()[0] for line in lines] == ["queue/a", "queue/b", "queue/c"]
    page = mq("list", "dst", "--limit", "3", "--json").document
    assert table.said.startswith(f"There is more: --after {page['next']}, --limit or --all.")
    assert len(page["items"]) == 3
    rest = mq("list", "dst", "--after", page["next"], "--json").document
    assert [each["address"] for each in rest["items"]] == ["queue/mq.sys.dmq", "queue/orders"]
    assert rest["next"] is None
    assert mq("list", "link").said == "There is none.\n"


def test_a_purge_with_a_key_is_done_once(node, database):
    words = ("purge", "dst", "queue/orders", "--force", "--depth", "3", "--idempotency-key", "k1", "--json")
    assert mq(*words).document == mq(*words).document
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request WHERE verb = 'purge'") == [(1,)]


def test_definitions_that_remove_what_they_do_not_have_are_agreed_to(node, tmp_path):
    (tmp_path / "definitions.yaml").write_text("aliases: {}\n")
    assert mq("create", "alias", "queue/a", "--target", "queue/orders").code == exits.DONE
    words = ("apply", "definitions", "--file", str(tmp_path / "definitions.yaml"), "--prune")
    ran = mq(*words, typed="no\n")
    assert (ran.code, "What the document does not have is removed" in ran.said) == (exits.REFUSED, True)
    assert mq("query", "alias", "queue/a").code == exits.DONE
    assert mq(*words, "--force").code == exits.DONE
    assert mq("query", "alias", "queue/a").code == exits.REFUSED


def test_all_of_a_list_is_fetched_by_pages(database, monkeypatch):
    monkeypatch.setattr("console.cli.program.PAGE_MAX", 2)
    for number in range(5):
        facts.destination(database, 10 + number, f"queue/{number}")
    assert len(mq("list", "dst", "--all", "--json").document["items"]) == 5
    assert len(mq("list", "dst", "--limit", "3", "--json").document["items"]) == 3


def test_accounts_and_operators_get_their_passwords_from_files(node, tmp_path, database):
    (tmp_path / "password").write_text("correct horse 9\n")
    assert mq("create", "usr", "shop", "--password-file", str(tmp_path / "password")).told == "Done.\n"
    assert mq("update", "usr", "shop", "--password-file", "-", "--overlap-seconds", "60", typed="battery staple 7\n").code == exits.DONE
    assert mq("update", "usr", "shop", "--groups", "a", "b", "--disabled").code == exits.DONE
    shown = mq("query", "usr", "shop", "--json").document
    assert (shown["groups"], shown["disabled"]) == (["a", "b"], True)
    assert mq("add", "operator", "vera", "--password-file", str(tmp_path / "password"), "--role", "viewer").code == exits.DONE
    assert mq("delete", "usr", "shop", typed="yes\n").code == exits.DONE
    assert "correct horse" not in json.dumps(facts.rows(database, "SELECT arguments FROM surety.audit"))


def test_a_person_is_asked_for_a_password_twice_and_sees_neither(database, monkeypatch):
    typed = iter(["correct horse 9", "correct horse 8", "correct horse 9", "correct horse 9"])
    monkeypatch.setattr("console.cli.program.getpass", lambda prompt, stream: next(typed))
    ran = mq("create", "usr", "shop", there=True)
    assert (ran.code, ran.said) == (exits.USAGE, "They are not the same.\n")
    assert mq("create", "usr", "shop", there=True).told == "Done.\n"


def test_ctrl_c_leaves_an_operation_running_and_says_how_to_go_on(messages, monkeypatch):
    running = {"number": 7, "state": "running", "done": 3, "skipped": 0, "failed": 0, "looked_at": 4, "total": None, "verb": "copy", "error": ""}
    monkeypatch.setattr("console.cli.program._Run._outcome", lambda run, answer: running)

    def stop(progress, operation):
        raise KeyboardInterrupt

    monkeypatch.setattr("console.cli.following.Progress.tell", stop)
    ran = mq("copy", "msg", "queue/orders", "--to", "queue/orders", "--force")
    assert (ran.code, ran.said) == (exits.STOPPED, "It goes on: `query operation 7` tells how far it is, `cancel operation 7` ends it.\n")


def test_what_is_named_and_set_up_is_made_and_taken_away(node, tmp_path):
    (tmp_path / "passcode").write_text("secret\n")
    for words in (
        ["update", "policy", "queue/orders.*", "-o", "redelivery_max=3"],
        ["create", "dst", "queue/second"],
        ["create", "alias", "queue/other", "--target", "queue/orders"],
        ["update", "alias", "queue/other", "--target", "queue/second"],
        ["create", "obj", "shop", "--kind", "factory"],
        ["update", "obj", "shop", "-o", "reconnect_interval=30"],
        ["create", "link", "far", "-o", "host=broker.example", "-o", "login=a", "-o", f"passcode=@{tmp_path}/passcode"],
        ["create", "rule", "--resource", "queue/a", "--operation", "consume", "--no-allow", "--principal", "*"],
        ["create", "grant", "queue/a", "--role", "viewer", "--verbs", "purge", "send"],
    ):
        ran = mq(*words)
        assert ran.code == exits.DONE, (words, ran)
    assert mq("query", "policy", "queue/orders.*", "--json").document["settings"] == {"redelivery_max": 3}
    assert mq("query", "link", "far", "--json").document["has_passcode"]
    assert [each["pattern"] for each in mq("list", "grant", "--json").document["items"]][-1] == "queue/a"
    for words in (["policy", "queue/orders.*"], ["alias", "queue/other"], ["obj", "shop"], ["link", "far"], ["rule", "5"], ["grant", "3"]):
        ran = mq("destroy", *words, typed="yes\n")
        assert ran.code == exits.DONE, (words, ran)


def test_a_token_made_here_is_shown_once(database):
    made = mq("create", "token", "ci", "--scope", "read", "--json").document
    assert made["token"].startswith("surety_")
    assert mq("destroy", "token", str(made["number"]), "--force").code == exits.DONE


def test_the_broker_tells_of_itself(node, database):
    facts.one_of_each(database)
    assert mq("query", "bkr", "--json").document["alive"] is True
    assert re.search("^ready +", mq("query", "health").told)
    assert re.search("^expire +[0-9]+ +yes", mq("list", "task").told, re.MULTILINE)
    assert mq("list", "problem").told.startswith("code ")
    assert mq("metrics", "bkr").code == exits.DONE
    for words in (["list", "txn"], ["query", "txn", "1"], ["list", "dur"], ["list", "audit", "--limit", "2"], ["query", "request", "1"]):
        ran = mq(*words)
        assert ran.code == exits.DONE, (words, ran)


# -- messages ------------------------------------------------------------------------------------------------------------------------------------
def test_what_an_end_of_a_subscription_or_of_an_undo_would_discard_is_said_before(node, database):
    mq("purge", "dst", "queue/orders", "--force")
    ran = mq("destroy", "undo", "1", typed="no\n")
    assert (ran.code, "3 of 3 messages would be discarded" in ran.said) == (exits.REFUSED, True)
    mq("create", "dst", "topic/prices")
    made = mq("create", "dur", "topic/prices", "audit", "--account", "guest", "--client-id", "c", "--json").document["result"]["subscription"]
    for verb in ("purge", "destroy"):
        assert mq(verb, "dur", str(made), "--dry-run", "--json").document["discarded"] == 0
        assert "0 of 0 messages would be discarded" in mq(verb, "dur", str(made), typed="no\n").said
    assert mq("purge", "dur", str(made), typed="yes\n").code == mq("destroy", "dur", str(made), "--force").code == exits.DONE


@pytest.fixture
def messages(database):
    with StoreNode(database) as node:
        node.send(b"one", b"two", b"three")
        yield node


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


def test_what_clients_wrote_does_not_reach_the_terminal_as_it_is(messages):
    messages.send("a\x1b[2Jb\u202ec".encode())
    key = mq("list", "msg", "queue/orders", "--order", "newest", "--json").document["items"][0]["key"]
    told = mq("query", "msg", "queue/orders", key).told
    assert r"a\x1b[2Jb\u202ec" in told
    assert "\x1b" not in told


# -- complete ------------------------------------------------------------------------------------------------------------------------------------
def test_every_call_of_the_api_has_a_command_or_a_reason_for_none():
    calls = set(described.operations())
    told = {(each.method, described.form(each.path)) for each in commands.COMMANDS}
    assert told <= calls
    assert calls - told == set(commands.WITHOUT)
    assert len(commands.BY_NAME) == len(commands.COMMANDS)


@pytest.mark.parametrize("command", commands.COMMANDS, ids=lambda each: each.name)
def test_every_command_tells_what_it_takes(command):
    ran = mq(command.verb, command.object, "--help")
    assert ran.code == exits.DONE
    assert described.describe(command).summary in ran.told
    options = [option for each in described.describe(command).arguments if (option := each.option)]
    assert len(options) == len(set(options))
    assert parser_of(command, described.describe(command)).prog.endswith(command.name)


def _rows() -> list[list[str]]:
    table = OPERATIONS.read_text().partition("## Command line")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ") and "| what |" not in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_table_of_operations_names_the_command_that_does_each_of_them():
    named = set()
    for row in _rows():
        assert len(row) == 3, row
        found = re.findall(r"`mq ([a-z]+ [a-z]+)", row[2])
        assert found or re.match(r"not yet|none: |`manage.py ", row[2]), row
        assert found or not re.search("(GET|POST|PUT|PATCH|DELETE) ", row[1]), row
        named |= set(found)
    assert named == {command.name for command in commands.COMMANDS} - EXPLAINED


def test_the_table_of_operations_says_no_command_call_or_page_that_is_not_there():
    called, wrong = {(method, form(path)) for method, path in described.operations()}, []
    for _, here, commanded in _rows():
        for words in re.findall(r"`mq ([^`]*)`", commanded):
            _, (verb, thing, *rest) = split(shlex.split(words))
            command = commands.find(verb, thing)
            try:
                parser_of(command, described.describe(command)).parse_args(["x" if word == "..." else word for word in rest])
            except exits.Ended as ended:
                wrong += [words] * ("are required" not in ended.sentence)  # some are cut short
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) ([a-z][^ ?`]*)", here):
            found = form(re.sub(r"/(commit|pause)$", "/{verb}", path) if path.startswith("branches") else path)
            wrong += [(method, path)] * ((method, found) not in called)
        for page in re.findall(r"`/([a-z]+)(?:/<n>)?(?:/(?:[a-z]+|<key>))*`", here):
            wrong += [page] * (not resolves(f"/{page}") and not resolves(f"/{page}/ready"))
    assert wrong == []


def resolves(path: str) -> bool:
    try:
        return bool(resolve(path))
    except Resolver404:
        return False


EXPLAINED = {"list problem", "query me", "query request"}
"""What no operator of another broker asks for."""


# -- completion ------------------------------------------------------------------------------------------------------------------------------------
def _completed(line: str) -> list[str]:
    words = line.split(" ")
    typed = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}"
    asked = f"{script('bash')}\n{typed}; _surety_mq; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-uc", asked], capture_output=True, text=True, timeout=20)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_verbs_objects_and_options():
    assert subprocess.run(["bash", "-n"], input=script("bash"), capture_output=True, text=True, timeout=20).stderr == ""
    assert _completed("mq pu") == ["purge"]
    assert _completed("mq purge ") == ["dst", "msg", "dur"]
    assert _completed("mq purge dst queue/a --dry") == ["--dry-run"]
    assert _completed("mq completion z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_told_of_every_command(shell):
    text = mq("completion", shell).told
    for command in commands.COMMANDS:
        assert command.verb in text
        assert command.object in text
