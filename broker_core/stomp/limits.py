"""What a peer may ask this machine to hold, each bound with its reason (STOMP 1.2, "Size Limits"). Octets and milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

COMMENT_CHARACTERS_MAX = 500
"""Of a NACK's comment; no more is kept."""


@dataclass(slots=True, frozen=True)
class Limits:
    """Bounds and intervals of one connection. A connection holds at most `header_octets_max` + `large_body_octets` + one chunk as received,
    `early_octets_max` while its login is being checked, and `sections_max` x 2.5 KiB of header sections that it has met before."""

    header_octets_max: int = 65536
    """Command and header lines of one frame. Real messages carry below 2 KiB; 64 KiB leaves room for tokens and trace baggage."""
    headers_max: int = 256
    """Header lines of one frame: a frame of 64 KiB in lines of one letter must not become 30,000 strings."""
    line_octets_max: int = 16384
    """One header line. The largest header that common clients let pass is 8 or 16 KiB."""
    body_octets_max: int = 100 * 1024 * 1024
    """One body (R23)."""
    large_body_octets: int = 256 * 1024
    """Bodies above this go out in parts and are not held here (R16)."""
    part_octets_max: int = 1024 * 1024
    """One part of a large body: the size of a chunk in the store (R16)."""
    early_octets_max: int = 1024 * 1024
    """What may arrive between CONNECT and the verdict on it: four reads of 256 KiB, as reading stops at once."""
    sections_max: int = 512
    """Header sections remembered: producers repeat a few; a producer whose sections never repeat only costs their parsing."""
    section_octets_max: int = 1024
    """Longer sections are parsed anew each time, so that the memory of sections is bounded by about 1.2 MiB."""
    subscriptions_max: int = 16_384
    """Open at the same time: one client may consume ten thousand queues. Each costs about 1 KiB; link numbers would allow 65,535."""
    prefetch_default: int = 1000
    """Deliveries outstanding without a word from the client; ActiveMQ's default for queues."""
    prefetch_max: int = 65535
    """No client has use for more; the engine bounds octets besides (R16)."""
    outstanding_octets_max: int = 16 << 20
    """That bound, which is said in the receipt of SUBSCRIBE."""
    unconfirmed_max: int = 1000
    """Sends whose receipt is outstanding before reading pauses (R20)."""
    unconfirmed_octets_max: int = 1024 * 1024
    """Their octets (R20)."""
    subscriber_unconfirmed_factor: int = 16
    """A connection with subscriptions cannot be paused, its ACKs would stay unread: it may go so many times further, then ERROR (R20)."""
    client_id_max: int = 255
    """Characters of a client identifier: every message of its sender's is stored with it."""
    connect_ms_max: int = 30_000
    """From the opened socket to CONNECT."""
    heart_beat_ms_min: int = 1000
    """The shortest interval between heart-beats that we agree to: 10,000 connections then cost at most 10,000 small writes a second."""
