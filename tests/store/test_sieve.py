"""What a scan leaves out in PostgreSQL never matches: thousands of selectors over header sections as senders write them."""

from __future__ import annotations

from random import Random
from typing import Any

import psycopg
import pytest

from broker_core.engine.limits import Limits
from broker_core.engine.message import Encoding, Header, Message
from broker_core.engine.properties import Properties, takes
from broker_core.engine.reads import PageWanted
from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.shard import Shard
from broker_core.engine.subscription import Filter
from broker_core.stomp.escaping import canonical
from broker_core.stomp.mapping import decode
from broker_core.store.sieve import TESTS_MAX, sieve, sift
from broker_core.viewing import InvalidFilter, read_filter
from broker_core.viewing.rows import statement
from tests.store.rows import commit
from tests.store.test_postgres import PostgresRig, rig  # noqa: F401

NAMES = ("a", "b", "größe", "n", "JMSType", "JMSCorrelationID", "JMSPriority", "JMSTimestamp", "JMSDeliveryMode", "JMSMessageID", "absent")
VALUES = (
    "", "red", "Red", "5", "05", "5.0", "-5", "+5", " 5", "5e0", "1e400", "0x5", "NaN", "inf", "true", "TRUE", "a:b", "a\\b", "a\nb", "a\rb", "50%", "a_b",
    "grün", "ab", "abc", "9007199254740993", "12345678901234567890", "c", "'", "x" * 300, "red\nb:blue", "ID:test-7", "PERSISTENT",
)  # fmt: skip
HEADERS = {"JMSType": "type", "JMSCorrelationID": "correlation-id"}
PATTERNS = ("%", "a%", "%b", "a_b", "_ed", "%e%", "r%d", "grün", "gr%", "50!%%", "a!_b", "%:%", "%\\%", "c", "%c", "x%x", "")
ROWS = 300


def rows(random: Random) -> list[Message]:
    made = []
    for position in range(1, ROWS + 1):
        names = random.sample(NAMES, random.randrange(6))
        octets = canonical({HEADERS.get(name, name): random.choice(VALUES) for name in names})
        header = Header(
            octets, 4, random.choice((3, 4)), encoding=random.choice((Encoding.STOMP, Encoding.STOMP, Encoding.STOMP, Encoding.AMQP)),
            message_id=random.choice(("", "", "ID:given-9", "red")), client_id=random.choice(("", "me", "you")),
            annotations=random.choice(("", "", '{"a": "red", "original-destination": "queue/a"}')),
        )  # fmt: skip
        message = Message(header, b"body", len(octets) + 4)
        message.destination, message.sequence, message.position, message.accepted_at = 1, position, position, 1_700_000_000_000 + position
        made.append(message)
    return made


def literal(random: Random) -> str:
    text = random.choice(VALUES).replace("'", "''")
    return random.choice((f"'{text}'", f"'{text}'", "5", "-5", "5.0", "6e1", "1700000000150", "9007199254740993", "TRUE"))


def condition(random: Random, depth: int) -> str:
    name = random.choice(NAMES)
    kind = random.randrange(11 if depth else 8)
    match kind:
        case 0 | 1:
            return f"{name} {random.choice(('=', '<>'))} {literal(random)}"
        case 2 | 3:
            return f"{name} {random.choice(('<', '>', '<=', '>=', '=', '<>'))} {random.choice(('5', '5.0', '-5', '4', '1700000000150', '9007199254740993'))}"
        case 4:
            values = ", ".join("'" + value.replace("'", "''") + "'" for value in random.choices(VALUES, k=random.choice((1, 2, 4, 20))))
            return f"{name} {random.choice(('', 'NOT '))}IN ({values})"
        case 5:
            return f"{name} {random.choice(('', 'NOT '))}LIKE '{random.choice(PATTERNS)}' ESCAPE '!'"
        case 6:
            return f"{name} IS {random.choice(('', 'NOT '))}NULL"
        case 7:
            return random.choice((f"{name} BETWEEN 4 AND 6", f"{name} = {random.choice(NAMES)}", f"{name} + 1 > 5", "TRUE", "1 = 2", f"{name}"))
        case 8:
            return f"NOT ({condition(random, depth - 1)})"
    joined = random.choice((" AND ", " OR ")).join(condition(random, depth - 1) for _ in range(random.choice((2, 2, 3, 9))))
    return f"({joined})"


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_matches_passes(rig: PostgresRig, seed: int) -> None:  # noqa: F811
    random = Random(seed)
    stored = rows(random)
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, stored))
    shard = Shard(Limits(), "test", decode)
    left_out = asked = 0
    for _ in range(400):
        try:
            selector = compile_selector(condition(random, 3))
        except SelectorError:
            continue
        wanted = Filter(selector, random.choice(("", "", "me")))
        found, complete = await store.read(PageWanted(1, 1, 4, 0, ROWS, ROWS + 1, 1 << 30, [1], wanted))
        passed = {message.position for message in found}
        matching = {message.position for message in stored if takes(wanted, Properties(shard, message))}
        assert complete
        assert matching <= passed, selector.text
        left_out += ROWS - len(passed)
        asked += ROWS
    assert left_out > asked / 5


