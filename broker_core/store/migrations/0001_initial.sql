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
    -- Whom an operator has told the last holder to hand over to, and until when only that node may acquire.
    successor text,
    successor_until timestamptz,
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
-- Names that stand for other destinations. `inherit`: the target has the say.
CREATE TABLE surety.alias (
    shard int2,
    address text,
    target text NOT NULL,
    default_reliability text NOT NULL,
    maximum_reliability text NOT NULL,
    reliability_override boolean NOT NULL,
    PRIMARY KEY (shard, address)
);
-- Settings of destinations that clients create from now on, by pattern: queue/orders.*, topic/**.
CREATE TABLE surety.policy (
    shard int2,
    pattern text,
    settings jsonb NOT NULL,
    PRIMARY KEY (shard, pattern)
);
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

-- Large bodies (R16), in chunks of 1 MiB. body_reference says which segments (0: retained, -1: scheduled, -2: inbox, -3: prepared) hold a message that
-- names the body; a body without any, written under an older epoch, is an orphan.
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
CREATE INDEX scheduled_destination ON surety.scheduled (shard, destination, due_at, schedule) INCLUDE (size);
CREATE INDEX scheduled_volatile ON surety.scheduled (shard) WHERE volatile;
-- Branches of distributed transactions: prepared (state 4), or committed (5) or rolled back (6) by an administrator's hand and not forgotten yet. `octets`
-- are those of the sends. Operators read them here; of what is ended only this row is left.
CREATE TABLE surety.prepared (
    shard int2,
    branch int8,
    xid text NOT NULL,
    account text NOT NULL,
    state int2 NOT NULL,
    sends int4 NOT NULL,
    acknowledgements int4 NOT NULL,
    octets int8 NOT NULL,
    prepared_at int8 NOT NULL,
    ended_at int8,
    PRIMARY KEY (shard, branch)
);
-- What they are about, in order: sends (outcome -1), whose position, sequence and destination are still to come, and what they acknowledged (the others),
-- whose body lies where the message does.
CREATE TABLE surety.prepared_item (
    shard int2,
    branch int8,
    item int4,
    outcome int2 NOT NULL,
    subscription int4 NOT NULL,
    address text NOT NULL,
    delay int8 NOT NULL,
    duplicate_id text NOT NULL,
    sequence int8 NOT NULL,
    position int8 NOT NULL,
    accepted_at int8 NOT NULL,
    destination int4 NOT NULL,
    size int4 NOT NULL,
    expiration int8 NOT NULL,
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
    PRIMARY KEY (shard, branch, item)
);
ALTER TABLE surety.prepared_item ALTER headers SET STORAGE external, ALTER body SET STORAGE external;
-- What sessions of this database sent (see surety.send) and the node has not taken over yet. `size` is that of header section and body together.
CREATE TABLE surety.inbox (
    shard int2 NOT NULL,
    entry int8 GENERATED BY DEFAULT AS IDENTITY,
    sent_at int8 NOT NULL,
    delay int8 NOT NULL,
    expiration int8 NOT NULL,
    size int4 NOT NULL,
    priority int2 NOT NULL CHECK (priority BETWEEN 0 AND 9),
    reliability int2 NOT NULL CHECK (reliability BETWEEN 0 AND 4),
    stored_body int8,
    address text NOT NULL,
    message_id text NOT NULL,
    duplicate_id text NOT NULL,
    sent_by text NOT NULL DEFAULT session_user,
    headers bytea NOT NULL CHECK (headers <> ''),
    body bytea,
    PRIMARY KEY (shard, entry),
    CHECK ((body IS NULL) <> (stored_body IS NULL))
);
ALTER TABLE surety.inbox ALTER headers SET STORAGE external, ALTER body SET STORAGE external;

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

-- Operations on many messages: `operation` is the request that asked for it. The commits that do the steps write the row, with what is done and where it
-- goes on. `total`: NULL if nobody knows; instants are the engine's.
CREATE TABLE surety.operation (
    shard int2,
    operation int8,
    verb text NOT NULL,
    address text NOT NULL,
    arguments jsonb NOT NULL,
    requested_by text NOT NULL,
    state text NOT NULL,
    looked_at int8 NOT NULL,
    done int8 NOT NULL,
    skipped int8 NOT NULL,
    failed int8 NOT NULL,
    total int8,
    place jsonb NOT NULL,
    started_at int8 NOT NULL,
    ended_at int8,
    error text NOT NULL,
    PRIMARY KEY (shard, operation)
) WITH (fillfactor = 30);
CREATE INDEX operation_open ON surety.operation (shard, operation) WHERE ended_at IS NULL;
CREATE INDEX operation_ended ON surety.operation (shard, ended_at) WHERE ended_at IS NOT NULL;

-- Purges, and operations that delete messages: `undo` is the request that asked for them. While ended_at is null what they discarded may come back, and
-- segments that hold it stay. lapses_at 0: the operation goes on. mark: -1: the messages were never offered, else how many times each has failed.
CREATE TABLE surety.undo (
    shard int2,
    undo int8,
    verb text NOT NULL,
    address text NOT NULL,
    destination int4 NOT NULL,
    requested_by text NOT NULL,
    kept_at int8 NOT NULL,
    lapses_at int8 NOT NULL,
    swept int8 NOT NULL,
    messages int8 NOT NULL,
    octets int8 NOT NULL,
    ended_at int8,
    ended_how text,
    PRIMARY KEY (shard, undo)
);
CREATE INDEX undo_open ON surety.undo (shard, undo) WHERE ended_at IS NULL;
CREATE INDEX undo_ended ON surety.undo (shard, ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE surety.undo_range (
    shard int2,
    undo int8,
    number int8,
    subscriptions int4[] NOT NULL,
    lanes int2[] NOT NULL,
    firsts int8[] NOT NULL,
    lasts int8[] NOT NULL,
    marks int4[] NOT NULL,
    PRIMARY KEY (shard, undo, number)
);

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
CREATE INDEX audit_who ON surety.audit (who, entry);
CREATE INDEX audit_what ON surety.audit (what, entry);
CREATE INDEX audit_address ON surety.audit (address, entry) WHERE address <> '';
CREATE INDEX audit_refused ON surety.audit (entry) WHERE result ? 'refused';

-- The audit is only ever added to, whoever is asked to do otherwise; what is too old to be kept goes by this function and in no other way, and nothing of
-- the last day does.
CREATE FUNCTION surety.forget_audit(days int4, most int4) RETURNS int4 LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE forgotten int4;
BEGIN
    PERFORM set_config('surety.forgetting', pg_current_xact_id()::text, true);
    DELETE FROM surety.audit WHERE entry = ANY (ARRAY(
        SELECT entry FROM surety.audit WHERE at < now() - make_interval(days => greatest(days, 1)) LIMIT most));
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    PERFORM set_config('surety.forgetting', '', true);
    RETURN forgotten;
END $$;

CREATE FUNCTION surety.keep_audit() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('surety.forgetting', true) = pg_current_xact_id()::text AND OLD.at < now() - interval '1 day' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit is only added to: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_row BEFORE UPDATE OR DELETE ON surety.audit FOR EACH ROW EXECUTE FUNCTION surety.keep_audit();
CREATE TRIGGER audit_whole BEFORE TRUNCATE ON surety.audit FOR EACH STATEMENT EXECUTE FUNCTION surety.keep_audit();

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
    -- The former password, salted like the other, good until then.
    previous_stored_key bytea,
    previous_server_key bytea,
    previous_until timestamptz,
    connections_max int4 NOT NULL DEFAULT 0 CHECK (connections_max >= 0),
    sessions_max int4 NOT NULL DEFAULT 0 CHECK (sessions_max >= 0),
    groups text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX account_groups ON surety.account (name) WHERE groups <> '{}';

-- Which accounts may do what with which destinations: see engine/access.py. What no rule allows is refused; at first everybody may everything.
CREATE TABLE surety.access_rule (
    rule int8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    resource text NOT NULL,
    operation text NOT NULL CHECK (operation IN ('produce', 'consume', 'browse', 'create')),
    allow boolean NOT NULL,
    principal text NOT NULL,
    of_group boolean NOT NULL DEFAULT false,
    UNIQUE (resource, operation, allow, principal, of_group)
);
INSERT INTO surety.access_rule (resource, operation, allow, principal)
VALUES ('>', 'produce', true, '*'), ('>', 'consume', true, '*'), ('>', 'browse', true, '*'), ('>', 'create', true, '*');

-- Administered objects: connection factories and destinations that clients look up by name. `attributes`: see broker_core.administered.
CREATE TABLE surety.administered (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('factory', 'queue', 'topic')),
    attributes jsonb NOT NULL DEFAULT '{}',
    read_only boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Links to other brokers. `attributes`: see broker_core.foreign.definition. The passcode is for another broker, which wants it as it is, so it cannot be
-- a verifier; it is in a column of its own, which nothing lists.
CREATE TABLE surety.foreign_link (
    name text PRIMARY KEY,
    attributes jsonb NOT NULL,
    passcode text NOT NULL DEFAULT '',
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
    waiting int8,
    oldest_unsettled_at int8,
    -- Since recovery, by the bounds of broker_core/engine/observing.py; empty: nothing yet.
    waited int8[],
    died int8[],
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
    about jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (shard, node)
) WITH (fillfactor = 50);
-- Listeners that operators keep closed, whichever node serves.
CREATE TABLE surety.paused_listener (
    shard int2,
    listener text,
    PRIMARY KEY (shard, listener)
);

-- Sending from SQL (R17): `SELECT surety.send('/queue/orders', 'text')` in any session is part of its transaction. Everything is checked that can be,
-- a row is written to `inbox`, and nobody is notified: that would make the caller's commits wait for each other. The node finds it within 50 ms.
-- Whoever may use the schema and execute its functions may send; he needs no right to any table. The names below follow STOMP's, as the mapping does.
CREATE FUNCTION surety.header_line(name text, value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN replace(replace(replace(replace(name, '\', '\\'), chr(13), '\r'), chr(10), '\n'), ':', '\c') || ':'
    || replace(replace(replace(replace(value, '\', '\\'), chr(13), '\r'), chr(10), '\n'), ':', '\c') || chr(10);

-- The body in octets. `time_to_live` and `delay` count from the call. Returns the message's identifier.
CREATE FUNCTION surety.send(
    address text, body bytea DEFAULT '', headers jsonb DEFAULT '{}', priority int DEFAULT 4, reliability text DEFAULT 'assured',
    time_to_live interval DEFAULT NULL, delay interval DEFAULT NULL, correlation_id text DEFAULT NULL, reply_to text DEFAULT NULL,
    type text DEFAULT NULL, group_id text DEFAULT NULL, group_sequence int DEFAULT NULL, duplicate_id text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $send$
#variable_conflict use_variable
DECLARE
    whole CONSTANT text := CASE WHEN address LIKE '/%' THEN substr(address, 2) ELSE 'queue/' || address END;
    level CONSTANT int := array_position(ARRAY['best-effort', 'express', 'reliable-np', 'reliable', 'assured'], coalesce(reliability, 'assured')) - 1;
    urgency CONSTANT int := coalesce(priority, 4);
    given CONSTANT jsonb := coalesce(headers, '{}');
    octets CONSTANT int := coalesce(octet_length(body), 0);
    now_ms CONSTANT int8 := (extract(epoch FROM clock_timestamp()) * 1000)::int8;
    wait_ms int8 := 0;
    expires int8 := 0;
    lines text;
    section bytea;
    number int8;
    large int8;
    identifier text;
BEGIN
    -- The destination: what its name may be is said in engine/address.py.
    IF whole IS NULL OR whole !~ '^(queue|topic|temp-queue|temp-topic)/[^\u0001-\u0020\u007f/*>][^\u0001-\u001f\u007f*>]*$'
        OR octet_length(substr(whole, strpos(whole, '/') + 1)) > 255 THEN
        RAISE EXCEPTION 'address % is not valid: write /queue/NAME or /topic/NAME, without wildcards, NAME of at most 255 octets', quote_nullable(left(address, 80))
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF substr(whole, strpos(whole, '/') + 1) LIKE 'mq.%' THEN
        RAISE EXCEPTION 'address % belongs to the broker: it cannot be sent to', quote_literal(left(address, 80)) USING ERRCODE = 'invalid_parameter_value';
    ELSIF urgency NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority is %, not 0 to 9', urgency USING ERRCODE = 'invalid_parameter_value';
    ELSIF level IS NULL THEN
        RAISE EXCEPTION 'reliability is %, none of best-effort, express, reliable-np, reliable, assured', quote_literal(left(reliability, 80))
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF octets > 104857600 THEN
        RAISE EXCEPTION 'the body of % octets is larger than the 104857600 allowed', octets USING ERRCODE = 'program_limit_exceeded';
    ELSIF time_to_live <= interval '0' OR time_to_live > interval '1000 years' THEN
        RAISE EXCEPTION 'time_to_live is %, not more than nothing and at most 1000 years (NULL: the message never expires)', time_to_live
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF delay < interval '0' OR delay > interval '3650 days' THEN
        RAISE EXCEPTION 'delay is %, not up to ten years of 365 days', delay USING ERRCODE = 'invalid_parameter_value';
    ELSIF duplicate_id IS NOT NULL AND octet_length(duplicate_id) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'duplicate_id must have 1 to 255 octets, it has %', octet_length(duplicate_id) USING ERRCODE = 'invalid_parameter_value';
    ELSIF group_id IS NOT NULL AND length(group_id) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'group_id must have 1 to 255 characters, it has %', length(group_id) USING ERRCODE = 'invalid_parameter_value';
    ELSIF group_sequence IS NOT NULL AND group_id IS NULL THEN
        RAISE EXCEPTION 'group_sequence is given and group_id is not' USING ERRCODE = 'invalid_parameter_value';
    ELSIF jsonb_typeof(given) <> 'object' THEN
        RAISE EXCEPTION 'headers is a JSON %, not an object', jsonb_typeof(given) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF delay IS NOT NULL THEN
        wait_ms := (extract(epoch FROM delay) * 1000)::int8;
    END IF;
    IF time_to_live IS NOT NULL THEN
        expires := now_ms + greatest((extract(epoch FROM time_to_live) * 1000)::int8, 1);
    END IF;

    -- The header section, in the form in which STOMP's are kept.
    IF given <> '{}' THEN
        SELECT format('header %s ', quote_literal(left(key, 80))) || CASE
            WHEN key = '' THEN 'has no name'
            WHEN jsonb_typeof(value) NOT IN ('string', 'number', 'boolean') THEN format('is a JSON %s: only strings, numbers and booleans can be sent', jsonb_typeof(value))
            ELSE 'is the broker''s to state, or is said by an argument of its own'
        END INTO lines
        FROM jsonb_each(given)
        WHERE key = '' OR jsonb_typeof(value) NOT IN ('string', 'number', 'boolean') OR key = ANY(ARRAY[
            'destination', 'priority', 'reliability', 'persistent', 'expires', 'correlation-id', 'reply-to', 'type', 'JMSXGroupID', 'JMSXGroupSeq',
            'duplicate-id', '_AMQ_DUPL_ID', 'delay', 'AMQ_SCHEDULED_DELAY', 'AMQ_SCHEDULED_CRON', 'AMQ_SCHEDULED_PERIOD', 'AMQ_SCHEDULED_REPEAT',
            '_AMQ_SCHED_DELIVERY', 'x-delay', 'expiration', 'receipt', 'transaction', 'content-length', 'message-id', 'subscription', 'ack',
            'redelivered', 'timestamp', 'receipt-id', 'browser', 'JMS_SUN_DMQ_UNDELIVERED_REASON', 'JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP',
            'JMS_SUN_DMQ_UNDELIVERED_COMMENT', 'JMS_SUN_DMQ_UNDELIVERED_EXCEPTION', 'JMS_SUN_DMQ_DELIVERY_COUNT', 'JMS_SUN_DMQ_BODY_TRUNCATED',
            'JMS_SUN_DMQ_PRODUCING_BROKER', 'JMS_SUN_DMQ_DEAD_BROKER', 'original-destination', 'original-timestamp', 'original-expiration'])
        ORDER BY key LIMIT 1;
        IF lines IS NOT NULL THEN
            RAISE EXCEPTION '%', lines USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    lines := surety.header_line('destination', '/' || whole)
        || CASE WHEN level >= 3 THEN surety.header_line('persistent', 'true') ELSE '' END
        || CASE WHEN level IN (0, 2, 3) THEN surety.header_line('reliability', reliability) ELSE '' END
        || CASE WHEN urgency <> 4 THEN surety.header_line('priority', urgency::text) ELSE '' END
        || CASE WHEN expires <> 0 THEN surety.header_line('expires', expires::text) ELSE '' END
        || coalesce(surety.header_line('correlation-id', correlation_id), '')
        || coalesce(surety.header_line('reply-to', reply_to), '')
        || coalesce(surety.header_line('type', type), '')
        || coalesce(surety.header_line('JMSXGroupID', group_id), '')
        || coalesce(surety.header_line('JMSXGroupSeq', group_sequence::text), '')
        || coalesce(surety.header_line('duplicate-id', duplicate_id), '');
    IF given <> '{}' THEN
        lines := lines || (SELECT string_agg(surety.header_line(key, value #>> '{}'), '') FROM jsonb_each(given));
    END IF;
    section := convert_to(rtrim(lines, chr(10)), 'UTF8');
    IF octet_length(section) > 61440 OR octet_length(lines) - octet_length(replace(lines, chr(10), '')) > 240
        OR (octet_length(section) > 16384 AND (SELECT max(octet_length(line)) FROM string_to_table(lines, chr(10)) AS line) > 16384) THEN
        RAISE EXCEPTION 'the headers are too long: there may be 240 of at most 16384 octets each, together 61440; put the rest into the body'
            USING ERRCODE = 'program_limit_exceeded';
    END IF;

    number := nextval('surety.inbox_entry_seq');
    SELECT format('ID:%s-sql-%s', instance, number) INTO identifier FROM surety.installation;
    -- A large body (R16) goes where the node would put it, with a reference from the inbox: it is there with the row, or not at all.
    IF octets > 262144 THEN
        INSERT INTO surety.body (shard, size, epoch) SELECT 0, octets, epoch FROM surety.lease WHERE shard = 0 RETURNING surety.body.body INTO large;
        INSERT INTO surety.body_chunk (shard, body, chunk, octets)
            SELECT 0, large, n, substr(body, n * 1048576 + 1, 1048576) FROM generate_series(0, (octets - 1) / 1048576) AS n;
        INSERT INTO surety.body_reference (shard, segment, body) VALUES (0, -2, large);
    END IF;
    INSERT INTO surety.inbox
        (shard, entry, sent_at, delay, expiration, size, priority, reliability, stored_body, address, message_id, duplicate_id, headers, body)
    VALUES (
        0, number, now_ms, wait_ms, expires, octet_length(section) + octets, urgency, level, large, whole, identifier, coalesce(duplicate_id, ''), section,
        CASE WHEN large IS NULL THEN coalesce(body, '') END
    );
    RETURN identifier;
END $send$;

-- The same for a text, which is sent in UTF-8 and says so.
CREATE FUNCTION surety.send(
    address text, body text, headers jsonb DEFAULT '{}', priority int DEFAULT 4, reliability text DEFAULT 'assured',
    time_to_live interval DEFAULT NULL, delay interval DEFAULT NULL, correlation_id text DEFAULT NULL, reply_to text DEFAULT NULL,
    type text DEFAULT NULL, group_id text DEFAULT NULL, group_sequence int DEFAULT NULL, duplicate_id text DEFAULT NULL
) RETURNS text
LANGUAGE sql VOLATILE
RETURN surety.send(
    address, convert_to(coalesce(body, ''), 'UTF8'),
    CASE WHEN headers IS NULL THEN '{"content-type": "text/plain;charset=utf-8"}'::jsonb
         WHEN jsonb_typeof(headers) = 'object' THEN '{"content-type": "text/plain;charset=utf-8"}'::jsonb || headers ELSE headers END,
    priority, reliability, time_to_live, delay, correlation_id, reply_to, type, group_id, group_sequence, duplicate_id
);
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA surety FROM PUBLIC;
