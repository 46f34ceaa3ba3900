"""Every setting of the broker: unit in the name, default, bounds, and the reason below it. Only `from_env()` reads the environment.

Objects receive the values they need, not the whole configuration. `python -m broker_core.config` prints the reference that
docs/configuration.md keeps; a test compares the two.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}


class ConfigError(ValueError):
    """A setting that cannot be used; the message is one sentence that names the variable, what it holds and what it may hold."""


def _number(default: int, low: int, high: int, variable: str = "") -> int:
    """A field of the dataclass: an integer in [low, high], set by `variable` (default: SURETY_ and the field's name)."""
    return field(default=default, metadata={"low": low, "high": high, "variable": variable})


def _text(default: str, variable: str) -> str:
    return field(default=default, metadata={"variable": variable})


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    # -- where ----------------------------------------------------------------------------------------------------------------------
    home: Path = field(default=Path("var"), metadata={"variable": "SURETY_HOME"})
    """Folder of everything this installation keeps: embedded database, logs, pid files, keys."""
    database_url: str = _text("", "DATABASE_URL")
    """libpq URI of the database, on PostgreSQL 16 or later, reached directly and never through a transaction pooler (the lease is a session lock, R11).
    Empty: the supervisor runs an embedded PostgreSQL under the home folder and the broker uses its socket."""
    bind: str = _text("127.0.0.1", "SURETY_BIND")
    """Address that every listener binds. Loopback, until somebody decides that the network may reach it."""
    http_port: int = _number(8000, 1, 65_535)
    """The console, the REST API, health and metrics."""
    stomp_port: int = _number(61_613, 1, 65_535)
    """STOMP without TLS; the port that every STOMP client tries first."""
    stomp_tls_port: int = _number(61_614, 1, 65_535)
    """STOMP with TLS; open only with a certificate."""
    amqp_port: int = _number(5_672, 1, 65_535)
    """AMQP 1.0 without TLS (IANA: amqp)."""
    amqp_tls_port: int = _number(5_671, 1, 65_535)
    """AMQP 1.0 with TLS (IANA: amqps); open only with a certificate."""
    tls_cert: str = _text("", "SURETY_TLS_CERT")
    """PEM file of the certificate chain; with SURETY_TLS_KEY it opens the TLS ports."""
    tls_key: str = _text("", "SURETY_TLS_KEY")
    """PEM file of the certificate's private key."""
    tls_client_ca: str = _text("", "SURETY_TLS_CLIENT_CA")
    """PEM file of the authorities whose certificates clients may show on the TLS port of AMQP. Who shows one may log in with it, by SASL EXTERNAL, as the
    account that its common name says. Empty: certificates of clients are not asked for."""
    tls_warning_days: int = _number(30, 0, 3_650)
    """So many days before the certificate of the TLS ports ends, or one of its chain, health and overview warn of it. 0: only when it has ended."""

    log_json: bool = field(default=False, metadata={"variable": ""})
    """The processes' logs are lines of JSON: time, level, logger, message, and members of their own for what a line is about, `traceparent` among them
    (docs/operations.md). PostgreSQL's and the supervisor's own lines stay as they are."""

    embedded: bool = field(init=False, default=False)
    """True: the database is the one that the supervisor runs under the home folder. Follows from database_url, no setting."""

    # -- connections ----------------------------------------------------------------------------------------------------------------
    connections_max: int = _number(10_000, 1, 1_000_000)
    """Connections of clients at once; one more is refused before it costs memory."""
    login_seconds: int = _number(10, 1, 600)
    """A connection that has not sent its CONNECT frame by then is closed: idle strangers must not fill connections_max. How long the login is checked
    does not count."""
    heartbeat_ms: int = _number(1_000, 100, 3_600_000)
    """Heart-beat offered to and wished from STOMP clients that want one; the larger of both sides' wishes holds. At 1 s 10,000 clients cost
    at most 10,000 small writes a second, and one that is gone is noticed after 2 s."""
    amqp_idle_ms: int = _number(60_000, 1_000, 86_400_000)
    """Silence after which an AMQP connection is given up. Clients are told half of it, as the specification advises."""
    amqp_frame_octets_max: int = _number(128 * KIB, 512, 64 * MIB)
    """One frame that an AMQP client may send: a connection holds one that is not complete, before anything is known of the client."""
    amqp_sessions_max: int = _number(1_024, 1, 65_536)
    """Sessions of one AMQP connection: the channel-max that clients are told, and one."""
    amqp_anonymous_account: str = _text("", "SURETY_AMQP_ANONYMOUS_ACCOUNT")
    """The account that AMQP clients act as which log in by SASL ANONYMOUS, or not at all. Empty: they are refused."""
    header_octets_max: int = _number(64 * KIB, KIB, 16 * MIB)
    """Octets of all header lines of a frame together: parsing holds them in memory before anything is known of the peer. One line has at most
    16 KiB, whatever this says."""
    headers_max: int = _number(1_000, 10, 100_000)
    """Header lines of one frame."""
    send_buffer_octets_max: int = _number(MIB, 64 * KIB, GIB)
    """Octets waiting in one connection's socket buffer; beyond it the engine delivers nothing more to that peer until it reads."""
    unconfirmed_octets_max: int = _number(MIB, KIB, GIB)
    """Octets of unconfirmed sends of one connection; beyond it the socket is not read until some are confirmed (R20)."""
    unconfirmed_sends_max: int = _number(1_000, 1, 1_000_000)
    """Unconfirmed sends of one connection; as above (R20)."""
    link_outstanding_octets_max: int = _number(16 * MIB, 64 * KIB, GIB)
    """Octets delivered on one link and not settled, beside its credit; one message may always leave (R16)."""
    link_unsettled_max: int = _number(65_536, 1, 10_000_000)
    """Deliveries of one link that are not settled. About 100 octets each: 6 MiB for a client that never acknowledges (R20)."""
    connection_unsettled_max: int = _number(262_144, 1, 100_000_000)
    """Deliveries of all links of one connection that are not settled: four greedy links (R20). Counted once a second; a connection that has
    reached it gets nothing more until a quarter is settled."""

    connection_temporaries_max: int = _number(1_000, 1, 1_000_000)
    """Temporary destinations of one connection, each about 5 KiB of memory with its consumer: 5 MiB. Those that nobody consumes any more
    make room for new ones."""

    # -- messages -------------------------------------------------------------------------------------------------------------------
    message_octets_max: int = _number(100 * MIB, KIB, GIB)
    """Octets of the body of one message (R23); what its headers may have is header_octets_max."""
    large_body_octets: int = _number(256 * KIB, KIB, 64 * MIB)
    """Bodies above this are written in chunks before their message enters a batch, so that no group commit waits for them (R16)."""
    body_chunk_octets: int = _number(MIB, 64 * KIB, 64 * MIB)
    """Octets of one chunk of a large body: what one slow peer may hold in memory (R16)."""
    body_memory_octets_max: int = _number(128 * MIB, 8 * MIB, 64 * GIB)
    """Octets of message bodies in the node's memory; beyond it stored bodies are forgotten and read again, volatile ones spill (R19)."""
    auto_create_queues: bool = field(default=True, metadata={"variable": ""})
    """A queue or topic that a client names comes into being. Without it operators create all of them."""
    destinations_max: int = _number(50_000, 10, 10_000_000)
    """Destinations of all kinds together; clients and operators create no more. About 4 KiB of memory each: 200 MiB."""
    subscriptions_max: int = _number(50_000, 10, 10_000_000)
    """Subscriptions of all topics together, durable or not; no client makes more. About 1.6 KiB of memory each, and 1.9 KiB more for each priority
    and delivery mode in use on its topic: 270 MiB with two of them."""
    topic_subscriptions_max: int = _number(20_000, 1, 10_000_000)
    """Subscriptions of one topic. What ends or expires for all of them takes tens of milliseconds."""
    patterns_max: int = _number(1_000, 1, 100_000)
    """Different patterns of topics subscribed to at once. A new topic is compared with each, at about 1 us: 1 ms."""
    account_subscriptions_max: int = _number(10_000, 1, 10_000_000)
    """Durable subscriptions of one account: five accounts may do so before subscriptions_max is reached."""
    account_selector_octets_max: int = _number(MIB, 8 * KIB, GIB)
    """Octets of the selectors' text of one account, of topics' subscriptions and queues' consumers: 40 times as much in memory, 40 MiB, and 30 ms for
    a message that all of them are asked about."""
    subscription_inactive_days_max: int = _number(0, 0, 36_500)
    """A durable subscription that had no consumer for this long is ended, and what it kept is discarded. 0: it is kept for ever."""
    reap_after_seconds: int = _number(120, 1, 31_536_000)
    """An automatically created destination without consumers and messages for this long is removed (Open MQ's imq.autocreate.reaptime)."""

    # -- transactions ---------------------------------------------------------------------------------------------------------------
    transactions_max: int = _number(100, 1, 1_000_000)
    """Transactions that one connection has begun and not ended."""
    transaction_messages_max: int = _number(10_000, 1, 1_000_000)
    """Sends and acknowledgements of one transaction: its commit is one commit of the database, and nobody else's is made meanwhile."""
    transaction_octets_max: int = _number(64 * MIB, KIB, 64 * GIB)
    """Octets of the sends of one transaction. Those of all together take at most body_memory_octets_max."""
    transaction_ms_max: int = _number(300_000, 1_000, 86_400_000)
    """A transaction that lasts longer is rolled back: what it acknowledged is kept from all others meanwhile."""
    prepared_max: int = _number(1_000, 1, 10_000)
    """Branches of distributed transactions that are prepared, or were ended by hand and are not forgotten; they outlive connections and nodes."""
    account_prepared_max: int = _number(250, 1, 10_000)
    """Those of one account: four accounts may do so before prepared_max is reached."""
    prepared_octets_max: int = _number(64 * MIB, KIB, 64 * GIB)
    """Octets in memory, and read at a start, of what prepared branches send and of the headers of what they acknowledge; one account may have half of
    them."""

    # -- redelivery -----------------------------------------------------------------------------------------------------------------
    redelivery_max: int = _number(10, -1, 10_000)
    """Redeliveries of a message whose delivery fails: when it fails once more it is dead. Crash and disconnect are no failures (R9). 0: dead at the
    first failure; -1: never."""
    redelivery_delay_ms: int = _number(1_000, 0, 86_400_000)
    """Wait before the second delivery of a message that failed; the third waits redelivery_multiplier times as long, and so on."""
    redelivery_multiplier: int = _number(2, 1, 100)
    """Growth of that wait."""
    redelivery_delay_max_ms: int = _number(60_000, 0, 86_400_000)
    """The wait grows no further."""
    dead_retention_days: int = _number(14, 1, 36_500)
    """Messages stay on the dead message queue this long; it has no other bound (R23)."""
    dead_truncate_body: bool = field(default=False, metadata={"variable": ""})
    """Of dead messages only headers and properties are kept, not the body. A message's own JMS_SUN_TRUNCATE_MSG_BODY counts more."""
    dead_log: bool = field(default=False, metadata={"variable": ""})
    """The node's log has a line for each dead message, kept or discarded, and for each send that is refused: its identifier, destination, reason and
    trace (`traceparent`), nothing of its contents; at most 20 a second, the others are counted. A message's own JMS_SUN_LOG_DEAD_MESSAGES counts more."""

    # -- memory and disk ------------------------------------------------------------------------------------------------------------
    window_rows_max: int = _number(2_000, 1, 10_000_000)
    """Messages of one lane kept in memory ahead of its consumers; the rest of a deep queue is read in pages when its turn comes."""
    window_octets_max: int = _number(8 * MIB, 64 * KIB, GIB)
    """Octets of that window: 2,000 messages of 4 KiB."""
    page_rows_max: int = _number(1_000, 1, 100_000)
    """Rows of one page: half a window, so that the next is read while this one is delivered."""
    page_octets_max: int = _number(4 * MIB, 64 * KIB, GIB)
    """Octets of one page; at least one row."""
    segment_rows_max: int = _number(250_000, 4, 100_000_000)
    """Rows of one segment. Storage is freed segment by segment: larger ones free late, smaller ones cost DDL (R4, R5)."""
    segment_octets_max: int = _number(128 * MIB, MIB, 64 * GIB)
    """Octets of one segment; storage stays under 2 x live octets + 4 segments, so an idle broker holds at most 512 MiB (R5)."""
    checkpoint_interval_ms: int = _number(1_000, 50, 600_000)
    """Progress is checkpointed at most this often; recovery reads the ledger after the last checkpoint (R1)."""
    ledger_retention_days: int = _number(7, 1, 36_500)
    """Ledger segments older than this are dropped (R26)."""
    ledger_octets_max: int = _number(20_000_000_000, 64 * MIB, 1 << 50)
    """Octets of the ledger; beyond it the oldest segments are dropped early, and a gap row says so (R26)."""
    disk_free_min_octets: int = _number(256 * MIB, 0, 1 << 50)
    """Free octets on the database's disk below which no publish is confirmed and producers wait (R21): twice a segment, so that
    what frees space still has room to work. 0: not watched."""
    database_octets_max: int = _number(0, 0, 1 << 50)
    """Octets of the whole database above which producers wait: for servers whose disk the broker cannot see (R21). The ledger takes
    at most half of it. 0: no cap."""

    undo_seconds: int = _number(3_600, 0, 2_592_000)
    """For so long a purge, or a deletion, can be undone, of destinations that have no undo_ms of their own. Meanwhile the disk keeps what was discarded;
    when it is short of space that goes first (R14, R21). 0: nothing can be undone."""

    # -- audit ----------------------------------------------------------------------------------------------------------------------
    audit_retention_days: int = _number(400, 1, 36_500)
    """Audit entries older than this are deleted, and operators' answered requests with them. A year, and a month to look back at it."""

    # -- data pipeline --------------------------------------------------------------------------------------------------------------
    lake: str = _text("", "SURETY_LAKE")
    """Where the data pipeline keeps its Parquet files: a folder, or a URI of a file system that Hadoop knows and a cluster sees (hdfs:, s3a:). Empty: the
    folder `lake` of the home folder."""
    spark_master: str = _text("local[2]", "SURETY_SPARK_MASTER")
    """Where Spark runs: on so many processors of this machine and on no others, on all of them (local[*]), or on a cluster (spark://host:7077, yarn). Niced:
    the broker comes first."""
    spark_memory_mib: int = _number(2_048, 512, 1_048_576)
    """Memory of Spark's driver, which on one machine does everything, in MiB. Its Python processes take some 200 MiB each beside it."""
    report_minutes_days: int = _number(3, 2, 36_500)
    """What the data pipeline has counted minute by minute is deleted after so many days: of 1,000 busy queues it is 2.9 million rows a day, in the broker's own
    database."""
    report_hours_days: int = _number(60, 8, 36_500)
    """The same of what it has counted hour by hour: 48,000 rows a day."""
    report_days_days: int = _number(1_100, 366, 36_500)
    """The same of what it has counted day by day: 2,000 rows a day."""
    report_audits_days: int = _number(400, 1, 36_500)
    """Audits of the data pipeline are deleted after so many days, with their violations; the last one stays, as the next goes on from it."""

    # -- lease and shutdown ---------------------------------------------------------------------------------------------------------
    lease_heartbeat_ms: int = _number(1_000, 50, 60_000)
    """The holder of the lease writes its heartbeat this often (R11). This and the two below are the same on every node."""
    lease_stale_ms: int = _number(3_000, 150, 180_000)
    """A standby that sees a heartbeat this old ends the holder's session and takes the lease (R11)."""
    outputs_stop_ms: int = _number(2_000, 100, 120_000)
    """A node whose last commit or heartbeat is this old tells its peers nothing more; less than lease_stale_ms, so that
    two nodes never speak at once (R11)."""
    drain_seconds: int = _number(12, 1, 15)
    """A node that is told to stop has this long to finish what it owes; at 15 s it is killed, at 20 s everything has stopped."""

    def __post_init__(self) -> None:
        for setting in settings():
            value = getattr(self, setting.name)
            if "low" in setting.metadata and not setting.metadata["low"] <= value <= setting.metadata["high"]:
                raise ConfigError(
                    f"{variable_of(setting)} is {value}, but must be from {setting.metadata['low']} to {setting.metadata['high']}."
                )
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ConfigError("SURETY_TLS_CERT and SURETY_TLS_KEY belong together: set both or neither.")
        if not self.lease_heartbeat_ms < self.outputs_stop_ms < self.lease_stale_ms:
            raise ConfigError("SURETY_LEASE_HEARTBEAT_MS, SURETY_OUTPUTS_STOP_MS and SURETY_LEASE_STALE_MS must grow in this order.")
        if self.redelivery_delay_ms > self.redelivery_delay_max_ms:
            raise ConfigError("SURETY_REDELIVERY_DELAY_MS must not exceed SURETY_REDELIVERY_DELAY_MAX_MS.")
        if not self.database_url:
            object.__setattr__(self, "embedded", True)
            object.__setattr__(self, "database_url", _socket_url(self.sockets))
        elif not self.database_url.startswith(("postgresql://", "postgres://")):
            raise ConfigError("DATABASE_URL must begin with postgresql:// and name the database to use.")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> BrokerConfig:
        """The configuration that the environment describes. Raises ConfigError."""
        given = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for setting in settings():
            text = given.get(variable_of(setting), "").strip()
            if text:
                values[setting.name] = _parse(setting, text)
        values["home"] = Path(values.get("home", cls.home_default())).expanduser().absolute()
        return cls(**values)

    @staticmethod
    def home_default() -> Path:
        return Path("var")

    @property
    def sockets(self) -> Path:
        """Folder of the embedded server's socket. The supervisor may have put it elsewhere and left a link, because a socket's path
        has at most 107 octets."""
        return (self.home / "postgres" / "socket").resolve()

    @property
    def tls(self) -> bool:
        return bool(self.tls_cert)


def settings() -> list[Field[Any]]:
    """The fields that the environment sets."""
    return [each for each in fields(BrokerConfig) if each.init]


def variable_of(setting: Field[Any]) -> str:
    """The environment variable that sets a field."""
    return setting.metadata["variable"] or f"SURETY_{setting.name.upper()}"


def _socket_url(sockets: Path) -> str:
    return f"postgresql://surety@/surety?host={quote(str(sockets), safe='')}"


def _parse(setting: Field[Any], text: str) -> Any:
    if setting.type == "Path":
        return Path(text)
    if setting.type == "bool":
        if text.lower() in ("true", "1", "yes", "on", "false", "0", "no", "off"):
            return text.lower() in ("true", "1", "yes", "on")
        raise ConfigError(f"{variable_of(setting)} is {text!r}, but must be true or false.")
    if setting.type != "int":
        return text
    match = re.fullmatch(r"(-?[0-9]{1,18}) ?(|KiB|MiB|GiB)", text.replace("_", ""), re.ASCII)
    if match is None:
        raise ConfigError(f"{variable_of(setting)} is {text!r}, but must be a whole number, with KiB, MiB or GiB if you like.")
    return int(match[1]) * _UNITS[match[2]]


def reference() -> str:
    """All settings as a Markdown table: what docs/configuration.md holds."""
    lines = [
        "# Configuration",
        "",
        "Settings are environment variables, read once at start. Sizes are in octets and may carry `KiB`, `MiB` or `GiB`. A value out of",
        "bounds stops the start with a sentence. Written by `python -m broker_core.config`.",
        "",
        "| variable | default | bounds | what and why |",
        "|---|---|---|---|",
    ]
    reasons = _reasons()
    for setting in settings():
        low, high = setting.metadata.get("low"), setting.metadata.get("high")
        bounds = "" if low is None else f"{low:,} to {high:,}"
        lines.append(f"| `{variable_of(setting)}` | {_shown(setting.default)} | {bounds} | {reasons[setting.name]} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Described:
    """A setting as people read it."""

    section: str
    """What it is about, as in `redelivery`."""
    variable: str
    name: str
    default: Any
    low: int | None
    high: int | None
    reason: str


def described() -> list[Described]:
    """All settings, in their order."""
    reasons, sections, section = _reasons(), {}, ""
    for line in inspect.getsource(BrokerConfig).splitlines():
        if found := re.match(r"    # -- ([a-z ]+) -", line):
            section = found[1]
        elif found := re.match(r"    ([a-z_]+): ", line):
            sections[found[1]] = section
    return [
        Described(
            sections[each.name], variable_of(each), each.name, each.default, each.metadata.get("low"), each.metadata.get("high"), reasons[each.name],
        )
        for each in settings()
    ]  # fmt: skip


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:,}" if isinstance(default, int) else f"`{default}`" if str(default) else "(none)"


def _reasons() -> dict[str, str]:
    """The sentences below the fields, from the source: Python keeps no docstrings of attributes."""
    body = ast.parse(inspect.getsource(BrokerConfig)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for above, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(above, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(above.target)] = " ".join(str(below.value.value).split())
    return found


if __name__ == "__main__":
    print(reference(), end="")
