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


def test_a_look_costs_eight_queries(viewer, database):
    """Session, person, permissions of the person and of groups, his grants, node, settings of the server, sums."""
    with CaptureQueriesContext(connection) as queries:
        viewer.get("/")
    assert len(queries) == 8, [query["sql"] for query in queries]
