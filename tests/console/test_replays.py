"""Replays from the archive, as operators ask for them: with the rights over both destinations, told in the audit, cancelled, or refused with what is wrong."""

import pytest
from django.contrib.auth.models import User

from tests.console import facts
from tests.console.api import bearer, call, granted, person, token

ASKED = {"destination": "queue/orders", "into": "queue/again", "selector": "a = 1", "identifiers": ["ID:a-1"], "rate": 5}


@pytest.fixture
def olga(database):
    return bearer(token(User.objects.get(username="olga")))


def test_a_replay_is_begun_is_seen_and_goes_on_when_the_same_is_asked_again(olga, database, replays_begun):
    first = call(olga, "POST", "pipeline/replays", ASKED)
    assert (first.status_code, first.document["state"], first.document["into"]) == (202, "asked", "queue/again")
    number = first.document["number"]
    assert call(olga, "POST", "pipeline/replays", ASKED).document["number"] == number
    assert replays_begun == [number, number]
    assert call(olga, "GET", f"pipeline/replays/{number}").document["identifiers"] == ["ID:a-1"]
    told = facts.rows(database, "SELECT who, what, address, arguments->>'into', arguments->>'replay' FROM surety.audit WHERE what = 'replay'")
    assert told == [("olga", "replay", "queue/orders", "queue/again", str(number))] * 2
    facts.execute(database, f"UPDATE surety.pipeline_replay SET state = 'done' WHERE replay = {number}")
    assert call(olga, "POST", "pipeline/replays", ASKED).document["number"] != number


def test_a_replay_that_is_cancelled_is_over(olga):
    number = call(olga, "POST", "pipeline/replays", ASKED).document["number"]
    assert call(olga, "POST", f"pipeline/replays/{number}/cancel").document["state"] == "cancelled"
    assert call(olga, "POST", "pipeline/replays/999/cancel").status_code == 404


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"selector": "a ="}, "detail"), ({"rate": 0}, "rate"), ({"into": "queue/mq.sys.dmq"}, "Nothing can be sent to"),
        ({"destination": "temp-queue/a"}, "queue/NAME"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_refused(change, sentence, olga, replays_begun):
    response = call(olga, "POST", "pipeline/replays", ASKED | change)
    assert response.status_code == 400
    assert sentence in str(response.document)
    assert replays_begun == []


def test_it_takes_the_bodies_of_the_one_and_sending_to_the_other(database, replays_begun):
    for verbs, allowed in ((("browse_bodies",), False), (("send",), False), (("browse_bodies", "send"), True)):
        who = person("-".join(verbs), role="restricted")
        for verb in verbs:
            granted(who, "queue/orders" if verb == "browse_bodies" else "queue/again", verb)
        assert call(bearer(token(who)), "POST", "pipeline/replays", ASKED).status_code == (202 if allowed else 403)
    assert len(replays_begun) == 1
