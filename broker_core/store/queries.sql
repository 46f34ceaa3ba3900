-- Every statement of the store but the group commit's and those that name free-standing tables, which are generated.
-- %(shard)s and %(epoch)s are the lease's.

-- name: lease_try_lock
-- Not while another was named to take over.
SELECT CASE WHEN EXISTS (SELECT FROM surety.lease WHERE shard = %(shard)s AND successor <> %(node)s AND successor_until > clock_timestamp())
       THEN false ELSE pg_try_advisory_lock(%(lock)s, %(shard)s) END

-- name: lease_name_successor
UPDATE surety.lease SET successor = %(successor)s, successor_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE shard = %(shard)s AND epoch = %(epoch)s

-- name: lease_raise_epoch
-- The engine's clock starts here (R12), in ms.
UPDATE surety.lease
SET epoch = epoch + 1, holder_pid = pg_backend_pid(), node = %(node)s, acquired_at = clock_timestamp(), heartbeat_at = clock_timestamp(),
    successor = NULL, successor_until = NULL
WHERE shard = %(shard)s
RETURNING epoch, (extract(epoch FROM clock_timestamp()) * 1000)::int8

-- name: lease_heartbeat
UPDATE surety.lease SET heartbeat_at = clock_timestamp() WHERE shard = %(shard)s AND epoch = %(epoch)s

-- name: lease_terminate_stale
-- Backends of a holder whose heartbeat is too old: the lock's owner, if the lease names it or it has done nothing since it took the lock, and with it
-- everything else it left running under its epoch.
WITH stale AS (
    SELECT epoch, holder_pid FROM surety.lease
    WHERE shard = %(shard)s AND coalesce(heartbeat_at < clock_timestamp() - make_interval(secs => %(seconds)s), true)
), locked AS (
    SELECT l.pid FROM pg_locks l, pg_stat_activity a, stale
    WHERE l.locktype = 'advisory' AND l.classid = %(lock)s AND l.objid = %(shard)s AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND a.pid = l.pid
      AND (l.pid = stale.holder_pid OR a.state_change < clock_timestamp() - make_interval(secs => %(seconds)s))
)
SELECT pid, pg_terminate_backend(pid, 1000) FROM (
    SELECT pid FROM locked
    UNION
    SELECT a.pid FROM pg_stat_activity a, stale
    WHERE a.datname = current_database() AND a.application_name = format('surety shard %%s epoch %%s', %(shard)s, stale.epoch) AND EXISTS (SELECT FROM locked)
) AS ended

-- name: fence
-- Held to the end of the transaction: nobody raises the epoch meanwhile (R11). A key share, so that the heartbeat passes.
SELECT epoch FROM surety.lease WHERE shard = %(shard)s AND epoch = %(epoch)s FOR KEY SHARE

-- name: segments
SELECT segment, spill, last_sequence, destinations, lanes, firsts, lasts, compacting, compacted FROM surety.segment WHERE shard = %(shard)s ORDER BY segment

-- name: segment_add
INSERT INTO surety.segment (shard, segment) VALUES (%(shard)s, %(segment)s)

-- name: segment_add_spill
UPDATE surety.segment SET spill = true WHERE shard = %(shard)s AND segment = %(segment)s

-- name: segment_remove
DELETE FROM surety.segment WHERE shard = %(shard)s AND segment = %(segment)s

-- name: segment_spill_cleared
UPDATE surety.segment SET spill = false WHERE shard = %(shard)s AND spill

-- name: segment_compacting
UPDATE surety.segment SET compacting = true WHERE shard = %(shard)s AND segment = %(segment)s

-- name: segment_compacted
UPDATE surety.segment SET compacted = true, compacting = false WHERE shard = %(shard)s AND segment = %(segment)s

-- name: ledger_segments
SELECT segment, last_number FROM surety.ledger_segment WHERE shard = %(shard)s ORDER BY segment

-- name: ledger_columns
SELECT l.segment, array_agg(a.attname::text)
  FROM surety.ledger_segment l JOIN pg_attribute a ON a.attrelid = to_regclass(format('surety.ledger_%%s_%%s', l.shard, l.segment))
 WHERE l.shard = %(shard)s AND a.attnum > 0 AND NOT a.attisdropped GROUP BY l.segment ORDER BY l.segment

-- name: ledger_segment_add
INSERT INTO surety.ledger_segment (shard, segment) VALUES (%(shard)s, %(segment)s)

