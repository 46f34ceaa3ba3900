"""Pages of what the data pipeline has found out."""

import re
from html import unescape

import pytest

from console.selectors import over_time
from console.selectors.rows import rows
from tests.console import facts
from tests.console.api import call, granted, logged_in, person


def _page(client, path, status=200):
    response = client.get(f"/{path}")
    assert response.status_code == status, response.content
    return response.content.decode()


@pytest.fixture
def found(database):
    facts.destination(database, 1, "queue/orders")
    facts.one_of_each(database)
    facts.execute(
        database,
        """INSERT INTO surety.pipeline_rollup
           SELECT 0, 'hour', date_trunc('hour', now()) - interval '3 hours', destination, subscription, counts
             FROM (VALUES (0, 0, '{"accepted": 40}'::jsonb), (1, 0, '{"accepted": 40}'), (0, 1, '{"accepted": 30}'), (1, 1, '{"accepted": 30}'))
                  AS told (destination, subscription, counts)""",
    )
    return database


def test_before_the_first_run_nothing_is_known(operator):
    shown = _page(operator, "reports")
    assert "It has never run" in shown
    assert "Nothing was audited yet" in shown
    assert "not enough is known yet" in shown


def test_charts_audits_and_runs_are_shown_and_lead_on(found, operator):
    shown = _page(operator, "reports?span=week")
    assert "accepted 40" in shown
    assert "acknowledged 30" in shown
    assert "broken" in shown
    assert "accepted 40" in _page(operator, "reports?span=week&destination=1")
    number = facts.rows(found, "SELECT audit FROM surety.pipeline_audit")[0][0]
    audit = _page(operator, f"reports/audits/{number}")
    assert "its row is gone" in audit
    assert "acknowledged" in audit
    _page(operator, f"reports/audits/{number + 1}", 404)
    _page(operator, "reports?destination=99", 404)


def test_times_without_events_are_drawn_as_nothing_or_as_unknown_and_dates_are_told(found, operator):
    facts.execute(
        found,
        """INSERT INTO surety.pipeline_audit (shard, run, from_number, to_number, from_at, to_at, complete, proven, unproven, violations, fates, discards,
                  gaps, state, milliseconds)
           VALUES (0, 1, 1, 9, now() - interval '5 hours', now() - interval '2 hours', true, 9, 0, 0, '[]', '[]', '[[3, 4, "the size cap"]]', 'a', 1)""",
    )
    facts.execute(found, "UPDATE surety.checkpoint SET number = 10")
    shown = _page(operator, "reports?span=week")
    told = [one.partition(" UTC: ") for one in re.findall(r"<title>([^<]*)</title>", shown) if "accepted" in one]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:00", when) for when, _, _ in told), "seven days cannot be told apart by hours"
    words = [what for _, _, what in told]
    assert words[-1] == "accepted unknown, acknowledged unknown", "of the last hours no audit knows"
    assert "accepted 40, acknowledged 30" in words
    assert "accepted 0, acknowledged 0" in words, "an hour in which nothing happened is none that is left out"
    assert words[0] == "accepted unknown, acknowledged unknown"
    assert "Commits of this time are missing" in shown
    axis = re.findall(r'<text class="axis"[^>]*text-anchor="middle">([^<]*)</text>', _page(operator, "reports?span=year"))
    assert axis and all(re.fullmatch(r"\d{4}-\d\d-\d\d", each) for each in axis)
    facts.execute(found, "UPDATE surety.checkpoint SET number = 0")


def test_charts_show_what_waits_how_long_what_died_of_what_and_who_was_served(found, operator):
    facts.execute(
        found,
        """UPDATE surety.pipeline_rollup SET counts = '{"accepted": 30, "arrived": 40, "left": 35, "expired": 2, "rejected": 3, "held/20": 5, "life/28": 5,
           "link/1/7": 20, "link/1/8": 9, "link/1/9": 8, "link/1/10": 7, "link/1/11": 6, "link/1/12": 5}' WHERE subscription = 1""",
    )
    facts.execute(
        found,
        """UPDATE surety.pipeline_audit SET from_at = now() - interval '5 hours', to_at = now(),
                  fates = '[{"destination": 1, "address": "queue/orders", "fate": "stored", "messages": 6}]'""",
    )
    shown = _page(operator, "reports?span=week&destination=1")
    for text in ("waiting 6", "half 31ms, 99 of 100 31ms", "half 127ms, 99 of 100 127ms", "rejected 3, expired 2", "link 7 of term 1 20", "2 others 11"):
        assert text in shown, text
    assert "given up" not in shown, "nothing died of it"
    assert "link 7" not in _page(operator, "reports?span=week"), "consumers are those of one destination"


