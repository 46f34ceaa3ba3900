"""What a peer may ask this machine to hold, each bound with its reason. Octets and milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Limits:
    """Bounds and intervals of one connection. It holds at most a frame under way, `early_octets_max` while its login is being checked, the sends that are
    not confirmed, what has come of messages in part, and one part of each large message under way."""

    frame_octets_max: int = 128 * 1024
    """One frame, as the peer is told: what a stranger may have us hold before anything is known of him."""
    channels_max: int = 1024
    """Sessions of one connection. A JMS connection has one for each of its sessions, and one more."""
    links_max: int = 16_384
    """Links of one connection, of all its sessions: each costs about 2 KiB."""
    section_octets_max: int = 65_536
    """What comes before a message's body: annotations, properties, application properties."""
    body_octets_max: int = 100 * 1024 * 1024
    """One body (R23)."""
    large_body_octets: int = 256 * 1024
    """Bodies above this come and go in parts and are not held here (R16)."""
    part_octets_max: int = 1024 * 1024
    """One part of a large body: the size of a chunk in the store (R16)."""
    large_bodies_max: int = 16
    """Large messages under way at once on one connection: each has up to three parts in memory."""
    begun_octets_max: int = 32 * 1024 * 1024
    """Of all messages that have come in part, large ones with what is not on its way to the store: those alone have up to 16 MiB. Honest clients send one after
    the other."""
    early_octets_max: int = 1024 * 1024
    """What may arrive while a login is being checked: four reads of 256 KiB, as reading stops at once."""
    credit: int = 1000
    """Messages that a producer may have on their way: more is given as they are confirmed."""
    credit_octets: int = 4 * 1024 * 1024
    """Their octets, as far as the size of its messages is known: whoever sends large ones has less credit, at least that for a few."""
    unconfirmed_max: int = 1000
    """Sends that are not confirmed before reading pauses (R20); with links of consumers on the connection, whose outcomes must be read, see below."""
    unconfirmed_octets_max: int = 1024 * 1024
    """Their octets (R20)."""
    subscriber_unconfirmed_factor: int = 16
    """A connection with consumers is read on: it may go so many times further, and is refused what comes then (R20)."""
    waiting_octets_max: int = 1024 * 1024
    """Deliveries that wait for the peer's session to have room: beyond, the engine delivers nothing more."""
    container_id_max: int = 255
    """Characters of a container's identifier: every message of its sender's is stored with it."""
    name_max: int = 1024
    """Characters of a link's name, and of an address."""
    login_ms_max: int = 30_000
    """From the opened socket to Open, less the time in which the login is checked."""
    idle_ms: int = 60_000
    """Silence after which a peer is given up; half of it is what it is told (transport 2.4.5)."""