-- name: checkpoint_read
SELECT number, at, sequence, segment, segment_rows, segment_octets FROM surety.checkpoint WHERE shard = %(shard)s

-- name: lanes_read
SELECT destination, lane, tail, segment, segment_first FROM surety.lane WHERE shard = %(shard)s

-- name: cursors_read
SELECT subscription, lane, floor, offered FROM surety.cursor WHERE shard = %(shard)s

-- name: blocks_read
SELECT subscription, lane, block, bits FROM surety.block WHERE shard = %(shard)s

-- name: failures_read
SELECT subscription, lane, position, failures FROM surety.failure WHERE shard = %(shard)s

-- name: counters_read
SELECT destination, octets, accepted, settled, dead, expired, redelivered FROM surety.counter WHERE shard = %(shard)s

-- name: destinations_read
SELECT destination, address, created_at, automatic, state, settings FROM surety.destination
WHERE shard = %(shard)s AND destroyed_at IS NULL ORDER BY destination

-- name: aliases_read
SELECT address, target, default_reliability, maximum_reliability, reliability_override FROM surety.alias WHERE shard = %(shard)s ORDER BY address COLLATE "C"

-- name: policies_read
SELECT pattern, settings FROM surety.policy WHERE shard = %(shard)s ORDER BY pattern COLLATE "C"

-- name: subscriptions_read
SELECT subscription, destination, name, client_id, shared, selector, no_local, account, idle_since, pattern
FROM surety.subscription WHERE shard = %(shard)s AND destroyed_at IS NULL ORDER BY subscription

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8

-- name: highest_numbers
SELECT
    (SELECT coalesce(max(destination), 0) FROM surety.destination WHERE shard = %(shard)s),
    (SELECT coalesce(max(subscription), 0) FROM surety.subscription WHERE shard = %(shard)s)

-- name: retained_ranges
SELECT destination, priority, min(position), max(position) FROM surety.retained WHERE shard = %(shard)s GROUP BY destination, priority

-- name: retained_uncompact
-- What an interrupted compaction copied: its segment is still there and speaks for itself.
DELETE FROM surety.retained WHERE shard = %(shard)s AND segment = ANY(%(segments)s) RETURNING stored_body

-- name: checkpoint_write
UPDATE surety.checkpoint
SET number = %(number)s, at = %(at)s, sequence = %(sequence)s, segment = %(segment)s, segment_rows = %(rows)s, segment_octets = %(octets)s
WHERE shard = %(shard)s AND number <= %(number)s

-- name: lanes_write
INSERT INTO surety.lane (shard, destination, lane, tail, segment, segment_first)
SELECT %(shard)s, * FROM unnest(%(destinations)s::int4[], %(lanes)s::int2[], %(tails)s::int8[], %(segments)s::int4[], %(firsts)s::int8[])
ON CONFLICT (shard, destination, lane) DO UPDATE
SET tail = excluded.tail, segment = excluded.segment, segment_first = excluded.segment_first

-- name: cursors_write
INSERT INTO surety.cursor (shard, subscription, lane, floor, offered)
SELECT %(shard)s, * FROM unnest(%(subscriptions)s::int4[], %(lanes)s::int2[], %(floors)s::int8[], %(offered)s::int8[])
ON CONFLICT (shard, subscription, lane) DO UPDATE SET floor = excluded.floor, offered = excluded.offered

-- name: blocks_write
INSERT INTO surety.block (shard, subscription, lane, block, bits)
SELECT %(shard)s, * FROM unnest(%(subscriptions)s::int4[], %(lanes)s::int2[], %(blocks)s::int8[], %(bits)s::bytea[])
ON CONFLICT (shard, subscription, lane, block) DO UPDATE SET bits = excluded.bits

-- name: blocks_delete
DELETE FROM surety.block b
USING unnest(%(subscriptions)s::int4[], %(lanes)s::int2[], %(blocks)s::int8[]) AS d (subscription, lane, block)
WHERE b.shard = %(shard)s AND b.subscription = d.subscription AND b.lane = d.lane AND b.block = d.block

-- name: failures_write
INSERT INTO surety.failure (shard, subscription, lane, position, failures)
SELECT %(shard)s, * FROM unnest(%(subscriptions)s::int4[], %(lanes)s::int2[], %(positions)s::int8[], %(failures)s::int4[])
ON CONFLICT (shard, subscription, lane, position) DO UPDATE SET failures = excluded.failures