async def test_what_operators_look_for_is_never_sifted_out(rig: PostgresRig) -> None:  # noqa: F811
    """Whatever is asked, PostgreSQL lets through all that match."""
    random = Random(5)
    store, stored, shard = await rig.open(), rows(random), Shard(Limits(), "test", decode)
    bodies = [b'{"a": {"red": 1}}', b'{"a": {"\\u0072ed": 1}}', b"the red body", b"", '{"b": "größe"}'.encode()]
    bodies += [b'{"b": "gr\\u00f6\\u00dfe"}', b'{"b": "a\\/b"}']
    for message in stored:
        message.body = random.choice(bodies)
    await store.recover()
    await store.commit(commit(1, stored))
    keys = {"destination": 1, "priority": 4, "first": 0, "last": ROWS, "limit": ROWS + 1, "segments": [1]}
    now, asked, left_out = 1_700_000_000_300, 0, 0
    for arguments in [*LOOKED_FOR, *({"selector": condition(random, 2)} for _ in range(100))]:
        try:
            wanted = read_filter(arguments)
        except InvalidFilter:
            continue
        sifted = sift(wanted, now)
        text = statement(4, [1], sifted, newest_first=False, bodies=True)
        with psycopg.connect(rig.dsn) as connection:
            passed = {row[1] for row in connection.execute(text.encode(), keys | sifted.constants)}
        matching = {message.position for message in stored if wanted.matches(message, Properties(shard, message).__getitem__, now)}
        assert matching <= passed, arguments
        left_out, asked = left_out + ROWS - len(passed), asked + ROWS
    assert left_out > asked / 5


LOOKED_FOR: list[dict[str, Any]] = [
    {"text": "red"}, {"text": "a:b"}, {"text": "50%"}, {"text": "größe"}, {"text": "original-destination"}, {"json_path": "a.red", "json_value": 1},
    {"json_path": "a[0]", "json_value": 1}, {"json_path": "b", "json_value": "größe"}, {"json_path": "b", "json_value": "a/b"},
    {"age_min_ms": 100}, {"age_max_ms": 100}, {"accepted_from": 1_700_000_000_100}, {"accepted_to": 1_700_000_000_200},
    {"reason": "EXPIRED"}, {"origin": "queue/a"},
    {"message_id": "ID:test-7"}, {"message_id": "red"}, {"group": "red"}, {"attempts_min": 1}, {"attempts_max": 0},
    {"text": "red", "selector": "a IS NOT NULL", "age_min_ms": 10},
]  # fmt: skip


def test_the_work_for_one_row_is_bounded() -> None:
    for joint in (" AND ", " OR "):
        text = joint.join(f"p{number} > {number}" for number in range(100))
        sifted = sieve(Filter(compile_selector(text)))
        assert sifted.columns.count("split_part") <= 2 * TESTS_MAX
        assert (sifted.condition == "true") == (joint == " OR ")


def test_what_is_compared_with_constants_is_left_to_postgresql() -> None:
    for text in ("a = 'b'", "a IN ('b', 'c')", "a > 5", "a LIKE 'b%'", "a IS NULL", "NOT a = 'b'", "a = 'b' AND b + c > 5", "JMSPriority > 5"):
        assert sieve(Filter(compile_selector(text))).condition != "true", text
    for text in ("a = b", "a + 1 > 5", "a = 'b' OR b + c > 5", ""):
        assert sieve(Filter(compile_selector(text))).condition == "true", text
