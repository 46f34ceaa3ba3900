"""The definitions of the broker as one document: planned, applied, exported; applied twice it changes nothing."""

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as s

from console.cli import exits
from console.services import accounts, definitions
from console.services.audit import Actor
from console.services.definition_kinds import KINDS
from console.services.definition_text import Document, written
from tests.console import facts
from tests.console.api import call, problem
from tests.console.conftest import OPERATOR
from tests.console.engine_node import EngineNode
from tests.console.terminal import mq

DOCUMENT = """
version: 1
links:
  far: {host: far.example, login: surety, tls: true}
destinations:
  queue/orders: {max_messages: 5, redelivery_multiplier: 3}
  queue/far: {foreign_link: far}
  topic/news:
policies:
  queue/orders.*: {redelivery_max: 3}
aliases:
  queue/old: {target: queue/orders}
accounts:
  shop: {groups: [sales, east], connections_max: 4, persistent_reliability: express}
access:
- {resource: queue/salaries.>, operation: consume, principal: shop, allow: false}
objects:
  jms/F: {kind: factory, attributes: {reconnect_attempts: 4}}
grants:
- {role: viewer, pattern: queue/orders, verbs: [browse_bodies, send]}
"""
EMPTY = written({name: [] if kind.key else {} for name, kind in KINDS.items()})


@pytest.fixture
def node(database):
    with EngineNode(database) as node, override_settings(CONTROL_WAIT_SECONDS=5.0):
        yield node
    if not facts.rows(database, "SELECT name FROM surety.account WHERE name = 'guest'"):
        accounts.insert("guest", "guest", loopback_only=True)


@pytest.fixture
def actor(database):
    return Actor(User.objects.get(username=OPERATOR), "10.0.0.1")


def exported(client):
    return b"".join(call(client, "GET", "definitions").streaming_content).decode()


def applied(client, document, query=""):
    response = call(client, "POST", f"definitions{query}", document)
    assert response.status_code == 200, response.document
    return response.document


def told(plan):
    return [(step["kind"], step["name"], step["action"], step["state"]) for step in plan["steps"]]


# -- what cannot be ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("document", "errors"),
    [
        ("[]", {"": "must be an object of links, destinations"}),
        ("queues: {}", {"queues": "line 1: there is no such kind"}),
        ("version: 2", {"version": "line 1: the version must be 1"}),
        ("access: {}", {"access": "line 1: must be a list"}),
        (
            "destinations:\n  queue/a: {max_messages: many, colour: red}\n  queue/b: {max_messages: 0}\n  orders:\n"
            "aliases:\n  queue/b: {target: queue/c}\n  queue/d:",
            {
                'destinations["queue/a"].max_messages': "line 2: must be a whole number",
                'destinations["queue/a"].colour': "line 2: there is no such member",
                'destinations["queue/b"]': "line 3: max_messages must be -1",
                "destinations.orders": "line 4: the destination's name is not valid",
                'aliases["queue/d"]': "line 7: target must be given",
                'aliases["queue/b"]': "line 6: a destination of this name",
            },
        ),
        ("policies: {queue/a.*: {max_backup_consumers: x}}", {'policies["queue/a.*"]': "max_backup_consumers must be"}),
        ("destinations: {queue/a: {foreign_address: x}}", {'destinations["queue/a"]': "name the foreign_link"}),
        (
            "accounts: {a: {groups: ['*']}, ' b': }\nlinks: {far: {host: x, passcode: s3cret}}\nobjects: {x: {kind: rocket}}",
            {"accounts.a": "at most 100 groups", 'accounts[" b"]': "Give the account a name", "links.far": "no secrets", "objects.x": "The kind must be"},
        ),
        (
            "access:\n- {resource: nonsense, operation: consume, principal: a}\ngrants:\n- {operator: nobody, pattern: queue/a, verbs: [send]}\n"
            "- {role: viewer, pattern: queue/b, verbs: [fly]}",
            {"access[0]": "line 2: A pattern is", "grants[0]": "There is no operator nobody", "grants[1]": "line 5: Name the verbs"},
        ),
        ("access:\n- &a {resource: '>', operation: consume, principal: a}\n- *a", {"access[0]": "line 2: anchors"}),
        (
            "accounts: {guest: {loopback_only: false}}\naccess: [{resource: a, operation: b, principal: c}, {resource: a, operation: b, principal: c}]",
            {"access[1]": "twice"},
        ),
        (
            "schedule: {cook: {seconds: 9}, expire: {seconds: 1}, reap: {enabled: true}}",
            {"schedule.reap": "seconds must be given"},
        ),
        ("schedule: {cook: {seconds: 9}, expire: {seconds: 1}}", {"schedule.cook": "There is no task cook", "schedule.expire": "every 5 to"}),
        ("accounts: {guest: {loopback_only: false}}", {"accounts.guest.loopback_only": "cannot be changed: remove it"}),
    ],
)
def test_where_anything_cannot_be_nothing_is_applied_and_all_of_it_is_named(document, errors, operator, database):
    facts.empty_audit(database)
    response = call(operator, "POST", "definitions", document)
    problem(response, 400, "invalid")
    found = {each["field"]: each["message"] for each in response.document["errors"]}
    assert found.keys() == errors.keys(), found
    assert all(sentence in found[path] for path, sentence in errors.items()), found
    assert b"s3cret" not in response.content
    assert facts.rows(database, "SELECT what FROM surety.audit") == []
    assert facts.rows(database, "SELECT name FROM surety.account") == [("guest",)]