-- name: failures_delete
DELETE FROM surety.failure f
USING unnest(%(subscriptions)s::int4[], %(lanes)s::int2[], %(positions)s::int8[]) AS d (subscription, lane, position)
WHERE f.shard = %(shard)s AND f.subscription = d.subscription AND f.lane = d.lane AND f.position = d.position

-- name: counters_write
INSERT INTO surety.counter (shard, destination, octets, accepted, settled, dead, expired, redelivered)
SELECT %(shard)s, * FROM unnest(
    %(destinations)s::int4[], %(octets)s::int8[], %(accepted)s::int8[], %(settled)s::int8[], %(dead)s::int8[], %(expired)s::int8[], %(redelivered)s::int8[]
)
ON CONFLICT (shard, destination) DO UPDATE
SET octets = excluded.octets, accepted = excluded.accepted, settled = excluded.settled, dead = excluded.dead, expired = excluded.expired,
    redelivered = excluded.redelivered

-- name: idle_write
UPDATE surety.subscription s SET idle_since = i.instant
FROM unnest(%(subscriptions)s::int4[], %(instants)s::int8[]) AS i (subscription, instant)
WHERE s.shard = %(shard)s AND s.subscription = i.subscription

-- name: control_requests
SELECT request, verb, address, arguments, deadline FROM surety.control_request WHERE shard = %(shard)s AND answered_at IS NULL ORDER BY request LIMIT 100

-- name: inbox
-- The first rows that are committed, as far as they weigh no more than that; `before` is the weight of those above. Bodies are fetched for them only.
SELECT entry, address, sent_at, delay, expiration, size, priority, reliability, encoding, message_id, duplicate_id, annotations, headers, body, stored_body
FROM (
    SELECT *, sum(size) OVER (ORDER BY entry ROWS UNBOUNDED PRECEDING) - size AS before
    FROM (SELECT * FROM surety.inbox WHERE shard = %(shard)s::int2 ORDER BY entry LIMIT %(limit)s::int8) AS first
) AS weighed
WHERE before = 0 OR before + size <= %(bytes_max)s::int8
ORDER BY entry

-- name: archived_destinations
-- Whose bodies are archived, and up to which message they have been read.
SELECT destination, coalesce((SELECT sequence FROM surety.archive_reader WHERE shard = %(shard)s), 0)
FROM surety.destination WHERE shard = %(shard)s AND (settings->>'archive_ms')::int8 > 0 ORDER BY destination

-- name: archive_octets
SELECT pg_total_relation_size('surety.archive') + (
    SELECT coalesce(sum(size), 0) FROM surety.body_reference r JOIN surety.body b USING (shard, body) WHERE r.shard = %(shard)s AND r.segment = -4
)::int8

-- name: body_add
INSERT INTO surety.body (shard, epoch) VALUES (%(shard)s, %(epoch)s) RETURNING body

-- name: body_chunk_add
INSERT INTO surety.body_chunk (shard, body, chunk, octets) VALUES (%(shard)s, %(body)s, %(chunk)s, %(octets)s)

-- name: body_finish
UPDATE surety.body SET size = %(size)s WHERE shard = %(shard)s AND body = %(body)s

-- name: body_chunk
SELECT octets FROM surety.body_chunk WHERE shard = %(shard)s AND body = %(body)s AND chunk = %(chunk)s

-- name: body_size
SELECT size FROM surety.body WHERE shard = %(shard)s AND body = %(body)s

-- name: bodies_remove
WITH gone AS (DELETE FROM surety.body WHERE shard = %(shard)s AND body = ANY(%(bodies)s))
DELETE FROM surety.body_chunk WHERE shard = %(shard)s AND body = ANY(%(bodies)s)

-- name: bodies_orphaned
SELECT body FROM surety.body b
WHERE shard = %(shard)s AND epoch < %(epoch)s
  AND NOT EXISTS (SELECT FROM surety.body_reference r WHERE r.shard = b.shard AND r.body = b.body)
ORDER BY body LIMIT 100

-- name: bodies_released
-- Bodies that only this segment's messages name: they go with it.
WITH gone AS (DELETE FROM surety.body_reference WHERE shard = %(shard)s AND segment = %(segment)s RETURNING body)
SELECT DISTINCT body FROM gone
WHERE NOT EXISTS (SELECT FROM surety.body_reference r WHERE r.shard = %(shard)s AND r.body = gone.body AND r.segment <> %(segment)s)

