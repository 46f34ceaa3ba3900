"""Local transactions: sends and acknowledgements of one peer, done together or not at all, whatever their destinations and levels
(JMS 6.2.7, checklist items 60 to 62 and 122).

Until the commit a transaction's sends are nowhere (R3), and what it acknowledged is reserved: settled for nobody, delivered to nobody. The commit
places and settles everything within one batch, so one transaction of the database makes it durable. Nothing of it survives a crash before.
"""

from __future__ import annotations

from collections.abc import Iterable

from .aliases import redirect
from .accounting import discard_body
from .address import is_temporary
from .branch import Branch
from .commands import SEND_OCTETS, Begin, End, EndBranch, Request, Send, Settle, Transacted, Verb
from .commit_capacity import Room, may_limit_new
from .outcome import Outcome
from .outputs import Confirmed, Refused
from .link import Peer, Transaction
from .message import Message
from .noting import note_refused
from .placing import obtain
from .refusal import Refusal
from .sending import accept, drop, particulars, reset, why_not, why_not_send
from .settlement import acknowledge, answer, feed, give_back, give_up, unreserve
from .settlement import settle as settle_deliveries
from .shard import Shard
from .subscription import Subscription
from .temporary import ensure


PLACING = frozenset((Verb.PREPARE, Verb.COMMIT, Verb.COMMIT_ONE))


def begin(shard: Shard, command: Begin) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    if command.transaction in peer.transactions:
        _refuse(shard, command, Refusal.TRANSACTION_EXISTS)
    elif len(peer.transactions) >= shard.limits.transactions_max:
        _refuse(shard, command, Refusal.TRANSACTION_TOO_LARGE, f"more than {shard.limits.transactions_max} at a time on one connection")
    else:
        peer.transactions[command.transaction] = Transaction(shard.now + shard.limits.transaction_ms_max)
        _confirm(shard, command)


def transacted(shard: Shard, command: Transacted) -> None:
    """A send or a settlement that waits for its transaction's end."""
    peer = shard.peers.get(command.peer)
    transaction = peer.transactions.get(command.transaction) if peer else None
    work = command.work
    if transaction is None or transaction.ends_at <= shard.now:
        if isinstance(work, Send):
            discard_body(shard, work.message)
        else:
            _release(shard, work)
        _refuse(shard, command, Refusal.NO_SUCH_TRANSACTION if transaction is None else Refusal.TRANSACTION_TIMED_OUT)
    elif isinstance(work, Send):
        _send(shard, transaction, command, work)
    else:
        _settle(shard, transaction, command, work)


def _send(shard: Shard, transaction: Transaction, command: Transacted, send: Send) -> None:
    if isinstance(send, Request):
        refusal = ensure(shard, send.peer, send.reply_to)
        if refusal is not None:
            discard_body(shard, send.message)
            note_refused(shard, send, refusal, send.reply_to)
            _refuse_part(shard, transaction, command, refusal, send.reply_to)
            return
    refusal, detail = why_not_send(shard, send)
    if refusal is Refusal.TEMPORARY_DESTINATION_GONE:
        drop(shard, send, refusal)  # whoever waited for it is gone: no reason to undo what the rest of the transaction does
        _confirm(shard, command)
        return
    limits, size, held = shard.limits, send.message.size + SEND_OCTETS, send.message.weight + SEND_OCTETS
    if transaction.octets + size > limits.transaction_octets_max or shard.transacted + held > limits.memory_octets or not _has_room(shard, transaction, 1):
        refusal = refusal or Refusal.TRANSACTION_TOO_LARGE
    if refusal is not None:
        note_refused(shard, send, refusal, detail)
        discard_body(shard, send.message)
        _refuse_part(shard, transaction, command, refusal, detail or send.address)
        return
    send.message.accepted_at = shard.now  # a delay counts from the send, not from the commit (JMS 2.0, 7.9)
    transaction.sends.append(send)
    transaction.octets += size
    transaction.transacted += held
    shard.transacted += held
    _confirm(shard, command)


