-- The whole of Surety's schema. Instants of the engine are int8 milliseconds since the epoch (its clock is this database's, R12); those only
-- people read are timestamptz. Every key starts with the shard (R18); free-standing tables carry shard and number in their names:
--   surety.message_<shard>_<segment>, its UNLOGGED twin surety.spill_<shard>_<segment>, surety.ledger_<shard>_<segment>   (R1, R4)

CREATE SCHEMA IF NOT EXISTS surety;

-- Names this installation in message ids (ID:<instance>-<sequence>), so that ids of two brokers never meet.
CREATE TABLE surety.installation (instance text NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 12));
INSERT INTO surety.installation DEFAULT VALUES;

-- Who may commit. (shard, epoch) is unique so that raising the epoch is a key update: it waits for whoever holds the row FOR KEY SHARE (fenced work of
-- the old epoch, R11), while a heartbeat, which is none, does not wait for them.
CREATE TABLE surety.lease (
    shard int2 PRIMARY KEY,
    epoch int8 NOT NULL DEFAULT 0,
    holder_pid int4,
    node text,
    acquired_at timestamptz,
    heartbeat_at timestamptz,
    UNIQUE (shard, epoch)
) WITH (fillfactor = 50);
INSERT INTO surety.lease (shard) VALUES (0);
-- Whether the holder's session still has the lock (its class is the store's LOCK): it is gone the moment the node is, heartbeats only grow old.
CREATE VIEW surety.lease_held AS
SELECT shard, EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1398100549 AND l.objid = lease.shard AND l.objsubid = 2 AND l.granted AND l.pid = lease.holder_pid
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS held
FROM surety.lease;

-- Free-standing message tables. A closed segment knows where it ended; a compacted one has its survivors in `retained` and awaits its drop.
CREATE TABLE surety.segment (
    shard int2,
    segment int4,
    spill boolean NOT NULL DEFAULT false,
    last_sequence int8,
    destinations int4[],
    lanes int2[],
    firsts int8[],
    lasts int8[],
    compacting boolean NOT NULL DEFAULT false,
    compacted boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at timestamptz,
    PRIMARY KEY (shard, segment)
);

-- Free-standing ledger tables. last_number, last_at and octets are known once the segment is closed. A gap says what the size cap dropped unread (R26).
CREATE TABLE surety.ledger_segment (
    shard int2,
    segment int4,
    last_number int8,
    last_at int8,
    octets int8,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, segment)
);
CREATE TABLE surety.ledger_gap (
    shard int2,
    first_number int8,
    last_number int8 NOT NULL,
    reason text NOT NULL,
    dropped_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, first_number)
);
-- Up to which commit the data pipeline has read the ledger.
CREATE TABLE surety.ledger_reader (
    shard int2,
    reader text,
    number int8 NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, reader)
);

