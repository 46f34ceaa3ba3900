"""Names of transaction branches (X/Open XA): a format, a global identifier and a branch qualifier, in one canonical text:
`<format, decimal>.<global identifier, hexadecimal>.<qualifier, hexadecimal>`, as in `4660.0a1b2c.01`."""

from __future__ import annotations

import re

GLOBAL_OCTETS_MAX = QUALIFIER_OCTETS_MAX = 64
"""MAXGTRIDSIZE and MAXBQUALSIZE."""
FORMAT_MAX = (1 << 31) - 1
"""A format of -1 is XA's null identifier; others below 0 mean nothing."""
_XID = re.compile(
    rf"(0|[1-9][0-9]{{0,9}})\.((?:[0-9a-f]{{2}}){{1,{GLOBAL_OCTETS_MAX}}})\.((?:[0-9a-f]{{2}}){{0,{QUALIFIER_OCTETS_MAX}}})"
)
XID_EXPECTED = (
    f"<format>.<global identifier>.<qualifier>: a whole number up to {FORMAT_MAX}, 1 to {GLOBAL_OCTETS_MAX} octets and 0 to "
    f"{QUALIFIER_OCTETS_MAX} octets in hexadecimal digits, two an octet"
)


def canonical_xid(text: str) -> str:
    """The one way to write it, with small letters; empty: it is none."""
    xid = text.lower()
    found = _XID.fullmatch(xid)
    return xid if found is not None and int(found[1]) <= FORMAT_MAX else ""