def _settle(shard: Shard, transaction: Transaction, command: Transacted, settle: Settle) -> None:
    link = shard.links.get(settle.link)
    if link is None or link.peer.number != settle.peer:  # what it held went back with it
        _not_outstanding(shard, transaction, command)
        return
    tags = link.tags_upto(settle.upto) if settle.upto else settle.tags
    if not _has_room(shard, transaction, len(tags)):
        _release(shard, settle)
        _refuse_part(shard, transaction, command, Refusal.TRANSACTION_TOO_LARGE)
        return
    messages = [link.unsettled.pop(tag) for tag in tags if tag in link.unsettled]
    for message in messages:
        cursor = link.subscription.cursor_of(message)
        assert cursor is not None
        cursor.reserved[message.position] = message
        link.octets -= message.size
    if messages:
        transaction.settles.append((link.subscription, settle.outcome, messages))
        transaction.settled += len(messages)
    link.regain(len(messages))
    feed(shard, link)
    if len(messages) < len(tags) or not messages:
        _not_outstanding(shard, transaction, command)
    else:
        _confirm(shard, command)


def _release(shard: Shard, settle: Settle) -> None:
    """What it names goes back. Its client may have said ABORT behind it and believes that: a cumulative acknowledgement must not take it along."""
    link = shard.links.get(settle.link)
    if link is not None and link.peer.number == settle.peer:
        settle_deliveries(shard, Settle(settle.peer, settle.link, settle.tags, settle.upto, Outcome.RELEASED))


def _not_outstanding(shard: Shard, transaction: Transaction, command: Transacted) -> None:
    """By itself nobody minds; but the commit would confirm what was not done."""
    transaction.refusal = Refusal.NOT_OUTSTANDING
    _refuse(shard, command, Refusal.NO_SUCH_DELIVERY)


def _has_room(shard: Shard, transaction: Transaction, messages: int) -> bool:
    return len(transaction.sends) + transaction.settled + messages <= shard.limits.transaction_messages_max


def end(shard: Shard, command: End) -> None:
    """A commit does all of it, or nothing: what cannot be done now rolls the transaction back. After an abort the sends never were; what was
    acknowledged comes back, flagged, and that counts as a failure (R9)."""
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    transaction = peer.transactions.pop(command.transaction, None)
    if transaction is None:
        _refuse(shard, command, Refusal.NO_SUCH_TRANSACTION)
        return
    if transaction.__class__ is Branch:
        peer.transactions[command.transaction] = transaction
        _refuse(shard, command, Refusal.XAER_PROTO, "a branch is ended by its xid")
        return
    if not command.commit:
        roll_back(shard, transaction, Outcome.FAILED, peer)
        if command.token is not None:
            answer(shard, peer, Confirmed(command.peer, command.token))
        return
    room = Room(waits=command.token is not None)
    refusal, detail = why_not_commit(shard, peer, transaction, room)
    if refusal is not None:
        roll_back(shard, transaction, Outcome.FAILED, peer)
        answer(shard, peer, Refused(command.peer, command.token, refusal, detail))
        return
    commit(shard, transaction, room)
    if not room.withholds(shard, peer, Confirmed(command.peer, command.token)):
        _confirm(shard, command)


def places(shard: Shard, command: End | EndBranch) -> bool:
    """Whether this is a commit that places messages, or hardens some: it takes space in the store."""
    peer = shard.peers.get(command.peer)
    if isinstance(command, EndBranch):
        branch = shard.branches.known.get((peer.account, command.xid)) if peer and command.verb in PLACING else None
        return branch is not None and bool(branch.sends)
    transaction = peer.transactions.get(command.transaction) if peer and command.commit else None
    return transaction is not None and bool(transaction.sends)


