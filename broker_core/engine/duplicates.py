"""Duplicate detection: on a destination with a window, a message that carries an identifier of its sender's is accepted once, however often it is sent
within the window (Artemis' duplicate ID cache). So who does not know what became of a message sends it again.

An identifier is remembered with the acceptance of its message and is as safe as that: its row is in the commit that stores the message; of a volatile
message it is in memory only. Rows are only ever appended by commits; the janitor deletes those that are older than what is remembered here (R1).
"""

from __future__ import annotations

from bisect import bisect_right

from .accounting import discard_body
from .destination import Destination
from .known_ids import KnownIds
from .message import Message
from .shard import Shard
from .upkeep import TrimDuplicates

LOOKS = 1_000
"""Destinations looked through for what has left their windows in one report, which comes once a second: 0.3 ms."""
FORGOTTEN_MAX = 20_000
"""Identifiers forgotten in one report: 5 ms. When more than that leave their windows, the bound of each destination keeps them few."""


def is_duplicate(shard: Shard, destination: Destination, message: Message) -> bool:
    """Whether a message with its identifier was accepted within the window: then this one is dropped, and to be confirmed."""
    known = destination.known_ids
    assert known is not None
    if not known.has(message.header.duplicate_id, shard.now - destination.settings.duplicate_window_ms):
        return False
    shard.duplicates.dropped += 1
    discard_body(shard, message)
    return True


def remember(shard: Shard, destination: Destination, identifier: str, *, stored: bool) -> None:
    """Its message has been accepted. `stored`: with a row in the open batch's commit."""
    known, limits = destination.known_ids, shard.limits
    assert known is not None
    if stored:
        shard.batch.remembered.setdefault(destination, []).append(identifier)
    most = limits.duplicate_ids_max
    if shard.duplicates.ids >= limits.duplicate_ids_total_max:
        most = min(most, _share(shard))
    shard.duplicates.ids += known.add(identifier, shard.now)
    for _ in range(min(len(known) - most, 2)):  # one more than came: so who has more than his share comes down to it
        known.forget_oldest()
        shard.duplicates.ids -= 1


def _share(shard: Shard) -> int:
    """What each destination may remember when all together remember too much."""
    return max(shard.limits.duplicate_ids_total_max // len(shard.duplicates.turns), 1)


def rows(shard: Shard) -> list[tuple[int, list[str]]]:
    """Of the open batch, for its commit: (destination, identifiers)."""
    for destination in shard.batch.remembered:
        if destination.known_ids is not None:
            destination.known_ids.stored_at = shard.now
        else:
            shard.duplicates.leaving[destination.number] = shard.now
    return [(destination.number, identifiers) for destination, identifiers in shard.batch.remembered.items()]


# -- windows --------------------------------------------------------------------------------------------------------------------------
def follow_settings(shard: Shard, destination: Destination) -> None:
    """The destination begins to remember, or ends; those of a shorter window are forgotten in time."""
    if destination.owner is not None:
        return
    if not destination.settings.duplicate_window_ms:
        forget_all(shard, destination)
    elif destination.known_ids is None:
        destination.known_ids = KnownIds()
        destination.known_ids.stored_at = shard.duplicates.leaving.pop(destination.number, 0)
        shard.duplicates.turns.append(destination)


def forget_all(shard: Shard, destination: Destination) -> None:
    """The window is closed, or the destination ends."""
    known, destination.known_ids = destination.known_ids, None
    if known is not None:
        shard.duplicates.ids -= len(known)
        shard.duplicates.turns.remove(destination)
        if known.stored_at:
            shard.duplicates.leaving[destination.number] = known.stored_at


def restore(shard: Shard, number: int, instants: list[int], identifiers: list[str], now: int) -> None:
    """What the store kept, oldest first; `now` by the database's clock. What is too old, or of too many the oldest, is forgotten."""
    destination = shard.numbered.get(number)
    known = destination.known_ids if destination is not None else None
    if destination is None or known is None:
        shard.duplicates.leaving[number] = instants[-1]
        return
    known.stored_at = instants[-1]
    first = bisect_right(instants, now - destination.settings.duplicate_window_ms)
    # The clock may have been set back since: nothing is younger than what is to come.
    known.load([min(accepted_at, now) for accepted_at in instants[first:]], identifiers[first:])
    while len(known) > shard.limits.duplicate_ids_max:
        known.forget_oldest()
    shard.duplicates.ids += len(known)


def restored(shard: Shard) -> None:
    """All of it: what is too much together goes."""
    if shard.duplicates.ids <= shard.limits.duplicate_ids_total_max:
        return
    most = _share(shard)
    for destination in shard.duplicates.turns:
        known = destination.known_ids
        assert known is not None
        while len(known) > most:
            known.forget_oldest()
            shard.duplicates.ids -= 1


# -- in the background ----------------------------------------------------------------------------------------------------------------
def trims(shard: Shard) -> list[TrimDuplicates]:
    """Forget what has left its window, some of it a call, and have the rows deleted that nobody remembers."""
    all_of_them = shard.duplicates
    left = FORGOTTEN_MAX
    before: list[tuple[int, int]] = []
    for _ in range(min(len(all_of_them.turns), LOOKS)):
        destination = all_of_them.turns[0]
        known = destination.known_ids
        assert known is not None
        forgotten = known.forget(shard.now - destination.settings.duplicate_window_ms, left)
        left -= forgotten
        all_of_them.ids -= forgotten
        # A row is written later than its identifiers are remembered: those before the oldest have none that is.
        instant = known.oldest_at if known else shard.now
        if known.stored_at and known.stored_at >= known.trimmed_before and instant > known.trimmed_before:
            known.trimmed_before = instant
            before.append((destination.number, instant))
        if not left:
            break
        all_of_them.turns.rotate(-1)
    # Whoever opens the window again has rows that are younger than this instant.
    gone = [number for number, stored_at in all_of_them.leaving.items() if stored_at < shard.now]
    for number in gone:
        del all_of_them.leaving[number]
        before.append((number, shard.now))
    return [TrimDuplicates(before)] if before else []
