"""What may be asked of the archive to be sent again, and the rows that remember it. Needs no Spark: whoever asks does it in a transaction of his own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker_core.engine.address import is_reserved, is_temporary, is_valid
from broker_core.engine.selector import SelectorError, compile_selector

RATE, RATE_MAX = 1_000, 100_000
"""Messages a second."""
IDENTIFIERS_MAX, IDENTIFIER_CHARACTERS_MAX = 1_000, 1_024
SELECTOR_CHARACTERS_MAX = 16_384
ASKED, RUNNING, DONE, FAILED, CANCELLED = STATES = ("asked", "running", "done", "failed", "cancelled")
GOES_ON = (ASKED, RUNNING, FAILED)
"""Of one in these states that nobody works on, what is left is sent when it is asked for again."""


class InvalidReplay(ValueError):
    """`field` is what is wrong, the message a sentence that says what to change."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(slots=True, frozen=True)
class Wanted:
    """What is to be sent again. What is empty is not asked for."""

    address: str
    """Where it was, as in queue/orders."""
    into: str = ""
    """Where it goes; empty: where it was."""
    accepted_from: datetime | None = None
    accepted_to: datetime | None = None
    """Before this instant."""
    selector: str = ""
    identifiers: tuple[str, ...] = ()
    """JMSMessageIDs."""
    rate: int = RATE


def check(wanted: Wanted) -> None:
    """Raises InvalidReplay."""
    if not is_valid(wanted.address) or is_temporary(wanted.address):
        raise InvalidReplay("destination", f"{wanted.address[:80]!r} is no destination whose messages are archived: write queue/NAME or topic/NAME")
    into = wanted.into or wanted.address
    if not is_valid(into) or is_temporary(into) or is_reserved(into):
        raise InvalidReplay("into", f"nothing can be sent to {into[:80]!r}: write queue/NAME or topic/NAME")
    if not 1 <= wanted.rate <= RATE_MAX:
        raise InvalidReplay("rate", f"rate must be 1 to {RATE_MAX} messages a second")
    if wanted.accepted_from is not None and wanted.accepted_to is not None and wanted.accepted_from >= wanted.accepted_to:
        raise InvalidReplay("to", "the time to replay ends before it begins")
    if len(wanted.identifiers) > IDENTIFIERS_MAX or any(not 0 < len(one) <= IDENTIFIER_CHARACTERS_MAX or "\0" in one for one in wanted.identifiers):
        raise InvalidReplay("ids", f"there may be {IDENTIFIERS_MAX} identifiers of 1 to {IDENTIFIER_CHARACTERS_MAX} characters")
    if len(wanted.selector) > SELECTOR_CHARACTERS_MAX or "\0" in wanted.selector:
        raise InvalidReplay("selector", f"a selector may have {SELECTOR_CHARACTERS_MAX} characters")
    if wanted.selector:
        try:
            compile_selector(wanted.selector)
        except SelectorError as error:
            raise InvalidReplay("selector", str(error)) from error


def ask(cursor: Any, wanted: Wanted, requested_by: str, shard: int = 0) -> int:
    """Remember it, in the transaction of the caller's cursor (psycopg's, or Django's). Its number. The same as what was asked before and is not over goes on
    under its number. Raises InvalidReplay."""
    check(wanted)
    asked = (wanted.address, wanted.into or wanted.address, wanted.accepted_from, wanted.accepted_to, wanted.selector, list(wanted.identifiers))
    cursor.execute(
        'UPDATE surety.pipeline_replay SET rate = %s, cancels = false WHERE replay = (SELECT max(replay) FROM surety.pipeline_replay WHERE shard = %s '
        'AND (address, "into", selector, identifiers) = (%s, %s, %s, %s::text[]) AND accepted_from IS NOT DISTINCT FROM %s::timestamptz '
        "AND accepted_to IS NOT DISTINCT FROM %s::timestamptz AND state = ANY(%s)) RETURNING replay",
        [wanted.rate, shard, *asked[:2], *asked[4:], *asked[2:4], list(GOES_ON)],
    )
    found = cursor.fetchone()
    if found is None:
        cursor.execute(
            'INSERT INTO surety.pipeline_replay (shard, requested_by, address, "into", accepted_from, accepted_to, selector, identifiers, rate) '
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s::text[], %s) RETURNING replay",
            [shard, requested_by, *asked, wanted.rate],
        )
        found = cursor.fetchone()
    return int(found[0])


def cancel(cursor: Any, number: int, shard: int = 0, *, is_dead: bool = False) -> bool:
    """It sends nothing more; what it has sent stays. `is_dead`: nobody works on it, whatever its row says, so that nobody else will end it. False: there is
    none that is not over."""
    cursor.execute(
        "UPDATE surety.pipeline_replay SET cancels = true, state = CASE WHEN state = 'running' AND NOT %s THEN state ELSE 'cancelled' END, "
        "ended_at = CASE WHEN state = 'running' AND NOT %s THEN ended_at ELSE clock_timestamp() END "
        "WHERE shard = %s AND replay = %s AND state = ANY(%s) RETURNING replay",
        [is_dead, is_dead, shard, number, list(GOES_ON)],
    )
    return cursor.fetchone() is not None
