"""The overview: how the service is in one look."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

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


def test_a_look_costs_thirteen_queries(viewer, database):
    """Session, person, permissions of the person and of groups, his grants, node, history, settings of the server, what needs attention, sums, sums since
    a reset, the database."""
    with CaptureQueriesContext(connection) as queries:
        viewer.get("/")
    assert len(queries) == 13, [query["sql"] for query in queries]


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
