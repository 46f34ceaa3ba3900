"""Prepared branches (R13): one commit makes the branch, its sends and its reserved positions durable. Until its outcome nobody sees the sends and nobody is
given what it acknowledged, whatever becomes of connections and nodes. It has been promised that it can be committed, so nothing refuses it then.

Its sends wait in memory and as rows of their own (R3), so they hold no segment; what it acknowledged lies where it was, unsettled, which keeps its segment
or has it survive compaction. Only positions that outlive a node are hardened, those of stored messages and durable subscriptions: others end with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .address import is_temporary
from .aliases import target_of
from .branch import Branch, State
from .capacity import entered
from .commands import SEND_OCTETS, Send
from .commit_capacity import Room
from .cursor import Cursor
from .link import Peer
from .message import Message, Reliability
from .message_group import recognize
from .outcome import Outcome
from .placing import obtain
from .refusal import Refusal
from .sending import NOBODY, accept, drop, reset
from .shard import Shard
from .subscription import Subscription
from .transactions import roll_back, settle_reserved
from .writes import PreparedBranch

HANDS = {"commit": State.HEURISTICALLY_COMMITTED, "rollback": State.HEURISTICALLY_ROLLED_BACK, "forget": None}
"""What an administrator does to a branch, and the state that it leaves."""
PLACE_EFFORT = 2


# -- the first phase ------------------------------------------------------------------------------------------------------------------
def prepare(shard: Shard, branch: Branch, room: Room) -> tuple[Refusal | None, str]:
    """Everything in it can be done. It is hardened and is its peer's no more; else why there is no room for it."""
    _forget_room(shard, branch.sends)
    branch.held_octets = _octets_of(branch)
    if detail := _why_no_room(shard, branch):
        return Refusal.XA_RBOTHER, detail
    room.begins(shard)  # whoever commits it need not be who sent
    sends, branch.sends = branch.sends, [send for send in branch.sends if _is_promised(shard, send, room)]
    _forget_room(shard, sends)
    branch.held_octets = _octets_of(branch)
    shard.sequence = branch.number = shard.sequence + 1
    shard.transacted -= branch.transacted
    branch.octets = branch.transacted = 0
    branch.state, branch.peer, branch.prepared_at = State.PREPARED, NOBODY, shard.now
    shard.branches.keep(branch)
    shard.batch.prepared.append(_hardened(branch))
    shard.batch.synchronous = True
    return None, ""


def _forget_room(shard: Shard, sends: list[Send]) -> None:
    """What was found out about room took its sends as being there, and what it acknowledged as being gone."""
    for address in {send.address: None for send in sends}:
        destination = shard.destinations.get(address)
        if destination is not None and destination.capacity is not None:
            destination.capacity.forget()


def _is_promised(shard: Shard, send: Send, room: Room) -> bool:
    """Whether it will be there if the branch is committed: it has its level and its time to live from now on. Only best effort may be dropped for want
    of room."""
    destination = shard.destinations.get(send.address)
    if destination is None:
        return True
    reset(destination, send.message)
    return destination.capacity is None or room.admits(shard, destination, send)


def _octets_of(branch: Branch) -> int:
    """In memory: a large body is in the store, and so is mostly that of what was delivered."""
    messages = [*(send.message for send in branch.sends), *(message for _, _, some in branch.settles for message in some)]
    return sum([SEND_OCTETS + (m.size if m.body.__class__ is bytes else len(m.header.octets)) for m in messages])


def _why_no_room(shard: Shard, branch: Branch) -> str:
    """Empty: there is."""
    limits, branches, account = shard.limits, shard.branches, branch.account
    if len(branches.numbered) >= limits.prepared_max:
        return f"there are {len(branches.numbered)}"
    if branches.accounts[account] >= limits.account_prepared_max:
        return f"account {account} has {branches.accounts[account]}"
    if branches.octets + branch.held_octets > limits.prepared_octets_max:
        return f"they hold {branches.octets} octets, this one {branch.held_octets}, and {limits.prepared_octets_max} are allowed"
    held = branches.account_octets[account]
    if held + branch.held_octets > limits.prepared_octets_max // 2:
        return f"those of account {account} hold {held} octets, this one {branch.held_octets}, and {limits.prepared_octets_max // 2} are allowed"
    return ""


def _hardened(branch: Branch) -> PreparedBranch:
    """What must outlive the node."""
    sends = [(send.address, send.message) for send in branch.sends if send.message.header.reliability != Reliability.BEST_EFFORT]
    settled = []
    for subscription, outcome, messages in branch.settles:
        for message in messages:
            cursor = subscription.cursor_of(message)
            if cursor is not None and cursor.durable and cursor.reserved.get(message.position) is message:
                settled.append((cursor.subscription.number, outcome, message))
    octets = sum([message.size for _, message in sends])
    return PreparedBranch(branch.number, branch.xid, branch.account, branch.prepared_at, branch.state, octets, sends, settled)


