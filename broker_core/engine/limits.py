"""The bounds within which the engine works, given to it at recovery; `config` explains each and reads it from the environment."""

from dataclasses import dataclass

from .settings import Settings

DEFAULTS = Settings()


@dataclass(slots=True, frozen=True)
class Limits:
    """Rows, octets and milliseconds."""

    page_rows: int = 1000
    page_octets: int = 4 << 20
    window_rows: int = 2000
    """Messages of one lane kept in memory ahead of their delivery."""
    window_octets: int = 8 << 20
    memory_octets: int = 128 << 20
    """All messages in memory together, by their weight; beyond it stored ones stay on disk and volatile ones spill."""
    link_octets: int = 16 << 20
    """Outstanding on one link beside its credit; at least one message (R16)."""
    link_unsettled: int = 65_535
    browsers_max: int = 64
    """Open in all. One reads a page at a time, so they hold a few pages together, and what one flush hands to all of them is `page_rows` messages."""
    peer_browsers_max: int = 16
    segment_rows: int = 250_000
    segment_octets: int = 128 << 20
    dead_retention_ms: int = 14 * 86_400_000
    dead_truncate_body: bool = False
    """Of dead messages only headers and properties are kept, unless one wishes otherwise (see wishes)."""
    dead_log: bool = False
    """Dead messages are told of, unless one wishes otherwise."""
    reap_ms: int = 120_000
    """An automatic destination without consumers and messages for so long is destroyed (Open MQ's imq.autocreate.reaptime)."""
    transactions_max: int = 100
    """Of one peer at a time."""
    transaction_messages_max: int = 10_000
    """Sends and settlements of one transaction: they are one commit of the database."""
    transaction_octets_max: int = 64 << 20
    """Of its sends; large bodies count, though they are in the store already."""
    transaction_ms_max: int = 300_000
    """One that lasts longer is rolled back: what it reserved is nobody's meanwhile."""
    prepared_max: int = 1_000
    """Branches of distributed transactions that are prepared, or were ended by hand and are not forgotten. Nobody but their owners ends them."""
    account_prepared_max: int = 250
    """Those of one account."""
    prepared_octets_max: int = 64 << 20
    """What prepared ones keep in memory until they end: their sends, and header sections of what they acknowledged. One account may have half of it."""
    auto_create: bool = True
    destinations_max: int = 50_000
    """Of all kinds together; clients and operators create no more. One in use takes about 4 KiB: 200 MiB for all."""
    aliases_max: int = 1_000
    """Names that stand for other destinations. When one is changed all are looked at: a millisecond."""
    subscriptions_max: int = 50_000
    """Of all topics together, durable or not. One takes about 1.6 KiB and 1.9 KiB more for each lane of its topic: 270 MiB for all where two lanes
    are in use."""
    topic_subscriptions_max: int = 20_000
    """Of one topic: what ends or expires for all of them takes tens of milliseconds."""
    topic_filters_max: int = 2_000
    """Distinct filters on one topic that have to be asked of each message, as no comparison with a constant finds them: at 1 to 5 us each. Patterns'
    members, of which there are few, count and are not refused."""
    account_subscriptions_max: int = 10_000
    """Durable ones of one account, so that five accounts may do so before the broker is full. Others end with their connections, which are bounded."""
    account_selector_octets_max: int = 1 << 20
    """Of the text of one account's selectors, of topics' subscriptions and queues' consumers: 40 MiB of memory, and 30 ms to ask all of them."""
    patterns_max: int = 1_000
    """Different patterns that wildcard subscriptions have. A new topic is compared with each: 1 ms; a new pattern with each topic: 50 ms for 50,000."""
    subscription_inactive_ms: int = 0
    """A durable subscription without a consumer for so long is ended; 0: none ever is."""
    subscription_groups_max: int = 16_384
    """Message groups of one queue or shared subscription that have an owner of their own; further ones share owners. About 0.3 KiB each: 5 MiB."""
    groups_max: int = 262_144
    """The same of all together: 80 MiB."""
    temporaries_max: int = 1_000
    """Temporary destinations of one peer, about 5 KiB each with its consumer: 5 MiB a peer. Those of all peers count towards `destinations_max`."""
    message_octets_max: int = 100 << 20
    """The body of one message. Protocol machines refuse a larger one as it comes; here it is looked at where none is between: sent from SQL."""
    settings: Settings = DEFAULTS
    """Of destinations that nobody set otherwise."""
    deliveries: int = 10_000
    """Messages that one flush hands out; 8 KiB of them count as one more, and so does a look at a subscription. With their frames that is 40 ms."""
    fan_out: int = 10_000
    """Pairs of a published message and a subscription with consumers that one batch puts together at once, and so many again that a flush takes
    from what earlier ones left: 0.5 us each."""
    returns: int = 2_000
    """Deliveries that come back from closed links, aborted transactions and NACKs within one batch; more wait for the flushes, as what is fanned out.
    3 to 8 us each."""
    timers: int = 5_000
    """That one flush fires, at 2 us each."""
    removals: int = 4_000
    """Steps of one flush that remove messages from full destinations, beside those for what came: 2 us each."""
    admissions: int = 2_000
    """Sends that waited for room and that one flush lets in."""
    waiting_octets: int = 64 << 20
    """Of all sends that wait for room; beyond them they are refused."""
    looks: int = 4_000
    """Messages compared with selectors on queues in one flush: at 2 us each it is at most 8 ms longer."""
    scan_rows: int = 500
    """Rows that a selective consumer's scan takes from the store at a time, without their bodies: looking at them takes 2 ms."""
    scan_positions: int = 50_000
    """Positions that one such read may cover, if the store leaves out what does not match: 40 ms of its time."""
    schedule_ahead_ms: int = 60_000
    """Delayed messages that are due so soon are read ahead; with later ones only the store is concerned, once in half that time."""
    schedule_rows: int = 10_000
    """Delayed messages kept in memory, at the most: ten pages, so that one is read while others become visible."""
    schedule_octets: int = 16 << 20
    """Theirs: four pages. As many again for delayed best-effort messages, which are nowhere else."""
    duplicate_ids_max: int = 100_000
    """Identifiers that one destination remembers; beyond them the oldest is forgotten before its window has passed. One of 36 octets takes 240 octets
    of memory, 24 MiB for all, the longest of 255 take 46 MiB."""
    duplicate_ids_total_max: int = 500_000
    """Of all destinations: 120 MiB. When there are more, each may remember as many as an equal share of them."""
    expiry_rows: int = 1000
    """Rows an expiry sweep looks at in one read."""
    expiry_steps: int = 2_000
    """What one flush ends of them: neighbours that expire for one subscription are a step of about 4 us, so a flush is at most 10 ms longer."""
    operation_rows: int = 400
    """Messages that an operation of an operator's reads at a time, without their bodies."""
    operation_effort: int = 8_000
    """Microseconds, about, of the node and of the database, that a flush gives to operations when it has nothing else to do."""
    operation_effort_beside: int = 2_000
    """The same beside other traffic: 100 messages that are moved, for which it waits 1 to 2 ms, as the node's part is done while the database has another
    commit. Half of it did no good: each commit has its price."""
    undo_ms: int = 0
    """For so long a purge can be undone, where its destination says nothing else; 0: none can. Meanwhile the disk keeps what it discarded."""
    undo_records_max: int = 1_000
    """Purges and deletions that can be undone; of more the oldest cannot any more."""
    undo_ranges_max: int = 1_000_000
    """Ranges of neighbours in what they have discarded, at 24 octets of memory each. One may have a quarter of them: to undo it takes 0.5 s."""
    compact_below: float = 0.10
    """A closed segment with a smaller part of its rows unsettled is compacted (R5)."""