def test_a_document_of_more_than_its_octets_is_not_read(operator):
    problem(call(operator, "POST", "definitions", "#" * 1_048_577), 413, "too-large")
    problem(call(operator, "POST", "definitions", {"accounts": {}}), 415, "media-type")
    problem(call(operator, "POST", "definitions?dryrun=true", "version: 1"), 400, "invalid")


# -- a plan, what comes of it -----------------------------------------------------------------------------------------------------------
def test_a_dry_run_tells_and_does_nothing(operator, database):
    before = exported(operator)
    plan = applied(operator, DOCUMENT, "?dry_run=true")
    assert {state for _, _, _, state in told(plan)} == {"planned"}
    assert (plan["done"], plan["undone"], plan["dry_run"]) == (0, 0, True)
    assert told(plan)[:2] == [("links", "far", "create", "planned"), ("destinations", "queue/orders", "create", "planned")]
    assert ("access", "queue/salaries.> consume false shop false", "create", "planned") in told(plan)
    shop = next(step for step in plan["steps"] if step["name"] == "shop")
    assert ["they are lost" in shop["warnings"][0], "set its password" in shop["warnings"][1]] == [True, True]
    assert exported(operator) == before
    assert facts.rows(database, "SELECT what FROM surety.audit WHERE what <> 'login'") == []


def test_a_document_is_applied_once_and_then_changes_nothing(operator, node, database):
    first = applied(operator, DOCUMENT)
    assert (first["done"], first["undone"], first["unchanged"]) == (10, 0, 0), told(first)
    assert call(operator, "GET", "destinations?address=queue/orders").document["items"][0]["settings"]["max_messages"] == 5
    assert call(operator, "GET", "accounts/shop").document["groups"] == ["east", "sales"]
    who = facts.rows(database, "SELECT what FROM surety.audit WHERE who = 'olga' ORDER BY entry")
    assert [what for (what,) in who][:3] == ["definitions apply", "link create", "create"]
    again = applied(operator, DOCUMENT)
    assert (again["done"], again["unchanged"], again["steps"]) == (0, 10, [])
    assert (applied(operator, exported(operator))["steps"], exported(operator)) == ([], exported(operator))


def test_what_differs_is_changed_from_one_to_the_other(operator, node):
    applied(operator, DOCUMENT)
    changed = DOCUMENT.replace("max_messages: 5, ", "max_octets: 9, ").replace("[sales, east]", "[west]").replace("redelivery_max: 3", "max_messages: 7")
    changed = changed.replace("[browse_bodies, send]", "[send]").replace("reconnect_attempts: 4", "reconnect_attempts: 5").replace("tls: true", "tls: false")
    changed = changed.replace("target: queue/orders", "target: queue/other")
    plan = applied(operator, changed)
    assert {step["name"]: step["changes"] for step in plan["steps"]} == {
        "far": {"tls": {"from": True, "to": False}},
        "queue/orders": {"max_messages": {"from": 5, "to": -1}, "max_octets": {"from": -1, "to": 9}},
        "queue/orders.*": {"redelivery_max": {"from": 3, "to": None}, "max_messages": {"from": None, "to": 7}},
        "queue/old": {"target": {"from": "queue/orders", "to": "queue/other"}},
        "shop": {"groups": {"from": ["east", "sales"], "to": ["west"]}},
        "jms/F": {"attributes": {"from": {"reconnect_attempts": 4}, "to": {"reconnect_attempts": 5}}},
        "viewer queue/orders": {"verbs": {"from": ["browse_bodies", "send"], "to": ["send"]}},
    }
    assert (plan["done"], plan["unchanged"]) == (7, 3)
    assert applied(operator, changed)["steps"] == []


