"""The tables of the pipeline, as the connector reads them and the lake keeps them. Each column says here what it means, in Spark's own `comment`.

Nothing is told that the ledger does not say. It knows messages by their places: position `first` to `last` of a lane of a destination; it knows no identifiers,
sizes or expirations of single messages (those are in their rows, table `messages`, as long as the rows are there), and nothing of volatile messages, which are
in no commit. Instants are the engine's clock, to the millisecond, in UTC.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType, BooleanType, ByteType, DataType, IntegerType, LongType, ShortType, StringType, StructField, StructType, TimestampType,
)  # fmt: skip

from broker_core.engine.message import LEVEL_NAMES
from broker_core.engine.outcome import Outcome

VERSION = 1
"""Of these schemas. What is added later is null in files that were written before; nothing is ever renamed, nor changes its type."""

ACCEPTED, OFFERED, SETTLED, FAILED, OCTETS, TRACED, BEGUN, ENDED, BLOCKED = KINDS = (
    "accepted", "offered", "settled", "failed", "octets", "traced", "begun", "ended", "blocked",
)  # fmt: skip
"""Of events."""
DIED, OPERATED = CAUSES = ("died", "operated")
"""Of traces."""
OUTCOMES = tuple(outcome.name.lower() for outcome in Outcome)
"""By the numbers that the ledger has. What each means: engine.outcome.Outcome. No event has released, failed or unused, which settle nothing."""
PERSISTENT, VOLATILE = MODES = ("persistent", "volatile")
BUCKETS = 16
"""Destinations share so many folders of a date: see docs/pipeline.md."""


def _column(name: str, kind: DataType, meaning: str, *, nullable: bool = False) -> StructField:
    return StructField(name, kind, nullable, {"comment": meaning})


_SHARD = _column("shard", ShortType(), "Which of the broker's shards; 0 as long as there is one.")
_NUMBER = _column("number", LongType(), "The commit, dense within its shard: what has the same number is durable together or not at all.")
_AT = _column("at", TimestampType(), "When the commit was made, by the engine's clock, which never goes back within an epoch.")
_EPOCH = _column("epoch", LongType(), "The term of the lease under which it was made: it rises whenever a node takes over, the same one included.")
_LANE = _column(
    "lane", ShortType(), "The lane of the destination: its priority, and 10 more if it is volatile. Positions are dense within it, from 0.", nullable=True
)

EVENTS = StructType(
    [
        _SHARD,
        _NUMBER,
        _AT,
        _EPOCH,
        _column(
            "kind", StringType(),
            "accepted: messages first to last entered the lane, by a producer, a transaction's commit, a due date, or as copies of moved or dead ones. "
            "offered: they left for a consumer after this commit, and may have reached it. settled: they are over for the subscription, with the outcome. "
            "failed: a delivery failed, `count` is how often by now. octets: what the destination holds has changed by `octets`. "
            "traced: what died there or was moved from there is in `to` now. begun, ended: the durable subscription, or all of the destination. "
            "blocked: from `since` to `until` producers of the destination waited for room there.",
        ),
        _column("ordinal", IntegerType(), "Which of the commit's events of this kind, from 0. (shard, number, kind, ordinal) is unique."),
        _column(
            "destination", IntegerType(),
            "Whose lane it is. Null: the ledger names a subscription that the database does not know, which is wrong.", nullable=True,
        ),
        _column(
            "subscription", IntegerType(),
            "Whom it concerns; of a queue the one that is built in. Null: nobody in particular (accepted, octets, blocked). Of topics only durable ones are "
            "told of.", nullable=True,
        ),
        _LANE,
        _column("priority", ByteType(), "0 to 9, from the lane.", nullable=True),
        _column("mode", StringType(), "persistent or volatile, from the lane. What is volatile is in no ledger so far.", nullable=True),
        _column("first", LongType(), "The first position of the range, inclusive.", nullable=True),
        _column("last", LongType(), "The last one, inclusive.", nullable=True),
        _column("link", LongType(), "Of offered: the consumer, by a number that is unique within the epoch.", nullable=True),
        _column("outcome", StringType(), "Of settled: how it ended, in small letters (engine.outcome.Outcome).", nullable=True),
        _column("count", IntegerType(), "Of failed: failures of the message in this subscription so far. A crash or a lost connection is none.", nullable=True),
        _column("messages", LongType(), "last - first + 1; 0 of octets and of what has no positions.", nullable=False),
        _column(
            "octets", LongType(),
            "Of octets: by how much the octets of the destination's unsettled stored messages have changed, of a topic once for every subscription. "
            "Of a topic it may be an estimate.", nullable=True,
        ),
        _column("cause", StringType(), "Of traced: died, or operated: an operator had them moved or copied.", nullable=True),
        _column("to", IntegerType(), "Of traced: where they are now. Null: nothing is kept of them.", nullable=True),
        _column("to_lane", ShortType(), "Of traced: in which lane.", nullable=True),
        _column("to_first", LongType(), "Of traced: the position of the first; the others follow.", nullable=True),
        _column(
            "arrived", LongType(),
            "Of octets: those of stored messages that came, counted as `octets`; arrived - octets have left. What an undone purge gave back has come. "
            "Null: the commit is older than that is told.", nullable=True,
        ),
        _column("since", TimestampType(), "Of blocked: from when on, by the engine's clock.", nullable=True),
        _column("until", TimestampType(), "Of blocked: until when; while it lasts a part is told about once a minute.", nullable=True),
    ]
)  # fmt: skip
"""One row for each range of a commit, not for each message."""

COMMITS = StructType(
    [
        _SHARD,
        _NUMBER,
        _AT,
        _EPOCH,
        _column("sequence", LongType(), "The highest number of a message that was given out so far; message-ids are made of them."),
        _column("segment", IntegerType(), "The table that took its messages: surety.message_<shard>_<segment>."),
        _column("weight", LongType(), "Octets of the messages that it brought, header sections and bodies; what was copied in the database is not in it."),
    ]
)
"""One row for each commit, also for one that only defines or answers something and has no events."""

DESTINATIONS = StructType(
    [
        _SHARD,
        _column("destination", IntegerType(), "Its number, never given to another."),
        _column("address", StringType(), "As in queue/orders. Another one may have it again when this one is destroyed."),
        _column("is_topic", BooleanType(), "A topic, else a queue."),
        _column("built_in", BooleanType(), "The broker's own: queue/mq.sys.dmq, the dead message queue, is one."),
        _column("created_at", TimestampType(), "When."),
        _column("automatic", BooleanType(), "Created by a client's use, and destroyed when it is idle and empty."),
        _column("state", ShortType(), "What is paused: 1 consumers, 2 producers, 3 both."),
        _column("settings", StringType(), "JSON object, as engine.settings.Settings."),
        _column("destroyed_at", TimestampType(), "By the database's clock. Null: it is there.", nullable=True),
    ]
)
"""All that are or were, but temporary ones, of which nothing is stored."""

SUBSCRIPTIONS = StructType(
    [
        _SHARD,
        _column("subscription", IntegerType(), "Its number, never given to another."),
        _column("destination", IntegerType(), "Its queue or topic; 0 of one with a pattern, whose members, one a topic, have the same client_id and name."),
        _column("name", StringType(), "As its durable subscriber calls it; empty of a queue's."),
        _column("client_id", StringType(), "Of the client whose it is; empty: shared by all clients, or a queue's."),
        _column("shared", BooleanType(), "Several consumers at a time."),
        _column("built_in", BooleanType(), "A queue's own, one each."),
        _column("selector", StringType(), "What it takes; empty: everything. What it leaves out is settled as excluded."),
        _column("no_local", BooleanType(), "It leaves out what its own client sent."),
        _column("account", StringType(), "Its owner; empty: built in."),
        _column("pattern", StringType(), "Of a wildcard subscription; else empty."),
        _column("idle_since", TimestampType(), "When its last consumer left, as the checkpoint knew. Null: it had one, or never had.", nullable=True),
        _column("destroyed_at", TimestampType(), "By the database's clock. Null: it is there.", nullable=True),
    ]
)
"""All durable ones that are or were; volatile ones are in no ledger."""

GAPS = StructType(
    [
        _SHARD,
        _column("first_number", LongType(), "The first commit that is not there."),
        _column("last_number", LongType(), "The last one."),
        _column("reason", StringType(), "Why: the ledger's size cap dropped it unread (then the database says so), or it is missing and nobody says why."),
        _column("dropped_at", TimestampType(), "By the database's clock; null if nobody says.", nullable=True),
    ]
)
"""What the pipeline could never read. Of the messages of these commits nothing can be proven."""

MESSAGES = StructType(
    [
        _SHARD,
        _column("segment", IntegerType(), "The table that took it: surety.message_<shard>_<segment>. What outlives its table is read from where it was kept."),
        _column("sequence", LongType(), "Its number in the shard."),
        _column("destination", IntegerType(), "Where it is stored: once, however many subscriptions it has."),
        _column("lane", ShortType(), "Of the destination, as in events."),
        _column("position", LongType(), "In the lane."),
        _column("accepted_at", TimestampType(), "When it became visible."),
        _column("expiration", TimestampType(), "When it expires. Null: never.", nullable=True),
        _column("size", IntegerType(), "Octets of header section and body."),
        _column("priority", ByteType(), "0 to 9."),
        _column("reliability", StringType(), f"One of {', '.join(LEVEL_NAMES)}."),
        _column("encoding", StringType(), "stomp or amqp: the form in which it came."),
        _column("message_id", StringType(), "If it is not ID:<instance>-<sequence>. Null: it is.", nullable=True),
        _column("client_id", StringType(), "Of its sender, if that named itself.", nullable=True),
        _column("annotations", StringType(), "JSON object of what the broker added: reason, time, origin of a dead message. Null: nothing.", nullable=True),
    ]
)
"""What the rows of stored messages say, without header sections and bodies. A row may be there though its message is settled: segments go as a whole."""

BODIES = StructType(
    [
        _SHARD,
        _column("sequence", LongType(), "Its number in the shard; no other row has it."),
        _column("destination", IntegerType(), "Where it was stored."),
        _column("lane", ShortType(), "Of the destination, as in events."),
        _column("position", LongType(), "In the lane."),
        _column("at", TimestampType(), "When it became visible."),
        _column("expiration", TimestampType(), "When it expired, or was to. Null: never.", nullable=True),
        _column("priority", ByteType(), "0 to 9."),
        _column("reliability", StringType(), f"One of {', '.join(LEVEL_NAMES)}."),
        _column("encoding", StringType(), "stomp or amqp: the form in which it came, and in which headers and body are."),
        _column("message_id", StringType(), "JMSMessageID."),
        _column("client_id", StringType(), "Of its sender, if that named itself.", nullable=True),
        _column("annotations", StringType(), "JSON object of what the broker added. Null: nothing.", nullable=True),
        _column("headers", BinaryType(), "The header section as it is kept: of STOMP lines of escaped names and values; of AMQP the sections before the body."),
        _column("body", BinaryType(), "Its octets."),
    ]
)
"""Stored messages of destinations with `archive_ms`, as a whole."""

PRESENT = StructType(
    [
        _SHARD,
        _column("number", LongType(), "The commit after which this is so: the checkpoint's, or of prepared and scheduled the last one that was seen."),
        _column(
            "kind", StringType(),
            "tail: the lane has had positions 0 to last. settled: first to last are over for the subscription. offered: first to last may have left for "
            "a consumer, and nothing else has. failed: one position has `count` failures. buried: of a topic, first to last are in the dead message queue "
            "already. reserved: a prepared transaction has acknowledged it. sent: a prepared transaction is to send `count` messages. scheduled: `count` "
            "delayed messages are to come to the destination. Of a destination: octets, accepted_total, settled_total, dead_total, expired_total, "
            "redelivered_total, each a `count`.",
        ),
        _column("destination", IntegerType(), "Whose.", nullable=True),
        _column("subscription", IntegerType(), "Whose; null where it is the destination's.", nullable=True),
        _LANE,
        _column("first", LongType(), "The first position, inclusive.", nullable=True),
        _column("last", LongType(), "The last one, inclusive; -1: there is none.", nullable=True),
        _column("count", LongType(), "See kind.", nullable=True),
        _column("branch", LongType(), "Of reserved and sent: the transaction's branch.", nullable=True),
    ]
)  # fmt: skip
"""What the store still holds: progress as the checkpoint has it, prepared and delayed messages as their tables have them, all of one snapshot."""

TABLES = {
    "events": EVENTS, "commits": COMMITS, "destinations": DESTINATIONS, "subscriptions": SUBSCRIPTIONS, "gaps": GAPS, "messages": MESSAGES, "present": PRESENT,
    "bodies": BODIES,
}  # fmt: skip
"""What the connector reads with the option `table`."""
