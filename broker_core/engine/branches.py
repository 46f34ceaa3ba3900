"""Branches of distributed transactions up to their prepare (X/Open XA; checklist items 63 to 66): begun, worked on, ended, and what a transaction
manager says of them. Their work is taken down as that of local transactions (transactions.py); what is prepared is another matter (prepared.py).

A branch that is not prepared belongs to the connection that began it and ends with it; any other of the same account may roll it back, for a transaction
manager may have lost that connection before the broker has. The names of two accounts' branches have nothing to do with each other, so nobody can end, see or
stand in the way of another's.
"""

from __future__ import annotations

from .branch import Branch, State
from .capacity import admit
from .commands import BeginBranch, EndBranch, ListBranches, Send, Verb
from .commit_capacity import Room
from .link import Peer
from .message import Message
from .outcome import Outcome
from .outputs import Confirmed, Refused
from .placing import obtain
from .prepared import commit_prepared, prepare, roll_back_prepared
from .refusal import Refusal
from .scheduling import enter
from .sending import reset, why_not_send
from .settlement import answer
from .shard import Shard
from .transactions import commit, roll_back, why_not_commit

LISTED_MAX = 1_000
"""Branches in one answer to recover; who got so many asks for those after the last."""
ROLLED_BACK = {Refusal.TRANSACTION_TIMED_OUT: Refusal.XA_RBTIMEOUT}
"""What cannot be committed is rolled back, mostly for reasons that XA has no name for."""
HEURISTIC = {State.HEURISTICALLY_COMMITTED: Refusal.XA_HEURCOM, State.HEURISTICALLY_ROLLED_BACK: Refusal.XA_HEURRB}
SAID = {
    State.PREPARED: "prepared",
    State.HEURISTICALLY_COMMITTED: "heuristically-committed",
    State.HEURISTICALLY_ROLLED_BACK: "heuristically-rolled-back",
}
ENDINGS = {Verb.END: State.ENDED, Verb.SUSPEND: State.SUSPENDED, Verb.FAIL: State.FAILED}


def begin_branch(shard: Shard, command: BeginBranch) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    known = shard.branches.known.get((peer.account, command.xid))
    refusal, detail = _why_not_begin(shard, peer, command, known)
    if refusal is not None:
        _refuse(shard, command, refusal, detail)
        return
    if known is None:
        lasts = shard.limits.transaction_ms_max
        known = Branch(command.xid, peer.account, peer.number, command.transaction, shard.now + min(command.timeout or lasts, lasts))
        shard.branches.known[known.key] = peer.branches[command.xid] = known
    known.state, known.name = State.ACTIVE, command.transaction
    peer.transactions[command.transaction] = known
    _confirm(shard, command)


def _why_not_begin(shard: Shard, peer: Peer, command: BeginBranch, known: Branch | None) -> tuple[Refusal | None, str]:
    """And the particulars."""
    most = shard.limits.transactions_max
    if command.again is None and known is not None:
        return Refusal.XAER_DUPID, f"it is {_in_words(known.state)}"
    if command.again is not None and known is None:
        return Refusal.XAER_NOTA, ""
    if known is not None and (known.peer != peer.number or known.state is not command.again):
        return Refusal.XAER_PROTO, _where(known, peer.number)
    if command.transaction in peer.transactions:
        return Refusal.TRANSACTION_EXISTS, ""
    if known is None and (len(peer.transactions) >= most or len(peer.branches) >= most):
        return Refusal.XAER_RMERR, f"more than {most} at a time on one connection"
    return None, ""


def end_branch(shard: Shard, command: EndBranch) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    branch = shard.branches.known.get((peer.account, command.xid))
    if branch is None:
        _refuse(shard, command, Refusal.XAER_NOTA)
    elif command.verb in ENDINGS:
        _suspend(shard, peer, command, branch)
    elif branch.state >= State.PREPARED:
        _end_prepared(shard, peer, command, branch)
    elif command.verb is Verb.ROLL_BACK:
        _leave(shard, shard.peers[branch.peer], branch)
        roll_back(shard, branch, Outcome.FAILED, peer)
        _answer(shard, peer, command)
    elif branch.peer != peer.number or command.verb in (Verb.COMMIT, Verb.FORGET):
        _refuse(shard, command, Refusal.XAER_PROTO, _where(branch, peer.number))
    elif branch.state is State.SUSPENDED:
        _refuse(shard, command, Refusal.XAER_PROTO, "it is suspended: resume it and end it first")
    else:
        _commit(shard, peer, command, branch)


def _suspend(shard: Shard, peer: Peer, command: EndBranch, branch: Branch) -> None:
    """No more work on it, for now or for good. One that is suspended may be ended without being resumed."""
    ends_it = branch.state is State.SUSPENDED and command.verb is not Verb.SUSPEND
    if branch.peer != peer.number or not (branch.state is State.ACTIVE or ends_it):
        _refuse(shard, command, Refusal.XAER_PROTO, _where(branch, peer.number))
        return
    peer.transactions.pop(branch.name, None)
    branch.state = ENDINGS[command.verb]
    _confirm(shard, command)