def why_not_commit(shard: Shard, peer: Peer, transaction: Transaction, room: Room) -> tuple[Refusal | None, str]:
    """And the particulars. None: all of it can be done now."""
    if transaction.ends_at <= shard.now:
        return Refusal.TRANSACTION_TIMED_OUT, ""
    if transaction.refusal is not None:
        return transaction.refusal, ""
    if shard.aliases:  # made since; those that were there when a message came have been followed then
        for send in transaction.sends:
            if send.address in shard.aliases:
                refusal, detail = redirect(shard, send)
                if refusal is not None:
                    return refusal, detail
    new = 0
    leveled = limited = False
    for address, send in {send.address: send for send in transaction.sends}.items():
        destination, refusal = shard.destinations.get(address), why_not(shard, send)
        if refusal is None:
            new += destination is None
            limited = limited or (destination.capacity is not None if destination is not None else may_limit_new(shard))
        elif refusal is not Refusal.TEMPORARY_DESTINATION_GONE:
            return refusal, particulars(shard, send, refusal)
        leveled = leveled or (destination is not None and destination.levels is not None)
    if len(shard.destinations) + new > shard.limits.destinations_max:
        return Refusal.TOO_MANY_DESTINATIONS, f"the transaction sends to {new} new ones"
    if leveled:  # each message counts there, not only the last one
        for send in transaction.sends:
            if why_not(shard, send) is Refusal.RELIABILITY_EXCEEDED:
                return Refusal.RELIABILITY_EXCEEDED, particulars(shard, send, Refusal.RELIABILITY_EXCEEDED)
    return room.why_not(shard, peer, transaction) if limited else (None, "")


def commit(shard: Shard, transaction: Transaction, room: Room) -> None:
    """Only if nothing is against it."""
    shard.transacted -= transaction.transacted
    room.begins(shard)
    settle_reserved(shard, transaction)
    shard.effort += 2 * len(transaction.sends)
    address, refusal, destination = "", None, None
    for send in transaction.sends:
        if send.address != address:
            address = send.address
            refusal = why_not(shard, send) if is_temporary(address) else None
            destination = obtain(shard, send.peer, address) if refusal is None else None
        if destination is not None:
            if destination.levels is not None:
                reset(destination, send.message)
            if destination.capacity is not None and not room.admits(shard, destination, send):
                continue
            accept(shard, destination, send.message, send.message.accepted_at)
        elif refusal is not None:
            drop(shard, send, refusal)
    room.ends()


def settle_reserved(shard: Shard, transaction: Transaction) -> None:
    """What it acknowledged is so from now on."""
    shard.batch.synchronous = True  # R10: a transaction's outcome
    for subscription, outcome, messages in transaction.settles:
        held = [message for message in messages if unreserve(subscription, message)]
        if outcome is Outcome.ACCEPTED:
            acknowledge(shard, subscription, held)
            shard.mark(subscription)  # what was reserved stood in the way of what comes after it
        else:
            for message in held:
                give_up(shard, subscription, message, outcome)


def roll_back(shard: Shard, transaction: Transaction, outcome: Outcome, peer: Peer | None = None) -> None:
    """What it acknowledged comes back, much of it portion by portion. The peer's answers wait for it; None: nobody waits."""
    _forget_sends(shard, transaction)
    returned: dict[Subscription, list[Message]] = {}
    for subscription, _, messages in transaction.settles:
        returned.setdefault(subscription, []).extend(messages)
    for subscription, messages in returned.items():
        give_back(shard, subscription, messages, outcome, peer)


def _forget_sends(shard: Shard, transaction: Transaction) -> None:
    shard.transacted -= transaction.transacted
    for send in transaction.sends:
        discard_body(shard, send.message)


def roll_back_all(shard: Shard, transactions: Iterable[Transaction]) -> None:
    """Their peer is gone: that is no failure of the messages."""
    for transaction in transactions:
        roll_back(shard, transaction, Outcome.RELEASED)


def time_out(shard: Shard) -> None:
    """Give back what transactions hold that nobody has ended in time; their names stay known until their peers use them."""
    for peer in shard.peers.values():
        for transaction in (*peer.transactions.values(), *peer.branches.values()):
            if transaction.ends_at <= shard.now:
                roll_back(shard, transaction, Outcome.FAILED)
                transaction.sends, transaction.settles, transaction.octets, transaction.transacted = [], [], 0, 0


def _refuse_part(shard: Shard, transaction: Transaction, command: Transacted, refusal: Refusal, detail: str = "") -> None:
    """Clients say COMMIT before they hear of this: without a part the whole must not be done."""
    transaction.refusal = refusal
    _refuse(shard, command, refusal, detail)


def _confirm(shard: Shard, command: Begin | Transacted | End) -> None:
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def _refuse(shard: Shard, command: Begin | Transacted | End, refusal: Refusal, detail: str = "") -> None:
    shard.batch.outputs.append(Refused(command.peer, command.token, refusal, detail))