def test_what_is_not_in_the_document_stays_unless_it_is_pruned(operator, node):
    applied(operator, DOCUMENT)
    assert applied(operator, "accounts: {}\ndestinations: {}")["steps"] == []
    plan = applied(operator, "accounts: {shop: {connections_max: 4}}\ndestinations: {queue/far: {foreign_link: far}}\naliases:", "?prune=true")
    assert sorted(told(plan)) == [
        ("accounts", "guest", "remove", "done"), ("accounts", "shop", "change", "done"), ("aliases", "queue/old", "remove", "done"),
        ("destinations", "queue/orders", "remove", "done"), ("destinations", "topic/news", "remove", "done"),
    ]  # fmt: skip
    assert "queue/mq.sys.dmq" in exported(operator), "the broker's own stays"


def test_how_often_a_task_runs_is_in_the_document(operator, database):
    before = exported(operator)
    plan = applied(operator, "schedule: {expire: {seconds: 20, enabled: false}}", "?prune=true")
    assert [(step["name"], step["changes"]) for step in plan["steps"]] == [
        ("expire", {"seconds": {"from": 10, "to": 20}, "enabled": {"from": True, "to": False}})
    ]
    assert "expire:\n    seconds: 20\n    enabled: false" in exported(operator)
    applied(operator, before)
    assert exported(operator) == before


def test_the_command_line_exports_plans_and_applies(operator, node):
    plan = mq("apply", "definitions", "--dry-run", "--json", typed=DOCUMENT)
    assert (plan.code, plan.document["dry_run"], len(plan.document["steps"])) == (exits.DONE, True, 10), plan.said
    assert mq("apply", "definitions", typed=DOCUMENT).code == exits.DONE
    assert mq("export", "definitions").told == exported(operator)
    assert mq("apply", "definitions", typed="aliases: {queue/b: {target: queue/b}}").code == exits.UNFINISHED, "the node refuses it"
    wrong = mq("apply", "definitions", typed="queues: {}")
    assert (wrong.code, "line 1: there is no such kind" in wrong.said) == (exits.REFUSED, True), wrong.said


def test_a_name_goes_from_a_destination_to_an_alias_in_one_document(operator, node):
    applied(operator, "destinations: {queue/a: }")
    plan = applied(operator, "aliases: {queue/a: {target: queue/b}}\ndestinations: {queue/b: }", "?prune=true")
    assert (plan["undone"], [name for _, name, _, _ in told(plan)]) == (0, ["queue/a", "queue/b", "queue/a"])


# -- what fails -------------------------------------------------------------------------------------------------------------------------
def test_a_destination_with_messages_is_not_pruned_and_the_rest_goes_on(database, operator):
    with EngineNode(database, {"queue/full": 2}), override_settings(CONTROL_WAIT_SECONDS=5.0):
        applied(operator, "destinations: {queue/full: }")
        aliases = "aliases: {queue/b: {target: queue/b}, queue/c: {target: topic/c}, queue/d: {target: queue/e}}"
        plan = applied(operator, f"destinations: {{queue/new: }}\n{aliases}", "?prune=true")
    assert told(plan) == [
        ("destinations", "queue/full", "remove", "refused"), ("destinations", "queue/new", "create", "done"), ("aliases", "queue/b", "create", "refused"),
        ("aliases", "queue/c", "create", "refused"), ("aliases", "queue/d", "create", "done"),
    ]  # fmt: skip
    assert (plan["done"], plan["undone"]) == (2, 3)
    assert "circle" in plan["steps"][2]["problem"]


def test_without_a_node_the_database_s_part_is_done_and_the_rest_is_left(operator, database):
    with override_settings(CONTROL_WAIT_SECONDS=0):
        plan = applied(operator, "destinations: {queue/a: , queue/b: }\naccounts: {shop: }")
    assert [state for _, _, _, state in told(plan)] == ["unanswered", "left", "done"]