-- The checkpoint of the ledger (R1): commit `number` and all before it are contained in lane, cursor, block and failure.
CREATE TABLE surety.checkpoint (
    shard int2 PRIMARY KEY,
    number int8 NOT NULL DEFAULT 0,
    at int8 NOT NULL DEFAULT 0,
    sequence int8 NOT NULL DEFAULT 0,
    segment int4 NOT NULL DEFAULT 1,
    segment_rows int8 NOT NULL DEFAULT 0,
    segment_octets int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO surety.checkpoint (shard) VALUES (0);

-- segment and segment_first tell where the lane began in the segment that was open at the checkpoint.
CREATE TABLE surety.lane (
    shard int2,
    destination int4,
    lane int2,
    tail int8 NOT NULL,
    segment int4,
    segment_first int8,
    PRIMARY KEY (shard, destination, lane)
) WITH (fillfactor = 70);
CREATE TABLE surety.cursor (
    shard int2,
    subscription int4,
    lane int2,
    floor int8 NOT NULL,
    offered int8 NOT NULL,
    PRIMARY KEY (shard, subscription, lane)
) WITH (fillfactor = 70);
CREATE TABLE surety.block (
    shard int2,
    subscription int4,
    lane int2,
    block int8,
    bits bytea NOT NULL,
    PRIMARY KEY (shard, subscription, lane, block)
) WITH (fillfactor = 70);
ALTER TABLE surety.block ALTER bits SET STORAGE plain;
CREATE TABLE surety.failure (
    shard int2,
    subscription int4,
    lane int2,
    position int8,
    failures int4 NOT NULL,
    PRIMARY KEY (shard, subscription, lane, position)
);

-- Octets held now, and totals since creation.
CREATE TABLE surety.counter (
    shard int2,
    destination int4,
    octets int8 NOT NULL,
    accepted int8 NOT NULL,
    settled int8 NOT NULL,
    dead int8 NOT NULL,
    expired int8 NOT NULL,
    redelivered int8 NOT NULL,
    PRIMARY KEY (shard, destination)
) WITH (fillfactor = 70);

-- Numbers are never given twice: what is destroyed stays as a tombstone, since rows of its number may still lie in segments.
CREATE TABLE surety.destination (
    shard int2,
    destination int4,
    address text NOT NULL,
    created_at int8 NOT NULL,
    automatic boolean NOT NULL,
    state int2 NOT NULL,
    settings jsonb NOT NULL,
    destroyed_at timestamptz,
    PRIMARY KEY (shard, destination)
);
CREATE UNIQUE INDEX destination_address ON surety.destination (shard, address) WHERE destroyed_at IS NULL;
-- A wildcard subscription has its pattern and destination 0; its members, one a topic, have the same client and name.
CREATE TABLE surety.subscription (
    shard int2,
    subscription int4,
    destination int4 NOT NULL,
    name text NOT NULL,
    client_id text NOT NULL,
    shared boolean NOT NULL,
    selector text NOT NULL,
    no_local boolean NOT NULL,
    account text NOT NULL,
    idle_since int8 NOT NULL DEFAULT 0,
    pattern text NOT NULL DEFAULT '',
    destroyed_at timestamptz,
    PRIMARY KEY (shard, subscription)
);
CREATE INDEX subscription_destination ON surety.subscription (shard, destination);

-- Identifiers of accepted messages that must not be accepted again, those of one commit together. Only appended; the janitor deletes what is forgotten.
CREATE TABLE surety.duplicate (
    shard int2,
    destination int4,
    at int8,
    number int8,
    identifiers text[] NOT NULL,
    PRIMARY KEY (shard, destination, at, number)
);
ALTER TABLE surety.duplicate ALTER identifiers SET STORAGE external;

-- Survivors of compacted segments (R5): a segment's columns, and where the row came from.
CREATE TABLE surety.retained (
    shard int2 NOT NULL,
    segment int4 NOT NULL,
    sequence int8 NOT NULL,
    position int8 NOT NULL,
    accepted_at int8 NOT NULL,
    expiration int8 NOT NULL,
    destination int4 NOT NULL,
    size int4 NOT NULL,
    priority int2 NOT NULL,
    reliability int2 NOT NULL,
    encoding int2 NOT NULL,
    routed int4,
    stored_body int8,
    message_id text,
    client_id text,
    annotations text,
    headers bytea NOT NULL,
    body bytea,
    PRIMARY KEY (shard, destination, priority, position)
);
ALTER TABLE surety.retained ALTER headers SET STORAGE external, ALTER body SET STORAGE external;
CREATE INDEX retained_stored_body ON surety.retained (shard, stored_body) WHERE stored_body IS NOT NULL;
CREATE INDEX retained_expiration ON surety.retained (shard, expiration, sequence) WHERE expiration > 0;

-- Large bodies (R16), in chunks of 1 MiB. body_reference says which segments (0: retained, -1: scheduled) hold a message that names the body; a body
-- without any, written under an older epoch, is an orphan.
CREATE TABLE surety.body (
    shard int2,
    body int8 GENERATED BY DEFAULT AS IDENTITY,
    size int8,
    epoch int8 NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, body)
);
CREATE TABLE surety.body_chunk (
    shard int2,
    body int8,
    chunk int4,
    octets bytea NOT NULL,
    PRIMARY KEY (shard, body, chunk)
);
ALTER TABLE surety.body_chunk ALTER octets SET STORAGE external;
CREATE TABLE surety.body_reference (
    shard int2,
    segment int4,
    body int8,
    PRIMARY KEY (shard, segment, body)
);
CREATE INDEX body_reference_body ON surety.body_reference (shard, body);

