"""One session: its windows, its links by handle, and the numbers of its deliveries (transport 2.5)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .frames import frame
from .performatives import (
    ACCEPTED, RECEIVER, SENDER, Attach, Begin, DeliveryState, Detach, Disposition, Error, Flow, Transfer,
)  # fmt: skip
from .refusals import (
    ERRANT_LINK, FRAME_SIZE, FRAMING_ERROR, HANDLE_IN_USE, NOT_ALLOWED, UNATTACHED_HANDLE, ConnectionFault, LinkFault, SessionFault, fitting,
)  # fmt: skip
from .outcomes import LOOK_EFFORT, Unsettled
from .sender import Outgoing, Sender
from .tokens import Closed

if TYPE_CHECKING:
    from .connection import Connection
    from .coordinator import Transactions
    from .receiver import Receiver

MODULUS = 1 << 32
WINDOW = (1 << 31) - 1
"""Frames that may come: what is held is bounded by credit, and by reading no more."""
HANDLE_MAX = 65_535
LATE_MAX = 8
"""Performatives for one handle that are kept until its former link is answered: an attach, its credit, its detach, and once more."""


class Session:
    """`channel` is the peer's number for it, and ours."""

    def __init__(self, connection: Connection, channel: int, begin: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.links: dict[int, Sender | Receiver | Transactions] = {}
        """By handle: the peer's, and ours."""
        self.names: dict[tuple[str, bool], int] = {}
        """Of links that are attached, with the peer's roles: their handles."""
        self._detached: dict[int, None] = {}
        """Handles of links that we have detached and the peer has not: what comes for them is late."""
        self._leaving: dict[int, list[Attach | Flow | Detach]] = {}
        """Handles of links that the peer has detached, which is not answered yet, and what came for the links that have these handles next: it may use
        them again at once (transport 2.6.2)."""
        self._named_alike: dict[int, int] = {}
        """Of such a handle: that of the next link of the same name, if it is another one."""
        self._handle_max = begin.handle_max
        self._next_incoming_id = begin.next_outgoing_id
        self._next_outgoing_id = 0
        self._remote_window = begin.incoming_window
        self._next_delivery_id = 0
        self.unsettled = Unsettled(self)
        self._waiting: deque[Outgoing] = deque()
        """Deliveries for which the peer's window has no room, in order; the first of them may have left in part."""
        self.waiting_octets = 0
        """Theirs, when they began to wait."""
        self._dropped: dict[Sender, list[Outgoing]] = {}
        """While the session ends: what has waited, by link."""
        self._accepted: list[tuple[int, DeliveryState]] = []
        """What the engine has confirmed, by delivery-id, and the peer is to be told now."""
        self._fed: dict[Receiver, None] = {}
        """Links that have room for more, as something of theirs was confirmed."""
        self._is_over = False
        """Nothing is said on its channel any more: another session may have it."""

    # -- what the connection asks ---------------------------------------------------------------------------------------------------
    @property
    def head(self) -> Outgoing | None:
        """The delivery that is to leave next."""
        return self._waiting[0] if self._waiting else None

    def begin(self) -> None:
        self.write(Begin(self.channel, self._next_outgoing_id, WINDOW, WINDOW, HANDLE_MAX))

    @property
    def unanswered(self) -> int:
        """Links that we have detached and the peer has not."""
        return len(self._detached)

    def write(self, performative: Any) -> None:
        if not self._is_over:
            self.connection.out.append(fitting(self.channel, performative, self.connection.frame_octets_max))

    # -- links ----------------------------------------------------------------------------------------------------------------------
    def attach(self, attach: Attach, events: list[Any]) -> None:
        handle = attach.handle
        if handle > HANDLE_MAX:
            raise ConnectionFault(FRAMING_ERROR, f"handle {handle} is more than the handle-max {HANDLE_MAX}")
        if handle > self._handle_max:
            raise SessionFault(NOT_ALLOWED, f"handle {handle} is more than the handle-max {self._handle_max}")
        if self._is_late(handle, attach):
            return
        if handle in self.links or handle in self._detached:
            raise SessionFault(HANDLE_IN_USE, f"handle {handle} is in use")
        leaving = self.names.get((attach.name, attach.role))
        if leaving is not None and leaving in self._leaving and leaving not in self._named_alike:
            self._named_alike[leaving] = handle
            self._leaving[handle] = [attach]
            return
        try:
            self.connection.links.check_name(attach)
            self.links[handle] = link = self.connection.links.make(self, attach)
        except LinkFault as fault:
            self.refuse_attach(attach, fault.error)
            return
        self.names[attach.name, attach.role] = handle
        link.open(events)

    def refuse_attach(self, attach: Attach, error: Error | None) -> None:
        """An attach without the terminus that was asked for, and a detach that says why (transport 2.6.3). None: the peer has detached the link itself, and is
        answered that later."""
        answer = Attach(attach.name, attach.handle, not attach.role)
        if answer.role == SENDER:
            answer.target, answer.initial_delivery_count = attach.target, 0
        else:
            answer.source = attach.source
        if self.overflow(answer):
            answer.source = answer.target = None
        if too_large := self.overflow(answer):
            self.connection.sessions.end(self, too_large, self.connection.commands)
            return
        self.write(answer)
        if error is not None:
            self.end_link(attach.handle, error)

    def overflow(self, answer: Attach) -> Error | None:
        """Why it cannot be said; None: it can."""
        octets, most = len(frame(self.channel, answer)), self.connection.frame_octets_max
        return Error(FRAME_SIZE, f"the answer to the attach takes {octets} octets, and the peer's frames may have {most}") if octets > most else None

    def detach(self, detach: Detach, events: list[Any]) -> None:
        handle = detach.handle
        if handle in self._detached:
            del self._detached[handle]
            return
        if self._leaving.get(handle) and self._is_late(handle, detach):
            return
        self._link(handle).close(detach.closed, events)
        if handle in self.links:
            self._leaving.setdefault(handle, [])

    def _is_late(self, handle: int, performative: Attach | Flow | Detach) -> bool:
        """It is for the next link of this handle. Raises SessionFault."""
        late = self._leaving.get(handle)
        if late is None:
            return False
        if len(late) >= LATE_MAX:
            raise SessionFault(HANDLE_IN_USE, f"handle {handle} is in use: its link is not detached yet")
        late.append(performative)
        return True

    def answer_detach(self, handle: int, closed: bool, error: Error | None = None) -> None:
        """The peer has detached the link, and so do we."""
        self._free(handle)
        self.write(Detach(handle, closed, error))
        alike = self._named_alike.pop(handle, None)
        for free in (handle,) if alike is None else (handle, alike):
            if late := self._leaving.pop(free, None):
                self.connection.sessions.again(self, late, self.connection.commands)

    def end_link(self, handle: int, error: Error) -> None:
        """Detach it for a reason of our own. What the engine knows of it is the caller's matter. What it has confirmed is told before."""
        self.tell_accepted()
        self._free(handle)
        self._detached[handle] = None
        self.write(Detach(handle, True, error))

    def _free(self, handle: int) -> None:
        link = self.links.pop(handle, None)
        if link is not None:
            self.names.pop((link.name, not link.role), None)

    def leave(self, events: list[Any]) -> None:
        """The connection closes."""
        for link in list(self.links.values()):
            link.leave(events)

    def close(self, events: list[Any]) -> None:
        """The session has ended: its links are gone."""
        self._is_over = True
        self.unsettled.deliveries.clear()
        for outgoing in self._waiting:
            outgoing.is_dropped = True
            self._dropped.setdefault(outgoing.sender, []).append(outgoing)
        self._waiting.clear()
        self.waiting_octets = 0
        for link in list(self.links.values()):
            link.lose(events)
        self.links.clear()
        self._dropped.clear()
        self._accepted.clear()
        self._fed.clear()
        self._leaving.clear()
        self._named_alike.clear()

    def _link(self, handle: int) -> Any:
        link = self.links.get(handle)
        if link is None:
            raise SessionFault(UNATTACHED_HANDLE, f"no link has handle {handle}")
        return link

    # -- from producers -------------------------------------------------------------------------------------------------------------
    def transfer(self, transfer: Transfer, payload: bytes, events: list[Any]) -> None:
        self._next_incoming_id = (self._next_incoming_id + 1) % MODULUS
        link = self.links.get(transfer.handle)
        if link is None or transfer.handle in self._leaving:
            if transfer.handle in self._detached:
                return
            raise SessionFault(UNATTACHED_HANDLE, f"no link has handle {transfer.handle}")
        if link.__class__ is Sender:
            raise SessionFault(ERRANT_LINK, "a transfer came on a link on which this peer receives")
        try:
            link.transfer(transfer, payload, events)  # type: ignore[union-attr]
        except LinkFault as fault:
            link.lose(events)
            unanswered = link.unanswered  # type: ignore[union-attr]
            if unanswered is None:
                self.end_link(transfer.handle, fault.error)
            else:
                self._free(transfer.handle)
                self.refuse_attach(unanswered, fault.error)

    def accept(self, receiver: Receiver, delivery_id: int, state: DeliveryState) -> None:
        """The engine has confirmed it; told with others like it by `tell_accepted`, as is the credit that the producer has again."""
        if not self._fed:
            self.connection.telling.append(self)
        self._fed[receiver] = None
        if delivery_id >= 0:
            self._accepted.append((delivery_id, state))

    def tell_accepted(self) -> None:
        """One disposition for each run."""
        accepted, self._accepted = self._accepted, []
        first = last = -1
        told: DeliveryState = ACCEPTED
        for delivery_id, state in accepted:
            if delivery_id == last + 1 and state is told and first >= 0:
                last = delivery_id
                continue
            if first >= 0:
                self.settle_incoming(first, last, told)
            first, told = delivery_id, state
            last = first
        if first >= 0:
            self.settle_incoming(first, last, told)
        fed, self._fed = self._fed, {}
        for receiver in fed:
            receiver.replenish()

    def settle_incoming(self, first: int, last: int, state: DeliveryState, *, settled: bool = True) -> None:
        """Tell the producer what became of these."""
        self.write(Disposition(RECEIVER, first, None if last == first else last, settled, state))

    def closing(self, handle: int, closed: bool) -> Closed:
        """The token of a command with which a link is over that the peer has detached."""
        return Closed(self, handle, closed)

    def write_flow(self, handle: int | None = None, count: int | None = None, credit: int | None = None, *, drained: bool = False) -> None:
        available = 0 if drained else None
        self.write(Flow(self._next_incoming_id, WINDOW, self._next_outgoing_id, WINDOW, handle, count, credit, available, drained))

    # -- to consumers ---------------------------------------------------------------------------------------------------------------
    def flow(self, flow: Flow, events: list[Any]) -> None:
        next_incoming_id = flow.next_incoming_id if flow.next_incoming_id is not None else 0
        on_their_way = (self._next_outgoing_id - next_incoming_id) % MODULUS
        self._remote_window = max(flow.incoming_window - on_their_way, 0)
        if flow.handle is None:
            if flow.echo:
                self.write_flow()
        else:
            self.flow_of_link(flow.handle, flow, events)
        if self._waiting:
            self.pump()
            self.connection.hand_over(events)

    def flow_of_link(self, handle: int, flow: Flow, events: list[Any]) -> None:
        """What it says of the link alone, perhaps later: what it says of the session held when it came."""
        if handle in self._detached or (self._leaving.get(handle) and self._is_late(handle, flow)):
            return
        link = self._link(handle)
        try:
            link.flow(flow, events)
        except LinkFault as fault:
            link.lose(events)
            self.end_link(handle, fault.error)

    @property
    def room(self) -> int:
        """Frames that may leave at once; 0 while others wait."""
        return 0 if self._waiting else self._remote_window

    def send_whole(self, sender: Sender, tag: int) -> int:
        """One delivery leaves now, in one frame, as there is room: its delivery-id."""
        delivery_id = self._next_delivery_id
        self._next_delivery_id = (delivery_id + 1) % MODULUS
        self._next_outgoing_id = (self._next_outgoing_id + 1) % MODULUS
        self._remote_window -= 1
        if not sender.presettled:
            self.unsettled.deliveries[delivery_id] = (sender, tag)
        return delivery_id

    def send(self, outgoing: Outgoing) -> None:
        """Behind what waits."""
        outgoing.delivery_id = self._next_delivery_id
        self._next_delivery_id = (self._next_delivery_id + 1) % MODULUS
        if not outgoing.settled:
            self.unsettled.deliveries[outgoing.delivery_id] = (outgoing.sender, outgoing.tag)
        self._waiting.append(outgoing)
        self.waiting_octets += outgoing.size
        outgoing.sender.waiting += 1

    def pump(self) -> None:
        """Write what there is room for."""
        waiting, out, most = self._waiting, self.connection.out, self.connection.payload_max
        while waiting and self._remote_window > 0:
            outgoing = waiting[0]
            if outgoing.is_dropped:
                self._write_abort(outgoing)
                self._waits_no_more(outgoing)
                outgoing.sender.tell_drained()
                continue
            for payload, more in outgoing.payloads(most):
                out.append(frame(self.channel, outgoing.transfer(more=more), payload))
                self._next_outgoing_id = (self._next_outgoing_id + 1) % MODULUS
                self._remote_window -= 1
                if self._remote_window <= 0:
                    break
            if not outgoing.is_over:
                break
            self._waits_no_more(outgoing)
            outgoing.sender.has_left(outgoing)

    def _waits_no_more(self, outgoing: Outgoing) -> None:
        self._waiting.popleft()
        self.waiting_octets -= outgoing.size
        outgoing.sender.waiting -= 1

    def forget(self, sender: Sender) -> list[Outgoing]:
        """The link is gone: what waits of it does not leave any more, but a delivery that has begun ends, aborted if the peer's window has
        room to say so, else with its link. What waited."""
        if self._is_over:
            return self._dropped.pop(sender, [])
        self.unsettled.forget(sender)
        if not sender.waiting:
            return []
        self.connection.effort += len(self._waiting) // LOOK_EFFORT
        head = self.head
        if head is not None and head.sender is sender and head.has_begun and self._remote_window > 0:
            self._write_abort(head)
        dropped = [outgoing for outgoing in self._waiting if outgoing.sender is sender]
        self.waiting_octets -= sum([outgoing.size for outgoing in dropped])
        for outgoing in dropped:
            outgoing.is_dropped = True
        self._waiting = deque([outgoing for outgoing in self._waiting if outgoing.sender is not sender])
        sender.waiting = 0
        return dropped

    def abort(self, outgoing: Outgoing) -> None:
        """It began to leave and cannot end."""
        if self.head is outgoing:
            self.unsettled.deliveries.pop(outgoing.delivery_id, None)
            outgoing.is_dropped = True
            self.pump()

    def _write_abort(self, outgoing: Outgoing) -> None:
        self.connection.out.append(frame(self.channel, outgoing.abort()))
        self._next_outgoing_id = (self._next_outgoing_id + 1) % MODULUS
        self._remote_window -= 1

    # -- outcomes -------------------------------------------------------------------------------------------------------------------
    def disposition(self, disposition: Disposition, events: list[Any]) -> None:
        """What a consumer says of deliveries. What a producer says of its own concerns nobody: we remember nothing of what we have accepted."""
        if disposition.role == RECEIVER and (disposition.settled or disposition.state is not None):
            self.unsettled.disposition(disposition, events)

    def settle_outgoing(self, first: int, last: int, state: DeliveryState | None) -> None:
        """The peer wants to hear that its outcome holds."""
        self.write(Disposition(SENDER, first, None if last == first else last, True, state))