def test_octets_and_flow_control_are_drawn_by_the_second_and_unknown_before_they_were_told(found, operator):
    facts.execute(
        found,
        """INSERT INTO surety.pipeline_rollup
           SELECT 0, 'hour', date_trunc('hour', now()) - make_interval(hours => ago), destination, 0, counts
             FROM (VALUES (6, '{"octets": 7}'::jsonb), (5, '{"octets": 3600, "octets_in": 36000, "octets_out": 32400, "blocked_ms": 900000}'))
                  AS told (ago, counts), (VALUES (0), (1)) AS of (destination)""",
    )
    of_all, of_one = _page(operator, "reports?span=week"), _page(operator, "reports?span=week&destination=1")
    for shown in (of_all, of_one):
        assert "in 10/s, out 9/s" in shown
        assert "in unknown, out unknown" in shown
        assert "in 0/s, out 0/s" in shown, "of the hour in which nothing came they tell that"
    assert "destinations, on average 0.2" in of_all
    assert "of the time 25%" in of_one
    assert "of the time unknown" in of_one


def test_who_sees_a_part_of_the_broker_is_shown_its_day_by_the_hour(found, operator):
    facts.execute(
        found,
        """INSERT INTO surety.pipeline_rollup SELECT 0, 'minute', date_trunc('hour', now()) - make_interval(mins => mins), destination, 0, counts
             FROM generate_series(120, 180, 10) AS mins, (VALUES (1, '{"accepted": 7}'::jsonb), (0, '{"accepted": 9}')) AS told (destination, counts)""",
    )
    assert "accepted 9" in _page(operator, "reports")
    rita = person("rita", role="restricted")
    granted(rita, "queue/orders", "metrics")
    client = logged_in(rita)
    shown = _page(client, "reports")
    assert "accepted 40" in shown
    assert "accepted 7" not in shown
    assert "accepted 7" in _page(client, "reports?destination=1"), "of one destination they are few"


def test_sums_that_take_too_long_are_not_to_be_had_now(found, operator, monkeypatch):
    monkeypatch.setattr(over_time, "SECONDS", 0.05)
    monkeypatch.setattr(over_time, "_SUMS", "SELECT now() AS start, '' AS name, 1 AS number, pg_sleep(30)")
    assert "was too much for one look" in _page(operator, "reports", 503)
    assert rows("SELECT current_setting('statement_timeout') AS most") == [{"most": "0"}], "others are not held to it"


def test_an_audit_shows_all_kinds_what_was_discarded_what_is_missing_and_leads_to_messages(found, operator):
    facts.execute(
        found,
        """UPDATE surety.pipeline_audit SET violations = 300, kinds = '{"doubled": {"ranges": 299, "messages": 4000}, "lost": {"ranges": 1, "messages": 1}}',
           gaps = '[[3, 4, "the size cap"]]', discards = '[{"destination": 1, "address": "queue/orders", "number": 5, "last": 9, "at": 1790000000000,
           "messages": 1234, "by": "dora", "verb": "purge", "request": 71}, {"destination": null, "address": null, "requests": 3, "messages": 8}]'""",
    )
    facts.execute(
        found,
        """INSERT INTO surety.pipeline_violation (audit, kind, reason, destination, address, subscription, lane, first, last, messages, evidence)
           VALUES (1, 'doubled', 'twice', 1, 'queue/orders', 1, 4, 17, 18, 2, '[]'), (1, 'doubled', 'twice', 99, 'queue/gone', 9, 4, 17, 18, 2, '[]')""",
    )
    number = facts.rows(found, "SELECT audit FROM surety.pipeline_audit")[0][0]
    shown = _page(operator, f"reports/audits/{number}")
    for text in ("4,000", "the first 2", "dora", "request 71", "5 to 9", "1,234", "3 more requests", "3 to 4", "The size cap"):
        assert text in shown, text
    assert shown.index("lost") < shown.index("the first 2")
    assert re.findall(r'href="([^"]*/life[^"]*)"', shown) == ["/destinations/1/messages/4-17/life?subscription=1"], "nothing leads to what is gone"