-- name: installation_read
SELECT instance FROM surety.installation

-- name: references_retain
INSERT INTO surety.body_reference (shard, segment, body)
SELECT %(shard)s, 0, body FROM unnest(%(bodies)s::int8[]) AS body ON CONFLICT DO NOTHING

-- name: retained_sweep
-- At most %(limit)s rows of the settled ranges.
DELETE FROM surety.retained WHERE ctid = ANY(ARRAY(
    SELECT r.ctid
    FROM unnest(%(destinations)s::int4[], %(lanes)s::int2[], %(firsts)s::int8[], %(lasts)s::int8[]) AS s (destination, lane, first, last)
    JOIN surety.retained r ON r.shard = %(shard)s AND r.destination = s.destination AND r.priority = s.lane AND r.position BETWEEN s.first AND s.last
    LIMIT %(limit)s
))
RETURNING stored_body

-- name: references_release
-- Bodies that left the retained table, unless another row there still names them; those that nobody names any more.
WITH gone AS (
    DELETE FROM surety.body_reference f
    WHERE shard = %(shard)s AND segment = 0 AND body = ANY(%(bodies)s)
      AND NOT EXISTS (SELECT FROM surety.retained r WHERE r.shard = %(shard)s AND r.stored_body = f.body)
    RETURNING body
)
SELECT body FROM gone WHERE NOT EXISTS (SELECT FROM surety.body_reference r WHERE r.shard = %(shard)s AND r.body = gone.body AND r.segment <> 0)

-- name: scheduled_counts
SELECT destination, count(*), sum(size)::int8 FROM surety.scheduled WHERE shard = %(shard)s GROUP BY destination ORDER BY destination

-- name: scheduled_remove_volatile
-- At most %(limit)s delayed messages that do not survive their node.
DELETE FROM surety.scheduled WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM surety.scheduled WHERE shard = %(shard)s AND volatile LIMIT %(limit)s
))
RETURNING stored_body

-- name: scheduled_discard
-- At most %(limit)s delayed messages of a destination that is no more.
DELETE FROM surety.scheduled WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM surety.scheduled WHERE shard = %(shard)s AND destination = %(destination)s LIMIT %(limit)s
))
RETURNING stored_body

-- name: duplicates_read
-- The rows of a destination in one, as JSON: it takes the driver half the time.
SELECT destination, json_agg(at ORDER BY at, number)::text, json_agg(identifiers ORDER BY at, number)::text FROM surety.duplicate
WHERE shard = %(shard)s GROUP BY destination ORDER BY destination

-- name: operations_read
SELECT operation, verb, address, arguments::text, state, looked_at, done, skipped, failed, total, place::text, started_at, error, results::text
FROM surety.operation WHERE shard = %(shard)s AND ended_at IS NULL ORDER BY operation

-- name: operations_remove
-- Those that ended a month ago, at most 1,000.
DELETE FROM surety.operation WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM surety.operation
    WHERE shard = %(shard)s AND ended_at < (extract(epoch FROM clock_timestamp() - interval '30 days') * 1000)::int8 LIMIT 1000
))

-- name: undo_read
SELECT undo, verb, address, destination, kept_at, lapses_at, swept, messages, octets FROM surety.undo
WHERE shard = %(shard)s AND ended_at IS NULL ORDER BY undo

-- name: undo_ranges_read
SELECT undo, subscriptions, lanes, firsts, lasts, marks FROM surety.undo_range WHERE shard = %(shard)s ORDER BY undo, number

-- name: undo_remove
-- Those that ended a month ago, at most 1,000.
DELETE FROM surety.undo WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM surety.undo
    WHERE shard = %(shard)s AND ended_at < (extract(epoch FROM clock_timestamp() - interval '30 days') * 1000)::int8 LIMIT 1000
))

-- name: prepared_read
SELECT branch, xid, account, prepared_at, state::int4, octets FROM surety.prepared WHERE shard = %(shard)s ORDER BY branch

-- name: prepared_items_read
-- Of branches that wait for their outcome.
SELECT i.branch, i.outcome, i.subscription, i.address, i.headers, i.priority, i.reliability, i.expiration, i.encoding, i.message_id, i.client_id,
    i.annotations, i.delay, i.duplicate_id, i.sequence, i.position, i.accepted_at, i.destination, i.size, i.body, i.stored_body
