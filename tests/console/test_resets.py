"""Resets of totals: what operators see begins at zero, by every door; what Prometheus reads goes on growing; nothing is ever negative."""

import pytest

from console.services.scheduled import forget
from tests.console import facts
from tests.console.api import call, granted, logged_in, person, problem
from tests.console.terminal import mq

NAMES = ("accepted_total", "settled_total", "dead_total", "expired_total", "redelivered_total")


@pytest.fixture
def orders(database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", accepted=0)
    facts.destination(database, 2, "queue/other", accepted=0)
    return database


def _counted(dsn, number, *totals):
    """As the node tells them."""
    named = ", ".join(f"{name} = %s" for name in NAMES)
    facts.execute(dsn, f"UPDATE surety.destination_statistics SET {named}, at = clock_timestamp() WHERE destination = %s", [*totals, number])


def _since(client, path="destinations/1"):
    found = call(client, "GET", path).document["since"]
    return None if found is None else tuple(found[name] for name in NAMES)


def _reset(client, path="destinations/1/reset"):
    assert call(client, "POST", path).document == {"warnings": []}


# -- what is shown --------------------------------------------------------------------------------------------------------------------
def test_what_was_counted_since_the_reset_is_told_beside_totals_that_go_on(orders, operator, stranger):
    _counted(orders, 1, 100, 90, 3, 2, 7)
    assert _since(operator) is None, "never reset"
    _reset(operator)
    assert _since(operator) == (0, 0, 0, 0, 0)
    _counted(orders, 1, 105, 99, 3, 4, 8)
    shown = call(operator, "GET", "destinations/1").document
    assert tuple(shown[name] for name in NAMES) == (105, 99, 3, 4, 8)
    assert _since(operator) == (5, 9, 0, 2, 1)
    assert shown["since"]["at"] < shown["at"]
    assert "surety_messages_accepted_total 105" in stranger.get("/metrics").content.decode(), "a rate does not break"
    _reset(operator)
    assert _since(operator) == (0, 0, 0, 0, 0), "a further reset begins anew"
    assert _since(operator, "destinations/2") is None


def test_a_reset_of_all_is_of_every_destination_and_of_the_sums(orders, operator):
    facts.destination(orders, 3, "queue/gone", destroyed=True, accepted=0)
    for number in (1, 2, 3):
        _counted(orders, number, 100, 0, 0, 0, 0)
    assert _since(operator, "totals") is None
    _reset(operator, "totals/reset")
    assert [_since(operator, path)[0] for path in ("destinations/1", "destinations/2", "totals")] == [0, 0, 0]
    facts.destination(orders, 4, "queue/new", accepted=7)
    _counted(orders, 1, 103, 0, 0, 0, 0)
    assert [_since(operator, path) for path in ("destinations/1", "totals")] == [(3, 0, 0, 0, 0), (10, 0, 0, 0, 0)]
    _reset(operator)
    assert _since(operator, "totals")[0] == 10, "that of one leaves the sums"
    facts.execute(orders, "DELETE FROM surety.destination_statistics WHERE destination = 3")
    assert _since(operator, "totals")[0] == 10, "nor does what a destroyed one had counted matter"


# -- never negative -------------------------------------------------------------------------------------------------------------------
def test_a_destination_that_was_made_anew_was_never_reset(orders, operator):
    _counted(orders, 1, 100, 0, 0, 0, 0)
    _reset(operator, "totals/reset")
    facts.execute(orders, "UPDATE surety.destination SET destroyed_at = now() WHERE destination = 1")
    facts.destination(orders, 5, "queue/orders", accepted=4)
    assert _since(operator, "destinations/5") is None
    assert _since(operator, "totals")[0] == 4


def test_totals_that_are_lower_than_what_is_remembered_are_zero_since(orders, operator):
    _counted(orders, 1, 100, 50, 0, 0, 0)
    _reset(operator, "totals/reset")
    _counted(orders, 1, 40, 60, 0, 0, 0)
    _counted(orders, 2, 9, 0, 0, 0, 0)
    assert _since(operator) == (0, 10, 0, 0, 0)
    assert _since(operator, "totals") == (9, 10, 0, 0, 0), "nor does it lower what others have counted"


def test_without_a_node_it_is_known_when_and_not_how_many(orders, operator):
    _counted(orders, 1, 100, 0, 0, 0, 0)
    facts.release()
    facts.execute(orders, "UPDATE surety.lease SET holder_pid = NULL")
    _reset(operator, "totals/reset")
    for path in ("destinations/1", "totals"):
        assert _since(operator, path) == (None,) * 5
        assert call(operator, "GET", path).document["since"]["at"]
    facts.lease(orders)
    _counted(orders, 1, 101, 0, 0, 0, 0)
    assert _since(operator)[0] == 1, "counted from what was told last"


# -- who, and which -------------------------------------------------------------------------------------------------------------------
def test_who_reset_what_is_in_the_audit(orders, operator):
    _reset(operator)
    _reset(operator, "totals/reset")
    told = facts.rows(orders, "SELECT who, what, address FROM surety.audit ORDER BY entry")
    assert told == [("olga", "reset metrics", "queue/orders"), ("olga", "reset metrics", "")]


def test_a_temporary_destination_is_not_reset(orders, operator):
    facts.execute(
        orders,
        """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total, settled_total,
                  dead_total, expired_total, redelivered_total, scheduled, state) VALUES (0, -1, 'temp-queue/a', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)""",
    )
    assert "temporary" in problem(call(operator, "POST", "destinations/-1/reset"), 400, "invalid")
    _reset(operator, "totals/reset")
    assert _since(operator, "destinations/-1") is None
    problem(call(operator, "POST", "destinations/77/reset"), 404, "not-found")


def test_a_repeated_call_resets_once(orders, operator):
    _counted(orders, 1, 100, 0, 0, 0, 0)
    for accepted in (100, 105):
        _counted(orders, 1, accepted, 0, 0, 0, 0)
        assert call(operator, "POST", "destinations/1/reset", Idempotency_Key="k").status_code == 200
    assert _since(operator)[0] == 5


def test_what_is_remembered_goes_with_the_destination(orders, operator):
    _reset(operator, "totals/reset")
    facts.execute(orders, "UPDATE surety.destination SET destroyed_at = now() WHERE destination = 1")
    forget(90)
    assert len(facts.rows(orders, "SELECT * FROM console_totalsreset WHERE destination = 1")) == 2, "it is in the sums still"
    facts.execute(orders, "DELETE FROM surety.destination_statistics WHERE destination = 1")
    forget(90)
    left = facts.rows(orders, "SELECT destination, of_broker FROM console_totalsreset ORDER BY 1, 2")
    assert left == [(0, True), (2, False), (2, True)]


def test_it_goes_also_when_nothing_is_left_of_the_destination(orders, operator):
    """A day after it was destroyed its row goes, and the next term takes its statistics away."""
    _reset(operator, "totals/reset")
    for table in ("destination", "destination_statistics"):
        facts.execute(orders, f"DELETE FROM surety.{table} WHERE destination = 1")
    forget(90)
    assert facts.rows(orders, "SELECT destination, of_broker FROM console_totalsreset ORDER BY 1, 2") == [(0, True), (2, False), (2, True)]


# -- by command, by page --------------------------------------------------------------------------------------------------------------
def test_by_command(orders):
    _counted(orders, 1, 100, 0, 0, 0, 0)
    assert mq("reset", "dst", "queue/orders").told == "Done.\n"
    _counted(orders, 1, 102, 0, 0, 0, 0)
    assert mq("query", "dst", "queue/orders", "--json").document["since"]["accepted_total"] == 2
    assert mq("reset", "bkr").code == 0
    assert mq("metrics", "bkr", "--json").document["since"]["accepted_total"] == 0


@pytest.mark.parametrize(("page", "reset"), [("/destinations/1", "/destinations/1/reset"), ("/", "/destinations/reset")])
def test_by_page(page, reset, orders, operator):
    _counted(orders, 1, 1234, 0, 0, 0, 0)
    shown = operator.get(page).content.decode()
    assert "They were never reset." in shown
    assert f'href="{reset}"' in shown
    assert "no rate breaks" in operator.get(reset).content.decode()
    assert "are reset" in operator.post(reset, follow=True).content.decode()
    _counted(orders, 1, 1239, 0, 0, 0, 0)
    shown = operator.get(page).content.decode()
    assert ('In all">1,239<' in shown, 'Since the reset">5<' in shown) == (True, True)


@pytest.mark.parametrize(("page", "reset"), [("/destinations/1", "/destinations/1/reset"), ("/", "/destinations/reset")])
def test_who_may_only_look_is_offered_none_and_refused(page, reset, orders, viewer, stranger):
    assert f'href="{reset}"' not in viewer.get(page).content.decode()
    assert viewer.get(reset).status_code == viewer.post(reset).status_code == 403
    assert stranger.post(reset)["Location"].startswith("/login")
    assert facts.rows(orders, "SELECT * FROM console_totalsreset") == []


def test_who_may_manage_one_resets_that_one(orders):
    able = person("able", role="restricted")
    granted(able, "queue/orders", "metrics", "manage")
    client = logged_in(able)
    assert client.post("/destinations/1/reset").status_code == 302
    assert client.post("/destinations/reset").status_code == 403
    assert client.post("/destinations/2/reset").status_code == 404
    assert facts.rows(orders, "SELECT destination, of_broker FROM console_totalsreset") == [(1, False)]