def test_what_found_no_room_in_the_archive_is_told(found, operator):
    facts.execute(found, "INSERT INTO surety.archive_gap (shard, segment, destination, first_sequence, last_sequence, messages) "
                         "VALUES (0, 4, 1, 1, 900, 400), (0, 5, 1, 901, 1900, 1000)")  # fmt: skip
    shown = _page(operator, "reports")
    assert "should be in the archive" in shown
    assert "1,400" in shown
    (told,) = call(operator, "GET", "pipeline").document["unarchived"]
    assert (told["address"], told["messages"]) == ("queue/orders", 1400)


def test_who_sees_some_destinations_only_sees_what_became_of_theirs(found, viewer):
    client = logged_in(person("rita", role="restricted"))
    assert client.get("/reports?destination=1").status_code == 404
    shown = _page(client, "reports")
    assert "Proof of delivery" not in shown
    number = facts.rows(found, "SELECT audit FROM surety.pipeline_audit")[0][0]
    assert client.get(f"/reports/audits/{number}").status_code == 403
    assert "its row is gone" in _page(viewer, f"reports/audits/{number}")


# -- replays ------------------------------------------------------------------------------------------------------------------------------
ASKED = {"destination": "/queue/orders", "into": "queue/again", "from": "2026-11-22T10:00", "selector": "a = 1", "identifiers": "ID:a-1\n ID:a-2", "rate": "5"}


def test_messages_of_the_archive_are_sent_again_and_seen_to_be(found, operator, replays_begun):
    assert 'value="1000"' in _page(operator, "reports/replays/new")
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    number = int(where.rpartition("/")[2])
    assert replays_begun == [number]
    shown = _page(operator, where[1:])
    for text in ("queue/orders", "queue/again", "2026-11-22 10:00:00", "a = 1", "2 named", "not looked yet"):
        assert text in shown, text
    facts.execute(found, f"UPDATE surety.pipeline_replay SET state = 'failed', sent = 3, total = 40, error = 'no room' WHERE replay = {number}")
    shown = _page(operator, where[1:])
    assert "No room" in shown
    again = dict(re.findall(r'type="hidden" name="([a-z]+)" value="([^"]*)"', shown))
    assert operator.post("/reports/replays/new", {name: unescape(value) for name, value in again.items()})["Location"] == where, "it goes on"
    assert where in _page(operator, "reports/replays")


def test_a_replay_is_cancelled_once(found, operator):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    assert "0 messages" in _page(operator, f"{where[1:]}/cancel")
    assert operator.post(f"{where}/cancel")["Location"] == where
    assert "cancelled" in _page(operator, where[1:])
    assert f"{where}/cancel" not in _page(operator, where[1:])
    assert "is over" in operator.post(f"{where}/cancel", follow=True).content.decode()
    assert operator.get("/reports/replays/999").status_code == 404


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rate": "many"}, "Rate must be 1 to"), ({"from": "soon"}, "is no date and time"), ({"selector": "a ="}, "expected"),
        ({"destination": "temp-queue/a"}, "queue/NAME"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_said_beside_what_was_typed(change, sentence, found, operator, replays_begun):
    response = operator.post("/reports/replays/new", ASKED | change)
    assert response.status_code == 400
    assert sentence in unescape(response.content.decode())
    assert 'value="queue/again"' in response.content.decode()
    assert replays_begun == []


def test_what_bounded_a_replay_is_still_there_when_it_cannot_go_on(found, operator, replays_begun):
    again = ASKED | {"from": "2026-11-22T12:00:00.250000+02:00", "to": "2026-11-22T11:00:00+00:00", "rate": "0"}
    shown = operator.post("/reports/replays/new", again).content.decode()
    assert 'value="2026-11-22T10:00:00.250"' in shown, "a browser shows nothing of what says its time zone, and would ask for everything"
    assert 'value="2026-11-22T11:00:00"' in shown


def test_a_replay_whose_process_has_died_is_cancelled_by_nobody_else(found, operator, replays_begun):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    facts.execute(found, f"UPDATE surety.pipeline_replay SET state = 'running' WHERE replay = {where.rpartition('/')[2]}")
    operator.post(f"{where}/cancel")
    shown = _page(operator, where[1:])
    assert "cancelled" in shown
    assert "Go on" not in shown
    assert f"{where}/cancel" not in shown


def test_who_may_not_is_not_offered_a_replay_and_refused(found, operator, viewer, replays_begun):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    assert "/reports/replays/new" not in _page(viewer, "reports/replays")
    assert "/cancel" not in _page(viewer, where[1:])
    assert viewer.post(f"{where}/cancel").status_code == 403
    assert viewer.post("/reports/replays/new", ASKED).status_code == 403
    assert len(replays_begun) == 1
