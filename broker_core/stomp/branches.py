"""Branches of distributed transactions (X/Open XA) in frames: BEGIN, COMMIT and ABORT with header xid, and what else a transaction manager wants, as a SEND
without a body to `/queue/mq.sys.xa`."""

from __future__ import annotations

from typing import TypeVar

from broker_core.engine.address import is_reserved
from broker_core.engine.branch import State
from broker_core.engine.commands import BeginBranch, EndBranch, ListBranches, Verb
from broker_core.engine.message import Encoding, Header, Reliability
from broker_core.engine.xid import XID_EXPECTED, canonical_xid

from .escaping import canonical
from .mapping import quoted
from .sections import Malformed, on_wire
from .temporaries import Temporaries
from .tokens import Receipt

DESTINATIONS = frozenset(("/queue/mq.sys.xa", "mq.sys.xa"))
PHASES = {"prepare": Verb.PREPARE, "one": Verb.COMMIT_ONE, "two": Verb.COMMIT}
AGAIN = {"join": State.ENDED, "resume": State.SUSPENDED}
ENDS = {"success": Verb.END, "fail": Verb.FAIL, "suspend": Verb.SUSPEND}
OPERATIONS = ("end", "recover", "forget")
TIMEOUT_MS_MAX = 86_400_000
"""A day, the longest that an operator may let transactions take."""

Command = BeginBranch | EndBranch | ListBranches


def branch_frame(peer: int, command: str, headers: dict[str, str], token: Receipt | None, version: str) -> Command:
    """What BEGIN, COMMIT or ABORT with header xid asks for. Raises Malformed."""
    xid = _xid(headers)
    if command == "BEGIN":
        name = on_wire(headers.get("transaction", headers["xid"]), version)  # as it is written: so the frames of its work write it
        if not name:
            raise Malformed("BEGIN has an empty header transaction")
        again = _one_of(headers, "flag", AGAIN) if "flag" in headers else None
        return BeginBranch(peer, name, xid, again, _timeout(headers), token)
    if command == "ABORT":
        return EndBranch(peer, xid, Verb.ROLL_BACK, token)
    return EndBranch(peer, xid, _one_of(headers, "phase", PHASES), token)


def administer(
    peer: int, headers: dict[str, str], body: bytes | None, within: bytes | None, token: Receipt | None, temporaries: Temporaries
) -> Command:  # fmt: skip
    """What a SEND to `mq.sys.xa` asks for; `within`: the transaction that it names. Raises Malformed."""
    operation = headers.get("operation", "")
    if operation not in OPERATIONS:
        raise Malformed(f"header operation of SEND to mq.sys.xa is {quoted(operation)}, none of {', '.join(OPERATIONS)}")
    if body != b"" or within is not None:
        raise Malformed("SEND to mq.sys.xa takes neither a body nor header transaction")
    if operation == "recover":
        return _recover(peer, headers, token, temporaries)
    xid = _xid(headers)
    return EndBranch(peer, xid, Verb.FORGET if operation == "forget" else _one_of({"flag": "success", **headers}, "flag", ENDS), token)


def _recover(peer: int, headers: dict[str, str], token: Receipt | None, temporaries: Temporaries) -> ListBranches:
    """The answer is a message like others, so that whoever asked can tell it from others by his correlation-id."""
    wanted = headers.get("reply-to")
    if wanted is None:
        raise Malformed("operation recover needs header reply-to: the destination that the answer is sent to")
    address = temporaries.address_of(wanted)
    if is_reserved(address):
        raise Malformed(f"header reply-to is {quoted(wanted)}, which belongs to the broker")
    said = {"content-type": "text/plain"} | {name: headers[name] for name in ("correlation-id", "operation") if name in headers}
    header = Header(canonical(said), reliability=Reliability.EXPRESS, encoding=Encoding.STOMP, stated=False)
    return ListBranches(peer, address, header, _xid(headers, "after") if "after" in headers else "", token)


def _xid(headers: dict[str, str], name: str = "xid") -> str:
    text = headers.get(name, "")
    xid = canonical_xid(text)
    if not xid:
        raise Malformed(f"XAER_INVAL: header {name} is {quoted(text)}, not {XID_EXPECTED}")
    return xid


Value = TypeVar("Value")


def _one_of(headers: dict[str, str], name: str, known: dict[str, Value]) -> Value:
    value = headers.get(name, "")
    if value not in known:
        raise Malformed(f"XAER_INVAL: header {name} is {quoted(value)}, none of {', '.join(known)}")
    return known[value]


def _timeout(headers: dict[str, str]) -> int:
    value = headers.get("timeout", "0")
    if not (value.isascii() and value.isdigit() and len(value) <= 8 and int(value) <= TIMEOUT_MS_MAX):
        raise Malformed(f"XAER_INVAL: header timeout is {quoted(value)}, not a number of milliseconds up to {TIMEOUT_MS_MAX}, a day")
    return int(value)
