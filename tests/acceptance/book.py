"""What producers and consumers saw, and whether it keeps the broker's promises. Thread-safe.

A `send` is one SEND frame: the client repeats a message whose confirmation it did not see under a new send id, so that duplicates made by
repeating are told from duplicates made by the broker. Three promises are checked:

    lost         a send was confirmed, yet no delivery of it was ever acknowledged by a consumer
    came back    a send was delivered again after the receipt for its acknowledgement
    unflagged    a send was delivered twice without `redelivered:true` on the second delivery
    corrupted    a body or a message is not what was sent

A consumer may read late what a former node wrote, from its own socket's buffer; that is no second delivery after the acknowledgement.
So every connection carries the number of the faults before it (`generation`), and a delivery counts as come back only on a connection
opened after the last fault before that receipt.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

NEVER = -1


@dataclass(slots=True)
class Send:
    confirmed: bool = False
    deliveries: int = 0
    unflagged: int = 0
    acknowledging: bool = False
    """The last delivery's consumer has sent its ACK."""
    acknowledged: int = NEVER
    """The generation in which the receipt for the ACK was read."""


@dataclass(slots=True)
class Book:
    sends: dict[str, Send] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    """ERROR frames that clients received, by text, and how often."""
    confirmed: int = 0
    delivered: int = 0
    flagged: int = 0
    acknowledged: int = 0
    generation: int = 0
    last_confirmed_at: float = 0.0
    last_delivered_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- producers ------------------------------------------------------------------------------------------------------------------
    def sent(self, send_id: str) -> None:
        """Called before the SEND frame leaves."""
        with self._lock:
            self.sends[send_id] = Send()

    def confirm(self, send_ids: list[str]) -> None:
        with self._lock:
            for send_id in send_ids:
                self.last_confirmed_at = time.monotonic()
                send = self.sends[send_id]
                if send.confirmed:
                    self._violate(f"confirmed twice: {send_id}")
                send.confirmed = True
                self.confirmed += 1

    # -- consumers ------------------------------------------------------------------------------------------------------------------
    def deliver(self, send_id: str, *, redelivered: bool, generation: int, intact: bool) -> None:
        with self._lock:
            self.last_delivered_at = time.monotonic()
            self.delivered += 1
            self.flagged += redelivered
            send = self.sends.get(send_id)
            if send is None:
                self._violate(f"corrupted: nobody sent {send_id!r}")
                return
            if not intact:
                self._violate(f"corrupted: the body of {send_id}")
            send.deliveries += 1
            send.unflagged += not redelivered
            if send.unflagged > 1 and not redelivered:
                self._violate(f"unflagged: delivery {send.deliveries} of {send_id} (generation {generation})")
            if send.acknowledged == NEVER:
                send.acknowledging = False
            elif generation >= send.acknowledged:
                self._violate(f"came back: {send_id}, acknowledged in generation {send.acknowledged}, delivered again in {generation}")

    def acknowledging(self, send_ids: list[str]) -> None:
        """Called before the ACK frame leaves."""
        with self._lock:
            for send_id in send_ids:
                self.sends[send_id].acknowledging = True

    def acknowledge(self, send_ids: list[str]) -> None:
        """The receipt for the ACK is here."""
        with self._lock:
            for send_id in send_ids:
                self.sends[send_id].acknowledged = self.generation
                self.acknowledged += 1

    # -- anyone ---------------------------------------------------------------------------------------------------------------------
    def note_error(self, text: str) -> None:
        with self._lock:
            self.errors[text] = self.errors.get(text, 0) + 1

    def next_generation(self) -> int:
        """A fault has happened."""
        with self._lock:
            self.generation += 1
            return self.generation

    def backlog(self) -> int:
        return self.confirmed - self.acknowledged

    def _violate(self, text: str) -> None:
        self.violations.append(f"{time.strftime('%H:%M:%S')} {text}")

    # -- the end --------------------------------------------------------------------------------------------------------------------
    def missing(self) -> list[str]:
        """Confirmed sends that no consumer has acknowledged yet. At the very end: lost."""
        with self._lock:
            return [send_id for send_id, send in self.sends.items() if send.confirmed and not send.acknowledging]

    def verdict(self) -> list[str]:
        """Every broken promise; empty if all were kept."""
        lost = self.missing()
        return self.violations + [f"lost: {send_id} {self.sends[send_id]}" for send_id in lost]

    def progress(self) -> str:
        return (
            f"sent {len(self.sends):,} confirmed {self.confirmed:,} delivered {self.delivered:,} (flagged {self.flagged:,}) "
            f"acknowledged {self.acknowledged:,} violations {len(self.violations)}"
        )
