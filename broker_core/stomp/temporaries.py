"""The names of one connection's temporary destinations. To its client one is `/temp-queue/replies`; all others know it by its full name,
`/temp-queue/<session>.replies`, which SEND's reply-to tells them and which the owner may use as well."""

from __future__ import annotations

import re

from broker_core.engine.address import is_temporary, is_valid

from .mapping import address_of, invalid, quoted
from .sections import Malformed

PREFIXES = ("/temp-queue/", "/temp-topic/")


class Temporaries:
    def __init__(self, instance: str) -> None:
        """Sessions are `<instance>-<epoch>-<number>`: a name that begins with one is a full name, whosever it is."""
        self.session = ""
        """The connection's own, once it has logged in."""
        self._full = re.compile(rf"{re.escape(instance)}-[0-9]+-[0-9]+\.")

    def address_of(self, destination: str) -> str:
        """The canonical address of what the client wrote. Raises Malformed."""
        address = address_of(destination)
        if not is_temporary(address):
            return address
        kind, _, name = address.partition("/")
        if self._full.match(name):
            return address
        address = f"{kind}/{self.session}.{name}"
        if not is_valid(address):
            raise invalid(destination)
        return address

    def reply_to(self, headers: dict[str, str]) -> tuple[dict[str, str], str]:
        """The headers of a SEND as others shall read them, and the address of the temporary destination of this client's that they are told; empty: none."""
        wanted = headers.get("reply-to", "")
        if not wanted.startswith(PREFIXES):
            return headers, ""
        try:
            address = self.address_of(wanted)
        except Malformed:
            raise Malformed(f"header reply-to is {quoted(wanted)}, which is no name of a temporary destination") from None
        own = address.partition("/")[2].startswith(f"{self.session}.")
        return ({**headers, "reply-to": f"/{address}"}, address) if own else (headers, "")
