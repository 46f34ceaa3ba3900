"""A message that is sent many times by one call: copies, every so often, by cron; by the API, the command line and the console."""

from datetime import UTC, datetime

import pytest

from console.cli import exits
from console.instants import milliseconds
from console.services.repeating import InvalidRepetition, Repetition, lags
from tests.console import facts
from tests.console.api import call, problem
from tests.console.message_pages import FORM, awaited, awaited_scheduled, path, text_of
from tests.console.terminal import mq

NOW = milliseconds(datetime(2026, 11, 23, 20, 0, 30, tzinfo=UTC))
"""A Monday."""
HOUR = 3_600_000


@pytest.fixture
def node(node, unhurried):
    node.send(b"first")
    return node


def instants(cron, repeat=0, delay_ms=0):
    found = lags(Repetition(cron=cron, repeat=repeat), delay_ms, NOW)
    return [datetime.fromtimestamp((NOW + delay_ms + lag) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") for lag in found]


# -- when -----------------------------------------------------------------------------------------------------------------------------------
def test_each_time_comes_a_period_after_the_one_before():
    assert lags(Repetition(period_ms=500, repeat=3), 60_000, NOW) == [0, 500, 1000, 1500]
    assert lags(Repetition(count=7), 0, NOW) == [0], "all at once"


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", ["2026-11-23 20:01:00", "2026-11-23 20:02:00", "2026-11-23 20:03:00"]),
        ("*/20 * * * *", ["2026-11-23 20:20:00", "2026-11-23 20:40:00", "2026-11-23 21:00:00"]),
        ("0 9 * * MON-FRI", ["2026-11-24 09:00:00", "2026-11-25 09:00:00", "2026-11-26 09:00:00"]),
        ("0 9 * * mon,0", ["2026-11-29 09:00:00", "2026-11-30 09:00:00", "2026-12-06 09:00:00"]),
        ("30 8 31 * *", ["2026-12-31 08:30:00", "2027-01-31 08:30:00", "2027-03-31 08:30:00"]),
        ("0 0 29 feb *", ["2028-02-29 00:00:00", "2032-02-29 00:00:00", "2036-02-29 00:00:00"]),
        ("0 0 13 * fri", ["2027-08-13 00:00:00", "2028-10-13 00:00:00", "2029-04-13 00:00:00"]),
    ],
)
def test_cron_has_its_next_instants(cron, expected):
    assert instants(cron, repeat=2) == expected


def test_cron_counts_from_the_end_of_the_delay():
    assert instants("0 9 * * *", delay_ms=24 * HOUR) == ["2026-11-25 09:00:00"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Repetition(count=501, repeat=1, period_ms=1), "501 copies 2 times are more than the 1,000 messages"),
        (Repetition(cron="* * * * *", period_ms=5, repeat=1), "not both"),
        (Repetition(period_ms=5), "goes with repeat"),
        (Repetition(period_ms=0, repeat=1), "1 ms or more"),
        (Repetition(repeat=2), "for copies at once there is count"),
        (Repetition(count=0), "count is 1 or more"),
        (Repetition(repeat=999, period_ms=86_400_000 * 4), "more than ten years"),
        (Repetition(cron="0 0 29 2 *", repeat=5), "more than ten years"),
        (Repetition(cron="* * * *"), "five fields"),
        (Repetition(cron="* * * * * *"), "five fields"),
        (Repetition(cron="*" * 300 + " * * * *"), "five fields"),
        (Repetition(cron="61 * * * *"), "61"),
        (Repetition(cron="1-5! * * * *"), "1-5! is no minute"),
        (Repetition(cron="*/0 * * * *"), "*/0 is no minute"),
        (Repetition(cron="mon * * * *"), "mon is no minute"),
        (Repetition(cron="* * * mon *"), "mon is no month of year"),
        (Repetition(cron="* * * * 7"), "7"),
        (Repetition(cron="0 0 30 2 *"), "30"),
    ],
)
def test_what_cannot_be_repeated_so_is_told(asked, words):
    with pytest.raises(InvalidRepetition) as refused:
        lags(asked, 0, NOW)
    assert words in str(refused.value)


@pytest.mark.parametrize("asked", [Repetition(), Repetition(cron="0 9 * * *"), Repetition(period_ms=5, repeat=1)])
def test_a_delay_beyond_every_calendar_is_told_so(asked):
    with pytest.raises(InvalidRepetition, match="more than ten years"):
        lags(asked, 999_999_999 * 24 * HOUR, NOW)


# -- the doors ------------------------------------------------------------------------------------------------------------------------------
def due(database):
    return [row[0] for row in facts.rows(database, "SELECT due_at FROM surety.scheduled ORDER BY due_at")]


def test_copies_are_sent_by_one_call_and_by_its_key_once(node, operator):
    number = node.number()
    for _ in range(2):
        sent = call(operator, "POST", f"destinations/{number}/messages", {"text": "a", "count": 20}, Idempotency_Key="once")
        assert sent.status_code == 201
    awaited(node, 21)
    listed = call(operator, "GET", f"destinations/{number}/messages?limit=100").document["items"]
    assert [each["message_id"] for each in listed[1:]] == sent.document["message_ids"]
    assert sent.document["message_id"] == sent.document["message_ids"][0]
    assert (sent.document["first_due_at"], sent.document["last_due_at"]) == (None, None)
    (entry, *_) = call(operator, "GET", "audit").document["items"]
    assert (entry["what"], entry["arguments"]["count"], entry["result"]) == ("send", 20, {"sent": 20})


