"""What must hold of transactions, and of branches that are prepared, after every flush."""

from __future__ import annotations

from collections import Counter

from .branch import Branch, State
from .shard import Shard


def check_transactions(shard: Shard) -> None:
    """Octets are counted once, and every branch is where its state says."""
    transactions = {each: None for peer in shard.peers.values() for each in (*peer.transactions.values(), *peer.branches.values())}
    transacted = sum(transaction.transacted for transaction in transactions)
    assert shard.transacted == transacted, f"transactions are said to hold {shard.transacted} octets, they hold {transacted}"
    known = shard.branches.known
    for peer in shard.peers.values():
        for xid, branch in peer.branches.items():
            assert known.get((peer.account, xid)) is branch and branch.peer == peer.number, f"branch {xid} of peer {peer.number} is another's"
            assert branch.state < State.PREPARED, f"branch {xid} is {branch.state.name} and a peer's"
            active = peer.transactions.get(branch.name) is branch
            assert active == (branch.state is State.ACTIVE), f"branch {xid} is {branch.state.name} and {'' if active else 'not '}worked on"
    open_ones = sum(len(peer.branches) for peer in shard.peers.values())
    assert len(known) == open_ones + len(shard.branches.numbered), f"{len(known)} branches are known, {open_ones} are open"
    _check_prepared(shard)


def _check_prepared(shard: Shard) -> None:
    branches = shard.branches
    octets: Counter[str] = Counter()
    for number, branch in branches.numbered.items():
        assert branches.known.get(branch.key) is branch and branch.number == number, f"branch {number} is not known by its name"
        assert branch.state >= State.PREPARED and branch.peer == 0, f"branch {number} is {branch.state.name}, of peer {branch.peer}"
        assert branch.state is State.PREPARED or not (branch.sends or branch.settles or branch.held_octets), f"branch {number} is over and holds something"
        octets[branch.account] += branch.held_octets
        _check_reserved(shard, branch)
    assert branches.octets == octets.total(), f"prepared branches are said to hold {branches.octets} octets, they hold {octets.total()}"
    assert +branches.account_octets == +octets, f"accounts are said to hold {branches.account_octets} octets, they hold {octets}"
    accounts = Counter(branch.account for branch in branches.numbered.values())
    assert branches.accounts == accounts, f"accounts are said to have {branches.accounts} branches, they have {accounts}"


def _check_reserved(shard: Shard, branch: Branch) -> None:
    """Nobody else has what it acknowledged, as long as there is somebody to have it."""
    for subscription, _, messages in branch.settles:
        if shard.subscriptions.get(subscription.number) is not subscription:
            continue
        for message in messages:
            cursor = subscription.cursor_of(message)
            kept = cursor is None or cursor.reserved.get(message.position) is message
            assert kept, f"position {message.position} of {subscription.destination.address} is not reserved for branch {branch.number}"
