"""When a certificate ends, as its file says. Python's ssl tells that only of a peer's, and only if the connection trusts it.

PURE: what the file says is an argument.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import UTC, datetime

_PEM = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.+?)-----END", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17
"""Tags of DER."""


def ends_at(pem: str) -> float | None:
    """When the first of them ends, in seconds since the epoch: one that signed the others ends all. None: there is none, or nobody knows."""
    try:
        return min(map(_end, _PEM.findall(pem)), default=None)
    except (ValueError, IndexError):
        return None


def _end(encoded: str) -> float:
    """Of the certificate's fields (RFC 5280, 4.1) the one behind version, which may be left out, number, algorithm and issuer is the validity."""
    der = b64decode(encoded)
    _, at, _ = _element(der, 0)
    _, at, _ = _element(der, at)
    for _ in range(4 if der[at] == _VERSION else 3):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)
    _, _, at = _element(der, at)  # since when
    tag, at, end = _element(der, at)
    text = der[at:end].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year
        text = f"{19 if text >= '50' else 20}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Its tag, and where its contents begin and end."""
    length, begin = der[at + 1], at + 2
    if length & 0x80:  # the length of the length
        begin += length & 0x7F
        length = int.from_bytes(der[at + 2 : begin])
    return der[at], begin, begin + length
