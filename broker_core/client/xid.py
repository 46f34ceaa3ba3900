"""Names of branches of distributed transactions (X/Open XA)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from broker_core.engine.xid import FORMAT_MAX, GLOBAL_OCTETS_MAX, QUALIFIER_OCTETS_MAX, canonical_xid

from .exceptions import JMSException


class BranchState(Enum):
    """Of a branch that `tpc_recover` names, as the broker says it."""

    PREPARED = "prepared"
    """It waits for its outcome."""
    HEURISTICALLY_COMMITTED = "heuristically-committed"
    """An administrator has committed it by hand. The broker remembers that until somebody forgets it."""
    HEURISTICALLY_ROLLED_BACK = "heuristically-rolled-back"


@dataclass(frozen=True, slots=True)
class Xid:
    """Made by `XASession.xid`. As PEP 249 has it, also a sequence of its three parts. Equal if these are; `str()` is how the broker and its operators
    write it: `<format>.<global transaction id>.<branch qualifier>`, both in hexadecimal digits."""

    format_id: int
    global_transaction_id: bytes
    branch_qualifier: bytes = b""
    state: BranchState | None = field(default=None, compare=False)
    """As `tpc_recover` found it; None: it comes from elsewhere."""

    def __post_init__(self) -> None:
        if not isinstance(self.format_id, int) or isinstance(self.format_id, bool) or not 0 <= self.format_id <= FORMAT_MAX:
            raise JMSException(f"the format of the xid is {self.format_id!r}: use a whole number from 0 to {FORMAT_MAX}")
        _check_octets(self.global_transaction_id, "global transaction id", 1, GLOBAL_OCTETS_MAX)
        _check_octets(self.branch_qualifier, "branch qualifier", 0, QUALIFIER_OCTETS_MAX)

    @classmethod
    def of(cls, format_id: int, global_transaction_id: bytes | str, branch_qualifier: bytes | str = b"") -> Xid:
        """Strings stand for their UTF-8."""
        return cls(format_id, _octets(global_transaction_id), _octets(branch_qualifier))

    @classmethod
    def parse(cls, text: str, state: BranchState | None = None) -> Xid:
        """From how the broker writes it. Raises JMSException."""
        if not (canonical := canonical_xid(text)):
            raise JMSException(f"{text!r} is no xid: it is written <format>.<global transaction id>.<branch qualifier>, the last two in hexadecimal digits")
        format_id, identifier, qualifier = canonical.split(".")
        return cls(int(format_id), bytes.fromhex(identifier), bytes.fromhex(qualifier), state)

    def __str__(self) -> str:
        return f"{self.format_id}.{self.global_transaction_id.hex()}.{self.branch_qualifier.hex()}"

    def __iter__(self) -> Iterator[int | bytes]:
        return iter((self.format_id, self.global_transaction_id, self.branch_qualifier))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int | bytes:
        return (self.format_id, self.global_transaction_id, self.branch_qualifier)[index]


def check_xid(xid: object) -> Xid:
    """Raise if it is none."""
    if not isinstance(xid, Xid):
        raise JMSException(f"{xid!r} is no xid: make one with session.xid(format_id, global_transaction_id, branch_qualifier)")
    return xid


def _octets(value: bytes | str) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise JMSException(f"the xid's {value!r} cannot be written as UTF-8: {error.reason}") from None


def _check_octets(value: object, name: str, least: int, most: int) -> None:
    if not isinstance(value, bytes):
        raise JMSException(f"the {name} of the xid is {value!r}: it must be bytes or str")
    if not least <= len(value) <= most:
        raise JMSException(f"the {name} of the xid has {len(value)} octets: use {least} to {most}")
