"""One search for a broker that lets us in: for the first connection, or for another one when it was lost."""

from __future__ import annotations

from collections.abc import Iterator

from broker_core.client.exceptions import CONNECTION_LOST, InvalidClientIDException, JMSException, JMSSecurityException

from .addresses import Address, Addresses, unreachable
from .connection import ConnectionMachine, Phase

LOGIN_SECONDS = 30.0
"""From CONNECT to CONNECTED."""


class Attempts:
    def __init__(self, machine: ConnectionMachine, addresses: Addresses) -> None:
        self._machine = machine
        self._addresses = addresses
        self._is_first = not machine.opened.is_settled
        self._errors: list[str] = []
        self._trouble: JMSException | None = None
        self._is_in = False

    def to_try(self) -> Iterator[tuple[Address, float]]:
        """Each address, and how many seconds to wait before that."""
        return self._addresses.to_try()

    def unreachable(self, address: Address, error: OSError) -> None:
        """There is no socket to it."""
        self._errors.append(f"{address}: {str(error) or 'nobody answers in time'}")

    def is_over(self, address: Address) -> bool:
        """A broker has let us in, or refused us, or the socket is gone again. True: nothing else is to be tried."""
        machine = self._machine
        if machine.phase is Phase.OPEN or machine.phase is Phase.LEAVING:  # whoever was let in may be leaving already
            self._addresses.reached(address)
            self._is_in = True
            return True
        self._trouble = trouble = machine.trouble
        self._errors.append(f"{address}: {trouble}")
        return isinstance(trouble, JMSSecurityException) or (self._is_first and isinstance(trouble, InvalidClientIDException))

    def end(self) -> bool:
        """Whether we are in. If not, the connection has failed."""
        if not self._is_in:
            self._machine.give_up(unreachable(self._errors) if self._trouble is None else self._trouble)
        return self._is_in


def not_let_in(seconds: float) -> JMSException:
    """The broker has not answered CONNECT."""
    return JMSException(f"the broker has not let us in within {seconds:g} s", CONNECTION_LOST)
