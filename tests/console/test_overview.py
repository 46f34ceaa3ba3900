"""The overview: how the service is in one look."""

import re

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.models import Alert, AlertRule
from console.permissions import RESTRICTED
from tests.console import facts


def test_it_says_that_no_node_is_alive(viewer, database):
    facts.lease(database, heartbeat_seconds=60)
    page = viewer.get("/").content.decode()
    assert "No node is alive." in page
    assert "last heard of 6" in page
    assert 'data-live="overview/depth"><span class="unknown"' in page, "sums of what nobody tells are unknown"


def test_who_sees_some_destinations_only_is_shown_these(database, viewer):
    from django.contrib.auth.models import User

    from console.models import OperatorRole

    OperatorRole.objects.create(user=User.objects.get(username="vera"), role=RESTRICTED)
    assert viewer.get("/")["Location"] == "/destinations"
    assert '<a href="/"' not in viewer.get("/destinations").content.decode(), "what is refused is not offered"


def test_the_node_and_the_sums_are_shown(viewer, database):
    facts.well(database)
    for number in (1, 2):
        facts.destination(database, number, f"queue/{number}", depth=1000, octets=1 << 20, consumers=2)
    page = viewer.get("/").content.decode()
    for text in ("node-1", "epoch 7", "stomp", "2,000", "2.0 MiB"):
        assert text in page


def test_a_look_costs_eighteen_queries(viewer, database):
    """Session, person, permissions of the person and of groups, his grants, node, history, settings of the server, what needs attention, warnings (in doubt,
    the server, two of tasks), alerts, sums, sums since a reset, the database."""
    with CaptureQueriesContext(connection) as queries:
        viewer.get("/")
    assert len(queries) == 18, [query["sql"] for query in queries]


# -- what needs attention -------------------------------------------------------------------------------------------------------------
def test_nothing_is_said_to_need_attention_when_nothing_does(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=0)
    assert "Nothing needs your attention." in viewer.get("/").content.decode()


def test_what_needs_attention_is_said_with_where_to_go(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/mq.sys.dmq", depth=3, oldest_at=1)
    facts.destination(database, 2, "queue/full", depth=10, consumers=1)
    facts.destination(database, 3, "queue/unread", state=1, depth=10, oldest_at=1)
    facts.execute(database, """UPDATE surety.destination SET settings = '{"max_messages": 10}' WHERE destination = 2""")
    facts.execute(database, "INSERT INTO surety.prepared VALUES (0, 1, '1:aa:bb', 'guest', 4, 2, 1, 10, 1000, NULL)")
    page = viewer.get("/").content.decode()
    for text in (
        "1 transaction is in doubt", "1 destination is full", "3 messages on the dead message queue", "1 queue has messages that nobody consumes",
        "1 destination is paused", "/destinations?show=full", "/destinations?show=unread", "/destinations?show=paused",
    ):  # fmt: skip
        assert text in page
    assert page.index("in doubt") < page.index("is full") < page.index("is paused"), "the worst comes first"


def test_a_quiet_destination_that_is_paused_is_counted_though_nothing_is_told_of_it(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=0)
    facts.execute(database, "UPDATE surety.destination SET state = 3")
    assert "1 destination is paused" in viewer.get("/").content.decode()


def test_what_keeps_nobody_from_being_served_and_should_not_stay_so_is_said_with_where_to_go(viewer, database):
    facts.lease(database)
    metrics = {"space_low": False, "memory_level": 2, "event_loop_lag_seconds": 3, "foreign": [{"link": "paris", "state": "connecting"}]}
    facts.status(database, metrics=metrics)
    page = viewer.get("/").content.decode()
    for text in ("memory for messages is nearly full", "event loop is 3.0 s late", "inks to other brokers are not connected (paris)", 'href="/links"'):
        assert text in page
    assert "Nothing needs your attention." not in page


def test_a_node_that_lets_nobody_in_is_said_with_the_page_where_it_is_let_go_on(viewer, database):
    facts.well(database)
    facts.execute(database, """UPDATE surety.node_status SET about = '{"state": "quiesced"}'""")
    assert re.search(r'quiesced by an operator[^<]*</span><a href="/nodes">', viewer.get("/").content.decode())


def test_alerts_that_fire_are_named_and_of_many_the_newest(viewer, database):
    facts.well(database)
    rule = AlertRule.objects.first()
    for number in range(7):
        Alert.objects.create(rule=rule, subject=f"queue/{number}", value=9, since=timezone.now(), fired_at=timezone.now())
    page = viewer.get("/").content.decode()
    assert re.search(rf"Alerts firing: {rule.name} \(queue/6\).*queue/2\) and more\.</span><a href=\"/alerts\">", page)
    Alert.objects.exclude(subject="queue/3").update(fired_at=None)
    assert f"Alert firing: {rule.name} (queue/3).<" in viewer.get("/").content.decode()


def test_what_is_held_longest_and_what_is_in_doubt_are_figures(viewer, database):
    assert figure(viewer, "unsettled_oldest").startswith('<span class="unknown"'), "no node tells"
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=2, unsettled=1)
    facts.execute(database, "UPDATE surety.destination_statistics SET oldest_unsettled_at = extract(epoch FROM clock_timestamp()) * 1000 - 120500")
    assert figure(viewer, "unsettled_oldest") == "2 min"
    assert figure(viewer, "unsettled_oldest", "/destinations/1", "destinations/1") == "2 min"
    facts.execute(database, "UPDATE surety.destination_statistics SET unsettled = 0")
    facts.execute(database, "INSERT INTO surety.prepared VALUES (0, 1, '1:aa:bb', 'guest', 4, 2, 1, 10, 1000, NULL)")
    assert (figure(viewer, "unsettled_oldest"), figure(viewer, "in_doubt")) == ("none", "1")


def figure(person, name, path="/", of="overview"):
    return re.search(rf'data-live="{of}/{name}">(.*?)</dd>', person.get(path).content.decode())[1]