def _commit(shard: Shard, peer: Peer, command: EndBranch, branch: Branch) -> None:
    """In one phase, or its first phase. What cannot be done rolls it back."""
    _leave(shard, peer, branch)
    room = Room(waits=command.token is not None)
    refusal, detail = _why_not(shard, peer, branch, room)
    if refusal is None and command.verb is Verb.PREPARE:
        refusal, detail = prepare(shard, branch, room)
        room.ends()
    elif refusal is None:
        commit(shard, branch, room)
    if refusal is not None:
        roll_back(shard, branch, Outcome.FAILED, peer)
        answer(shard, peer, Refused(peer.number, command.token, refusal, detail))
    elif not room.withholds(shard, peer, Confirmed(peer.number, command.token)):
        _confirm(shard, command)


def _why_not(shard: Shard, peer: Peer, branch: Branch, room: Room) -> tuple[Refusal | None, str]:
    if branch.state is State.FAILED:
        return Refusal.XA_RBROLLBACK, "its work was ended as failed"
    refusal, detail = why_not_commit(shard, peer, branch, room)
    if refusal is None or refusal in ROLLED_BACK:
        return ROLLED_BACK[refusal] if refusal else None, ""
    return Refusal.XA_RBROLLBACK, f"{refusal.value}: {detail}" if detail else refusal.value


def _end_prepared(shard: Shard, peer: Peer, command: EndBranch, branch: Branch) -> None:
    """By whichever connection of its account: who began it may be long gone."""
    heuristic = HEURISTIC.get(branch.state)
    if command.verb in (Verb.PREPARE, Verb.COMMIT_ONE) or (command.verb is Verb.FORGET) is not (heuristic is not None):
        if heuristic is not None and command.verb in (Verb.COMMIT, Verb.ROLL_BACK):
            _refuse(shard, command, heuristic)
        else:
            _refuse(shard, command, Refusal.XAER_PROTO, f"it is {_in_words(branch.state)}")
    elif heuristic is not None:
        shard.branches.forget(branch)
        shard.batch.resolved.append((branch.number, 0))
        shard.batch.synchronous = True
        _confirm(shard, command)
    elif command.verb is Verb.COMMIT:
        commit_prepared(shard, branch)
        _confirm(shard, command)
    else:
        roll_back_prepared(shard, branch, peer)
        _answer(shard, peer, command)


def list_branches(shard: Shard, command: ListBranches) -> None:
    """As a message, which is sent as any other and neither stored nor kept for long. It comes before the confirmation."""
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    found = [branch for branch in shard.branches.numbered.values() if branch.account == peer.account and branch.xid > command.after]
    lines = [f"{branch.xid} {SAID[branch.state]}\n" for branch in sorted(found, key=lambda branch: branch.xid)[:LISTED_MAX]]
    body = "".join(lines).encode()
    message = Message(command.header, body, len(command.header.octets) + len(body))
    send = Send(peer.number, None, command.address, message)
    refusal, detail = why_not_send(shard, send)
    if refusal is not None:
        _refuse(shard, command, refusal, detail)
        return
    shard.effort += len(shard.branches.numbered) + len(lines)
    destination = obtain(shard, peer.number, send.address)
    reset(destination, message)
    if destination.capacity is not None and not admit(shard, destination, send):
        _refuse(shard, command, Refusal.XAER_RMERR, f"there is no room for the answer in {command.address}")
        return
    enter(shard, destination, message)
    _confirm(shard, command)


def lose_branches(shard: Shard, peer: Peer) -> None:
    """Their peer is gone: what is not prepared is over, which is no failure of its messages. Those that are worked on were its transactions, too."""
    for branch in peer.branches.values():
        if branch.state is not State.ACTIVE:
            roll_back(shard, branch, Outcome.RELEASED)
        shard.branches.forget(branch)


def _leave(shard: Shard, peer: Peer, branch: Branch) -> None:
    """It is the peer's no more, and whatever becomes of it, its xid is free unless it is prepared."""
    if branch.state is State.ACTIVE:
        peer.transactions.pop(branch.name, None)
    del peer.branches[branch.xid]
    shard.branches.forget(branch)


def _where(branch: Branch, peer: int) -> str:
    if branch.state < State.PREPARED and branch.peer != peer:
        return "it is not prepared, and belongs to the connection that began it"
    return f"it is {_in_words(branch.state)}"


def _in_words(state: State) -> str:
    return state.name.lower().replace("_", " ")


def _answer(shard: Shard, peer: Peer, command: EndBranch) -> None:
    """When all that it held has come back."""
    if command.token is not None:
        answer(shard, peer, Confirmed(peer.number, command.token))


def _confirm(shard: Shard, command: BeginBranch | EndBranch | ListBranches) -> None:
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def _refuse(shard: Shard, command: BeginBranch | EndBranch | ListBranches, refusal: Refusal, detail: str = "") -> None:
    shard.batch.outputs.append(Refused(command.peer, command.token, refusal, detail))