def test_what_comes_again_waits_in_the_schedule_as_messages_of_their_own(node, operator):
    number = node.number()
    body = {"text": "a", "count": 2, "delay_ms": HOUR, "period_ms": 500, "repeat": 2, "ttl_ms": 2 * HOUR}
    sent = call(operator, "POST", f"destinations/{number}/messages", body).document
    awaited_scheduled(node, 6)
    listed = call(operator, "GET", f"destinations/{number}/scheduled").document["items"]
    assert {each["message_id"] for each in listed} == set(sent["message_ids"])
    at, ends = ([milliseconds(datetime.fromisoformat(each[name])) for each in listed] for name in ("due_at", "expires_at"))
    assert [round(each - at[0], -2) for each in at] == [0, 0, 500, 500, 1000, 1000], "however long it took to send the ones before"
    assert [round(each - ends[0], -2) for each in ends] == [0, 0, 500, 500, 1000, 1000], "each lives as long as the first"
    assert call(operator, "POST", f"destinations/{number}/scheduled/{listed[0]['number']}/cancel").status_code == 200
    assert len(call(operator, "GET", f"destinations/{number}/scheduled").document["items"]) == 5


def test_one_that_is_there_is_sent_again_by_cron(node, operator, database):
    number = node.number()
    reference = {"destination": number, "message": "4-0"}
    sent = call(operator, "POST", f"destinations/{number}/messages", {"from_message": reference, "cron": "0 9 * * *", "repeat": 1}).document
    awaited_scheduled(node, 2)
    first, second = due(database)
    assert second - first == pytest.approx(24 * HOUR, abs=50)
    assert datetime.fromtimestamp(round(first / 1000), UTC).strftime("%H:%M:%S") == "09:00:00"
    assert sent["first_due_at"].endswith("T09:00:00Z")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"count": 1001}, "count"),
        ({"count": 501, "period_ms": 5, "repeat": 1}, "1,000 messages that one call sends"),
        ({"count": 2, "duplicate_id": "d"}, "leave it out"),
        ({"count": 1000, "text": "a" * 9_000}, "octets that one call sends"),
        ({"count": 1000, "properties": {"a": "b" * 9_000}}, "octets that one call sends"),
        ({"cron": "soon"}, "Cron has five fields"),
        ({"repeat": 1}, "Repeat goes with"),
        ({"count": 3, "properties": {"destination": "x"}}, "is the broker's"),
    ],
)
def test_what_cannot_be_sent_so_often_is_refused_whole_and_its_key_stays_free(node, operator, database, body, words):
    number = node.number()
    assert words in problem(call(operator, "POST", f"destinations/{number}/messages", {"text": "a", **body}, Idempotency_Key="k"), 400, "invalid")
    assert facts.rows(database, "SELECT * FROM surety.inbox") == []
    assert call(operator, "POST", f"destinations/{number}/messages", {"text": "right"}, Idempotency_Key="k").status_code == 201


def test_the_command_line_sends_copies_and_by_cron(node):
    ran = mq("send", "msg", "queue/orders", "--text", "red", "--count", "3", "--json")
    assert (ran.code, len(ran.document["message_ids"])) == (exits.DONE, 3)
    assert mq("send", "msg", "queue/orders", "--text", "red", "--delay-ms", "3600000", "--period-ms", "1000", "--repeat", "4").code == exits.DONE
    assert mq("send", "msg", "queue/orders", "--text", "red", "--cron", "0 9 * * mon-fri", "--repeat", "1").code == exits.DONE
    awaited_scheduled(node, 7)
    awaited(node, 4)
    ran = mq("send", "msg", "queue/orders", "--text", "red", "--cron", "0 9 * *")
    assert (ran.code, "five fields" in ran.said) == (exits.REFUSED, True)


def test_the_form_sends_copies_and_says_when_they_are_due(node, operator):
    assert 'name="cron"' in operator.get(path(node, "/send")).content.decode()
    page = operator.post(path(node, "/send"), {**FORM, "count": "3"}, follow=True)
    assert "3 sent to queue/orders." in text_of(page)
    page = operator.post(path(node, "/send"), {**FORM, "period": "5 min", "repeat": "2"}, follow=True)
    assert "3 sent to queue/orders, the first due now, the last 2" in text_of(page)
    page = operator.post(path(node, "/send"), {**FORM, "cron": "0 9 * * *", "count": "2"}, follow=True)
    assert "09:00:00 UTC: those that wait are under Scheduled" in text_of(page)
    awaited(node, 5)
    awaited_scheduled(node, 4)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"count": "many"}, "Copies are a whole number"),
        ({"count": "1001"}, "more than the 1,000 messages"),
        ({"period": "often", "repeat": "1"}, "The period is like"),
        ({"repeat": "-1"}, "More times are a whole number"),
        ({"cron": "0 9 * *"}, "Cron has five fields"),
    ],
)
def test_what_the_form_cannot_repeat_is_told_and_what_was_typed_stays(database, operator, typed, words):
    facts.destination(database, 1, "queue/orders")
    page = operator.post("/destinations/1/messages/send", {**FORM, **typed})
    assert words in text_of(page, 400)
    assert 'details class="help" open' in page.content.decode()
    assert facts.rows(database, "SELECT * FROM surety.inbox") == []