def test_time_ends_what_takes_long_and_applying_again_does_the_rest(actor, monkeypatch):
    many = "accounts: {a: , b: , c: }"
    planned = definitions.apply(actor, many, dry_run=True, prune=False)
    monkeypatch.setattr(definitions, "SECONDS_MAX", 0)
    definitions._perform(actor, planned.steps)
    assert planned.count("left") == 3
    monkeypatch.undo()
    assert definitions.apply(actor, many, dry_run=False, prune=False).count("done") == 3


def test_secrets_are_never_in_an_export(operator, database):
    call(operator, "POST", "links", {"name": "far", "attributes": {"host": "far.example", "login": "surety", "passcode": "s3cret"}})
    call(operator, "POST", "accounts", {"name": "shop", "password": "s3cret and more"})
    assert "s3cret" not in exported(operator)
    applied(operator, "links: {far: {host: other.example, login: surety}}")
    assert facts.rows(database, "SELECT passcode FROM surety.foreign_link") == [("s3cret",)], "it keeps the one that it has"


# -- export, apply, export --------------------------------------------------------------------------------------------------------------
_NAMES = s.text("ab.-_ äß", min_size=1, max_size=5).filter(lambda name: name == name.strip() and not name.startswith("mq"))
_QUEUES = _NAMES.map("queue/{}".format)
_SETTINGS = s.fixed_dictionaries(
    {}, optional={
        "max_messages": s.integers(1, 9), "redelivery_multiplier": s.floats(1, 9), "use_dead": s.booleans(), "dead_queue": s.just("queue/dead"),
        "limit_behavior": s.sampled_from(["REMOVE_OLDEST", "REJECT_NEWEST"]), "default_reliability": s.sampled_from(["none", "assured"]),
    },
)  # fmt: skip
_ACCOUNTS = s.fixed_dictionaries(
    {},
    optional={
        "disabled": s.booleans(), "loopback_only": s.booleans(), "groups": s.lists(s.sampled_from("xyz"), max_size=3), "sessions_max": s.integers(0, 9),
    },
)
_RULES = s.fixed_dictionaries(
    {"resource": s.sampled_from([">", "queue/a.*", "topic/**"]), "operation": s.sampled_from(["consume", "create"]), "principal": s.sampled_from(["*", "a"])},
    optional={"allow": s.booleans(), "group": s.booleans()},
)
_GRANTS = s.fixed_dictionaries(
    {"role": s.sampled_from(["viewer", "operator"]), "pattern": s.sampled_from([">", "queue/a.*"]),
     "verbs": s.lists(s.sampled_from(["send", "metrics", "purge"]), min_size=1, max_size=3)},
)  # fmt: skip
_DOCUMENTS = s.fixed_dictionaries({
    "destinations": s.dictionaries(_QUEUES | _NAMES.map("topic/{}".format), _SETTINGS, max_size=2),
    "policies": s.dictionaries(s.sampled_from(["queue/a.*", "topic/>"]), _SETTINGS.filter(bool), max_size=1),
    "aliases": s.dictionaries(_NAMES.map("queue/alias.{}".format), s.fixed_dictionaries({"target": _QUEUES}), max_size=1),
    "accounts": s.dictionaries(_NAMES, _ACCOUNTS, max_size=3),
    "access": s.lists(_RULES, max_size=3, unique_by=lambda it: tuple({"allow": True, "group": False, **it}.items())),
    "objects": s.dictionaries(_NAMES, s.fixed_dictionaries({"kind": s.just("queue"), "attributes": s.just({"destination": "a", "priority": 4})}), max_size=2),
    "links": s.dictionaries(s.sampled_from("ab"), s.fixed_dictionaries({"host": _NAMES, "takes": s.dictionaries(_NAMES, _QUEUES, max_size=2)}), max_size=2),
    "grants": s.lists(_GRANTS, max_size=2, unique_by=lambda it: (it["role"], it["pattern"])),
})  # fmt: skip


@seed(1)
@settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(document=_DOCUMENTS)
def test_what_is_exported_and_applied_to_an_empty_broker_is_exported_again(document, node, actor):
    def done(text):
        plan = definitions.apply(actor, text, dry_run=False, prune=True)
        assert plan.count("done") == len(plan.steps), plan
        return plan

    done(written(document))
    first = definitions.export(actor)
    assert done(first).steps == []
    done(EMPTY)
    left = Document(definitions.export(actor)).value
    assert [name for name, section in left.items() if section and name != "version"] == ["destinations", "schedule"]
    assert list(left["destinations"]) == ["queue/mq.sys.dmq"]
    done(first)
    assert definitions.export(actor) == first