FROM surety.prepared_item i JOIN surety.prepared p USING (shard, branch)
WHERE shard = %(shard)s AND p.state = %(state)s ORDER BY branch, item

-- name: duplicates_trim
-- At most %(limit)s rows of commits before the instants.
DELETE FROM surety.duplicate WHERE ctid = ANY(ARRAY(
    SELECT d.ctid FROM unnest(%(destinations)s::int4[], %(instants)s::int8[]) AS t (destination, instant)
    JOIN surety.duplicate d ON d.shard = %(shard)s AND d.destination = t.destination AND d.at < t.instant
    LIMIT %(limit)s
))

-- name: references_unschedule
-- Bodies that left the schedule; those that nobody names any more.
WITH gone AS (
    DELETE FROM surety.body_reference WHERE shard = %(shard)s AND segment = -1 AND body = ANY(%(bodies)s) RETURNING body
)
SELECT body FROM gone WHERE NOT EXISTS (SELECT FROM surety.body_reference r WHERE r.shard = %(shard)s AND r.body = gone.body AND r.segment <> -1)

-- name: segments_uncompact
UPDATE surety.segment SET compacting = false WHERE shard = %(shard)s AND segment = ANY(%(segments)s)

-- name: ledger_segments_open
SELECT segment FROM surety.ledger_segment WHERE shard = %(shard)s AND last_number IS NULL AND segment < %(segment)s ORDER BY segment

-- name: ledger_segment_close
UPDATE surety.ledger_segment SET last_number = %(number)s, last_at = %(at)s, octets = %(octets)s WHERE shard = %(shard)s AND segment = %(segment)s

-- name: ledger_segments_closed
-- `total` is the size of this table and all newer ones that are closed; `unread` if some reader of the ledger has not been past its end.
SELECT segment, last_number, last_at, sum(octets) OVER (ORDER BY segment DESC)::int8 AS total,
    EXISTS (SELECT FROM surety.ledger_reader r WHERE r.shard = s.shard AND r.number < s.last_number) AS unread
FROM surety.ledger_segment s
WHERE shard = %(shard)s AND last_number <= (SELECT number FROM surety.checkpoint c WHERE c.shard = s.shard)
ORDER BY segment

-- name: ledger_segment_remove
DELETE FROM surety.ledger_segment WHERE shard = %(shard)s AND segment = %(segment)s

-- name: ledger_gap_add
INSERT INTO surety.ledger_gap (shard, first_number, last_number, reason) VALUES (%(shard)s, %(first)s, %(last)s, %(reason)s)

-- name: progress_remove_destroyed
-- Progress of destinations that are no more, but for what says which numbers were given.
WITH gone AS (
    SELECT destination FROM surety.destination WHERE shard = %(shard)s AND destroyed_at IS NOT NULL
), lanes AS (
    DELETE FROM surety.lane l USING gone WHERE l.shard = %(shard)s AND l.destination = gone.destination
), counters AS (
    DELETE FROM surety.counter c USING gone WHERE c.shard = %(shard)s AND c.destination = gone.destination
), ended AS (
    SELECT subscription FROM surety.subscription WHERE shard = %(shard)s AND destroyed_at IS NOT NULL
    UNION ALL
    SELECT -destination FROM gone
), blocks AS (
    DELETE FROM surety.block b USING ended WHERE b.shard = %(shard)s AND b.subscription = ended.subscription
), failures AS (
    DELETE FROM surety.failure f USING ended WHERE f.shard = %(shard)s AND f.subscription = ended.subscription
)
DELETE FROM surety.cursor c USING ended WHERE c.shard = %(shard)s AND c.subscription = ended.subscription

-- name: tombstones_remove
-- Kept a day for who looks back; the highest number must stay known, so that it is never given again.
WITH subscriptions AS (
    DELETE FROM surety.subscription
    WHERE shard = %(shard)s AND destroyed_at < clock_timestamp() - interval '1 day'
      AND subscription < (SELECT max(subscription) FROM surety.subscription WHERE shard = %(shard)s)
)
DELETE FROM surety.destination
WHERE shard = %(shard)s AND destroyed_at < clock_timestamp() - interval '1 day'
  AND destination < (SELECT max(destination) FROM surety.destination WHERE shard = %(shard)s)
