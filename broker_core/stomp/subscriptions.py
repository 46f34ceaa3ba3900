"""The subscriptions of one connection: SUBSCRIBE, UNSUBSCRIBE, ACK and NACK to engine commands.

An acknowledgement of a delivery that was never made is an ERROR. One of a delivery that was made here and is settled already is not:
clients acknowledge twice, and out of order in cumulative mode; it changes nothing, and its receipt, if asked for, is given.
After UNSUBSCRIBE what was outstanding is back in the queue: such an ACK is ignored, but a receipt for it would be a lie and is refused.
"""

from __future__ import annotations

from typing import Any

from broker_core.engine.address import is_temporary, is_topic
from broker_core.engine.commands import Attach, Browse, Detach, EndTemporary, Settle, Sync, Transacted, Unsubscribe
from broker_core.engine.outcome import Outcome

from .limits import COMMENT_CHARACTERS_MAX, Limits
from .link import Holders, Link, Translate, untranslated
from .mapping import flag, quoted
from .sections import Malformed, on_wire
from .subscribe import Acknowledge, is_named, subscribing, subscription_name
from .temporaries import Temporaries
from .tokens import Receipt, Subscribed, Unsubscribed

REQUEUE = "requeue"
"""RabbitMQ's header of NACK; false: dead at once."""
TEMPORARY_DESTINATION = "temporary-destination"
"""Header of UNSUBSCRIBE: the client's temporary destination that is to end."""
COMMENT = "comment"
"""Header of NACK: why, for those who find the message dead."""
LINKS_PER_PEER = 65536
"""The engine's number of a link is peer * 65536 + n: so many links can be told apart on one connection."""
DIGITS_MAX = 18
"""More would not fit the engine's 64-bit numbers."""