-- Messages that are not visible yet (R3), deleted by row when they become so: due later, hardened by a prepared transaction, sent by SQL (R17).
-- Of the delayed ones the volatile go at recovery. Their columns are a segment's; instants are the engine's, never compared with this clock.
CREATE TABLE surety.scheduled (
    shard int2 NOT NULL,
    destination int4 NOT NULL,
    schedule int8 NOT NULL,
    due_at int8 NOT NULL,
    expiration int8 NOT NULL,
    size int4 NOT NULL,
    priority int2 NOT NULL,
    reliability int2 NOT NULL,
    encoding int2 NOT NULL,
    volatile boolean NOT NULL,
    routed int4,
    stored_body int8,
    message_id text,
    client_id text,
    annotations text,
    headers bytea NOT NULL,
    body bytea,
    PRIMARY KEY (shard, schedule)
);
ALTER TABLE surety.scheduled ALTER headers SET STORAGE external, ALTER body SET STORAGE external;
CREATE INDEX scheduled_due ON surety.scheduled (shard, due_at, schedule);
CREATE INDEX scheduled_destination ON surety.scheduled (shard, destination) INCLUDE (size);
CREATE INDEX scheduled_volatile ON surety.scheduled (shard) WHERE volatile;
CREATE TABLE surety.prepared (
    shard int2,
    xid bytea,
    item int4,
    kind int2 NOT NULL,
    subscription int4,
    lane int2,
    position int8,
    address text,
    priority int2,
    reliability int2,
    expiration int8,
    encoding int2,
    message_id text,
    client_id text,
    annotations text,
    headers bytea,
    body bytea,
    stored_body int8,
    prepared_at int8 NOT NULL,
    PRIMARY KEY (shard, xid, item)
);
CREATE TABLE surety.inbox (
    shard int2,
    entry int8 GENERATED BY DEFAULT AS IDENTITY,
    address text NOT NULL,
    priority int2 NOT NULL DEFAULT 4 CHECK (priority BETWEEN 0 AND 9),
    reliability int2 NOT NULL DEFAULT 4 CHECK (reliability BETWEEN 0 AND 4),
    expiration int8 NOT NULL DEFAULT 0,
    encoding int2 NOT NULL DEFAULT 0,
    headers bytea NOT NULL DEFAULT '',
    body bytea NOT NULL DEFAULT '',
    sent_by text NOT NULL DEFAULT current_user,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, entry)
);

-- The administrator's door (R22): asked by operators and the scheduler, answered by the node in a commit.
CREATE TABLE surety.control_request (
    shard int2 DEFAULT 0,
    request int8 GENERATED BY DEFAULT AS IDENTITY,
    verb text NOT NULL,
    address text NOT NULL DEFAULT '',
    arguments jsonb NOT NULL DEFAULT '{}',
    requested_by text NOT NULL,
    deadline int8 NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at timestamptz,
    done boolean,
    result jsonb,
    PRIMARY KEY (shard, request)
);
CREATE INDEX control_request_waiting ON surety.control_request (shard, request) WHERE answered_at IS NULL;

CREATE TABLE surety.audit (
    entry int8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    who text NOT NULL,
    origin text NOT NULL DEFAULT '',
    what text NOT NULL,
    address text NOT NULL DEFAULT '',
    arguments jsonb NOT NULL DEFAULT '{}',
    request int8,
    result jsonb
);
CREATE INDEX audit_at ON surety.audit (at);

-- Client accounts: SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), never a password. The reliabilities are what delivery modes stand for; empty: nothing
-- particular.
CREATE TABLE surety.account (
    name text PRIMARY KEY,
    salt bytea NOT NULL,
    iterations int4 NOT NULL CHECK (iterations >= 4096),
    stored_key bytea NOT NULL,
    server_key bytea NOT NULL,
    disabled boolean NOT NULL DEFAULT false,
    loopback_only boolean NOT NULL DEFAULT false,
    persistent_reliability text NOT NULL DEFAULT '',
    nonpersistent_reliability text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What the node tells about itself once a second, for whoever asks by SQL. A row older than a few seconds means: unknown.
CREATE TABLE surety.destination_statistics (
    shard int2,
    destination int4,
    address text NOT NULL,
    depth int8 NOT NULL,
    octets int8 NOT NULL,
    consumers int4 NOT NULL,
    unsettled int8 NOT NULL,
    accepted_total int8 NOT NULL,
    settled_total int8 NOT NULL,
    dead_total int8 NOT NULL,
    expired_total int8 NOT NULL,
    redelivered_total int8 NOT NULL,
    scheduled int8 NOT NULL DEFAULT 0,
    scheduled_octets int8 NOT NULL DEFAULT 0,
    oldest_at int8,
    state int2 NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (shard, destination)
) WITH (fillfactor = 50);
CREATE TABLE surety.node_status (
    shard int2,
    node text,
    epoch int8,
    role text NOT NULL,
    started_at timestamptz NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    listeners jsonb NOT NULL,
    metrics jsonb NOT NULL,
    PRIMARY KEY (shard, node)
) WITH (fillfactor = 50);
