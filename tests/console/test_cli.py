"""`manage.py mq` on this installation: its commands do what the API does, in this process."""

import json
import os
import pwd
import re

import pytest
from django.test import override_settings

from console.cli import exits
from tests.console import facts
from tests.console.api import granted, person
from tests.console.engine_node import EngineNode
from tests.console.terminal import mq


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


def test_a_list_that_is_given_in_parts_is_all_of_them(database):
    ran = mq("create", "token", "ci", "--scope", "write", "--verbs", "manage", "--patterns", "queue/a", "--verbs", "metrics", "send", "--patterns", "queue/b")
    assert ran.code == exits.DONE
    [made] = mq("list", "token", "--json").document["items"]
    assert (made["verbs"], made["patterns"]) == (["metrics", "send", "manage"], ["queue/a", "queue/b"])


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