class Subscriptions:
    """Keyed three ways: by the client's id, by our number in the ack header, by the engine's link."""

    def __init__(
        self, peer: int, limits: Limits, version: str, instance: str, temporaries: Temporaries, client_id: str = "", translate: Translate = untranslated
    ) -> None:
        self.effort = 0
        """What acknowledgements have taken beyond the ordinary, about, in microseconds."""
        self._peer = peer
        self._client_id = client_id
        self._temporaries = temporaries
        self._limits = limits
        self._version = version
        self._instance = instance
        self._translate = translate
        self._count = 0
        self._by_id: dict[tuple[str, str], Link] = {}
        self._by_number: dict[bytes, Link] = {}
        self._by_link: dict[int, Link] = {}
        self._by_durable_name: dict[str, dict[tuple[str, str], None]] = {}
        self._holders = Holders() if version == "1.0" else None
        self._witnesses: tuple[Link, ...] = ()
        """Of those that are open the ones that know most message-ids as delivered, when they were last looked for."""

    def __len__(self) -> int:
        return len(self._by_id)

    def link(self, link: int) -> Link | None:
        """The subscription with the engine's number `link`, also while it is being closed."""
        return self._by_link.get(link)

    # -- opening and closing ------------------------------------------------------------------------------------------------------------
    def subscribe(self, headers: dict[str, str], token: Receipt | None) -> Attach | Browse:
        wanted = subscribing(headers, self._limits, self._client_id, self._temporaries)
        subscription = headers.get("id")
        if subscription is None and self._version != "1.0":
            raise Malformed("SUBSCRIBE needs header id")
        # 1.0 leaves the id to the client's taste; without one the destination names the subscription.
        key = ("destination", wanted.destination) if subscription is None else ("id", subscription)
        if key in self._by_id:
            raise Malformed(f"a subscription with {key[0]} {quoted(key[1])} is open on this connection")
        if len(self._by_link) >= self._limits.subscriptions_max:
            raise Malformed(f"more than {self._limits.subscriptions_max} subscriptions on one connection")
        number, wire = self._next_number()
        link = Link(
            number, wire, subscription, wanted.destination, wanted.acknowledge, self._version, self._instance,
            browses=wanted.browses, holders=self._holders, translate=self._translate,
        )  # fmt: skip
        link.on_topic = is_topic(wanted.address)
        link.durable_name = wanted.name if wanted.durable else ""
        self._by_id[key] = self._by_number[b"%d" % number] = self._by_link[wire] = link
        if link.durable_name:
            self._by_durable_name.setdefault(link.durable_name, {})[key] = None
        if wanted.browses:
            return Browse(self._peer, wire, wanted.address, token, wanted.wanted, name=wanted.name, client_id=wanted.client_id)
        if token is not None and not link.presettled:
            token = Subscribed(token.receipt, wanted.credit)
        return Attach(
            self._peer, wire, wanted.address, token, wanted.credit, replenish=True, presettled=wanted.acknowledge is Acknowledge.AUTO,
            name=wanted.name, durable=wanted.durable, shared=wanted.shared, wanted=wanted.wanted,
            exclusive=wanted.exclusive, priority=wanted.priority, threshold=wanted.threshold,
        )  # fmt: skip

    def _next_number(self) -> tuple[int, int]:
        while True:
            self._count += 1
            link = self._peer * LINKS_PER_PEER + self._count % LINKS_PER_PEER
            if link not in self._by_link:
                return self._count, link

    def unsubscribe(self, headers: dict[str, str], receipt: bytes | None) -> list[Detach | Unsubscribe | EndTemporary]:
        """With the name of a durable subscription it ends for good, open here or not; with that of a temporary destination that one ends; else only
        a consumer closes."""
        if TEMPORARY_DESTINATION in headers:
            return [self._end_temporary(headers[TEMPORARY_DESTINATION], receipt)]
        link = self._by_id.get(("id", headers.get("id", "")))
        if link is not None and not link.on_topic:
            if is_named(headers):
                raise Malformed(f"id {quoted(headers['id'])} of UNSUBSCRIBE is of a queue, which has no durable subscription to be ended")
            return [self._detach(headers, receipt)]
        name, durable = subscription_name(headers)
        if not durable:
            return [self._detach(headers, receipt)]
        keys = {("id", headers.get("id", "")): None, **self._by_durable_name.get(name, {})}
        commands: list[Detach | Unsubscribe | EndTemporary] = [self._close(key, self._by_id[key], None) for key in keys if key in self._by_id]
        commands.append(Unsubscribe(self._peer, name, None if receipt is None else Receipt(receipt)))
        return commands

    def _end_temporary(self, destination: str, receipt: bytes | None) -> EndTemporary:
        address = self._temporaries.address_of(destination)
        if not is_temporary(address):
            raise Malformed(f"header {TEMPORARY_DESTINATION} is {quoted(destination)}, neither /temp-queue/NAME nor /temp-topic/NAME")
        return EndTemporary(self._peer, address, None if receipt is None else Receipt(receipt))

    def _detach(self, headers: dict[str, str], receipt: bytes | None) -> Detach:
        subscription, destination = headers.get("id"), headers.get("destination")
        if subscription is not None:
            key = ("id", subscription)
        elif destination is not None and self._version == "1.0":
            key = ("destination", destination)
        else:
            raise Malformed("UNSUBSCRIBE needs header id")
        link = self._by_id.get(key)
        if link is None:
            raise Malformed(f"no subscription with {key[0]} {quoted(key[1])} is open on this connection")
        return self._close(key, link, receipt)

    def close_all(self) -> list[Detach]:
        return [self._close(key, link, None) for key, link in list(self._by_id.items())]

    def _close(self, key: tuple[str, str], link: Link, receipt: bytes | None) -> Detach:
        del self._by_id[key]
        del self._by_number[b"%d" % link.number]
        if link.durable_name:
            consumers = self._by_durable_name[link.durable_name]
            del consumers[key]
            if not consumers:
                del self._by_durable_name[link.durable_name]
        link.close()
        return Detach(self._peer, link.link, Unsubscribed(link.link, receipt))

    def forget(self, link: int) -> None:
        """The Detach is confirmed: nothing more will come for it."""
        self._by_link.pop(link, None)

    # -- acknowledgements ---------------------------------------------------------------------------------------------------------------
    def settle_by_id(
        self, ack: bytes, outcome: Outcome, token: Receipt | None, commands: list[Any], alone: bool = False, comment: str = ""
    ) -> None:  # fmt: skip
        """1.2: `ack` is what the MESSAGE's ack header said, `<number>.<tag>`."""
        number, _, digits = ack.partition(b".")
        link = self._by_number.get(number)
        if link is not None and digits.isdigit() and len(digits) <= DIGITS_MAX and 0 < (tag := int(digits)) <= link.delivered:
            self._settle(link, tag, outcome, token, commands, alone, comment)  # without another call: this is the hot path
            return
        self._delivery_of(ack)
        if token is not None:
            raise Malformed(f"id {quoted(ack.decode())} is of a subscription that is closed: the message went back to its queue")

    def _delivery_of(self, ack: bytes) -> tuple[Link | None, int]:
        """Its subscription and tag; None for the subscription if it is closed. Raises Malformed if no delivery was named so."""
        number, _, digits = ack.partition(b".")
        link = self._by_number.get(number)
        if digits.isdigit() and len(digits) <= DIGITS_MAX:
            if link is not None:
                tag = int(digits)
                if 0 < tag <= link.delivered:
                    return link, tag
            elif number.isdigit() and len(number) <= DIGITS_MAX and 0 < int(number) <= self._count:
                return None, 0
        raise Malformed(f"id {quoted(ack.decode('utf-8', 'replace'))} names no delivery of this connection")

    def settle(self, command: str, headers: dict[str, str], token: Receipt | None, commands: list[Any]) -> None:
        """ACK or NACK with the headers of its version. With `ack:client-individual` it is of this delivery alone, whatever the subscription said."""
        outcome = Outcome.ACCEPTED if command == "ACK" else _refused_as(headers)
        alone = headers.get("ack") == Acknowledge.CLIENT_INDIVIDUAL.value
        comment = _comment(headers) if command == "NACK" and COMMENT in headers else ""
        if "transaction" in headers:
            self._settle_within(command, headers, outcome, token, commands, alone, comment)
        elif self._version == "1.2":
            self.settle_by_id(_ack(command, headers), outcome, token, commands, alone, comment)
        else:
            link, tag = self._delivery_by_message(command, headers, alone)
            if link is not None:
                self._settle(link, tag, outcome, token, commands, alone, comment)
            elif token is not None:
                commands.append(Sync(self._peer, token))

    def _delivery_by_message(self, command: str, headers: dict[str, str], alone: bool) -> tuple[Link | None, int]:
        """1.0 and 1.1: its subscription and tag, to be settled now; None if that was done before. Raises Malformed if no delivery was named so."""
        message_id, subscription = headers.get("message-id"), headers.get("subscription")
        if message_id is None:
            raise Malformed(f"{command} needs header message-id")
        if subscription is not None:
            link = self._by_id.get(("id", subscription))
            if link is None:
                raise Malformed(f"no subscription with id {quoted(subscription)} is open on this connection")
        elif self._holders is None:
            raise Malformed(f"{command} needs header subscription")
        else:
            link = self._holders.first(message_id)
        tag = None if link is None else link.take(message_id, alone)
        if link is not None and tag is not None:
            return link, tag
        if not (self._was_delivered(message_id) if link is None else link.was_delivered(message_id)):
            raise Malformed(f"message-id {quoted(message_id)} names no delivery of this connection")
        return None, 0

    def _was_delivered(self, message_id: str) -> bool:
        """To any subscription that is open. Where thousands are, they are not looked through for each acknowledgement that comes twice."""
        if not any(not link.closing and link.was_delivered(message_id) for link in self._witnesses):
            links = self._by_id.values()
            self.effort += len(links) // 4
            self._witnesses = (max(links, key=Link.reach), max(links, key=Link.knows_any)) if links else ()
        return any(link.was_delivered(message_id) for link in self._witnesses)

    def _settle_within(
        self, command: str, headers: dict[str, str], outcome: Outcome, token: Receipt | None, commands: list[Any], alone: bool, comment: str
    ) -> None:
        """To be done when its transaction commits. What is over already names no tag: the engine will not commit what it cannot do."""
        name = on_wire(headers["transaction"], self._version) or b""
        by_message = self._version != "1.2"
        link, tag = self._delivery_by_message(command, headers, alone) if by_message else self._delivery_of(_ack(command, headers))
        if link is None:
            settle = Settle(self._peer, 0, [], 0, outcome)
        elif link.presettled:
            if token is not None:
                commands.append(Sync(self._peer, token))
            return
        else:
            tags, upto = ((), tag) if link.cumulative and not alone else ([tag], 0)
            settle = Settle(self._peer, link.link, tags, upto, outcome, comment=comment)
            link.last_settle = None
        commands.append(Transacted(self._peer, name, settle, token))

    def _settle(
        self, link: Link, tag: int, outcome: Outcome, token: Receipt | None, commands: list[Any], alone: bool = False, comment: str = ""
    ) -> None:  # fmt: skip
        """One Settle for a run of acknowledgements of a link: clients send them in bursts, the engine takes them as one."""
        if alone and link.cumulative:
            link.last_settle = None
            commands.append(Settle(self._peer, link.link, [tag], 0, outcome, token, comment))
            return
        last = link.last_settle
        if last is not None and token is None and commands and commands[-1] is last and last.outcome is outcome and last.comment == comment:
            if not link.cumulative:
                last.tags.append(tag)  # type: ignore[attr-defined]  # the list made below
            elif tag > last.upto:
                last.upto = tag
        elif link.presettled:
            if token is not None:
                commands.append(Sync(self._peer, token))
        else:
            tags, upto = ((), tag) if link.cumulative else ([tag], 0)
            settle = Settle(self._peer, link.link, tags, upto, outcome, token, comment)
            link.last_settle = settle if token is None else None
            commands.append(settle)


def _ack(command: str, headers: dict[str, str]) -> bytes:
    ack = headers.get("id")
    if ack is None:
        raise Malformed(f"{command} needs header id")
    return ack.encode()


def _comment(headers: dict[str, str]) -> str:
    return "".join([each if each.isprintable() else " " for each in headers[COMMENT][:COMMENT_CHARACTERS_MAX]])


def _refused_as(headers: dict[str, str]) -> Outcome:
    """What a NACK means."""
    return Outcome.REJECTED if REQUEUE in headers and not flag(headers, REQUEUE) else Outcome.FAILED