# -- the second phase -----------------------------------------------------------------------------------------------------------------
def commit_prepared(shard: Shard, branch: Branch, state: State | None = None) -> None:
    """Its sends appear, what it acknowledged is settled, and its rows go, in one commit. `state`: what is remembered of it; None: nothing."""
    settle_reserved(shard, branch)
    shard.effort += PLACE_EFFORT * len(branch.sends)
    for send in branch.sends:
        _place(shard, send)
    _end(shard, branch, state)


def _place(shard: Shard, send: Send) -> None:
    """Whatever has become of the destination: one that is paused takes it, one that is no more is made again, as it was promised. A new object: the old
    one may be on its way into the store with the prepare."""
    address = target_of(shard, send.address)  # an alias may have taken the name of a destination that is no more
    if is_temporary(address) and address not in shard.destinations:
        drop(shard, send, Refusal.TEMPORARY_DESTINATION_GONE)
        return
    destination = obtain(shard, NOBODY, address)
    sent = send.message
    accept(shard, destination, Message(sent.header, sent.body, sent.size), sent.accepted_at)  # from the send a delay counts (JMS 2.0, 7.9)
    if destination.capacity is not None:
        entered(shard, destination)


def roll_back_prepared(shard: Shard, branch: Branch, peer: Peer | None = None, state: State | None = None) -> None:
    """What it acknowledged comes back, flagged, one failure more; its sends never were. The peer's answers wait for it; None: nobody waits."""
    roll_back(shard, branch, Outcome.FAILED, peer)
    shard.batch.synchronous = True
    _end(shard, branch, state)


def _end(shard: Shard, branch: Branch, state: State | None) -> None:
    branch.sends, branch.settles, branch.settled = [], [], 0
    shard.batch.resolved.append((branch.number, state or 0))
    if state is None:
        shard.branches.forget(branch)
    else:
        shard.branches.ease(branch)
        branch.state = state


def resolve_by_hand(shard: Shard, branch: Branch, state: State | None) -> tuple[Refusal | None, str]:
    """What an administrator asks: to end a prepared branch so, or (None) to forget that one was. Why not, and the particulars."""
    is_prepared = branch.state is State.PREPARED
    if is_prepared is (state is None):
        reason = "commit it or roll it back first" if is_prepared else "it was ended by hand before"
        return Refusal.XAER_PROTO, f"{branch.state.name.lower().replace('_', ' ')}: {reason}"
    if state is State.HEURISTICALLY_COMMITTED:
        commit_prepared(shard, branch, state)
    elif state is State.HEURISTICALLY_ROLLED_BACK:
        roll_back_prepared(shard, branch, state=state)
    else:
        _end(shard, branch, None)
        shard.batch.synchronous = True
    return None, ""


# -- after a restart ------------------------------------------------------------------------------------------------------------------
def restore(shard: Shard, found: Iterable[PreparedBranch]) -> None:
    """Before any delivery: what they acknowledged is reserved again, where nothing has been read into memory yet."""
    for row in found:
        branch = Branch(row.xid, row.account, NOBODY, b"", 0)
        branch.number, branch.state, branch.prepared_at = row.branch, State(row.state), row.prepared_at
        recognize(shard, [message for _, message in row.sends])
        branch.sends = [Send(NOBODY, None, address, message) for address, message in row.sends]
        for number, outcome, message in row.settled:
            _reserve_again(shard, branch, number, outcome, message)
        branch.held_octets = _octets_of(branch)
        shard.branches.keep(branch)


def _reserve_again(shard: Shard, branch: Branch, number: int, outcome: Outcome, message: Message) -> None:
    member = shard.subscriptions.get(number)
    if member is None:  # it ended, or its destination did, and what it acknowledged with it
        return
    cursor = member.cursors[message.header.lane]
    assert cursor is not None and not cursor.progress.is_settled(message.position), f"{message.position} of {number} was acknowledged and prepared"
    message.destination, message.failures = member.destination.number, cursor.failures.get(message.position, 0)
    recognize(shard, [message])
    _take(cursor, message)
    subscription: Subscription = member.wildcard or member
    last = branch.settles[-1] if branch.settles else None
    if last is not None and last[0] is subscription and last[1] is outcome:
        last[2].append(message)
    else:
        branch.settles.append((subscription, outcome, [message]))
    branch.settled += 1


def _take(cursor: Cursor, message: Message) -> None:
    """From its place on disk, so that no page brings it."""
    cursor.reserved[message.position] = message
    if message.position >= cursor.frontier:
        cursor.gone[message.position] = None
