"""The client runtime without sockets, threads or clock: calls and octets in, octets and answers out. Every rule of JMS is here.

How to drive a `ConnectionMachine`
----------------------------------
All instants are milliseconds of one clock that never goes back; `instant` alone is the time of day. One caller at a time.

1. Open a socket to one of the addresses that `Attempts` names, call `connect`, and whenever something was called write `data_to_send()`.
2. `receive_data` takes octets from the socket. While `has_more` is True write and wake as below, then call `proceed`.
3. When the socket is gone call `lost`. When the phase is WAITING, then or because the machine itself gave the socket up, close it and open
   another one, as `Attempts` says; if there is none, it gives up.
4. Arm a timer for `next_deadline()` and call `tick` when it is due; `ack_at` may move it closer. Do not read while `wants_pause`.
5. Wake the owners of `take_woken()`: what they wait for may have come. Tell the listeners of `take_completions()`.

An operation returns a `Confirmation` if JMS has its caller wait for the broker; None if not. The caller waits until that is settled, then calls
its `check`. Before a send `window.is_full` must be False. A consumer's `receive` is None while there is nothing: the session is woken when there is.
Who is interrupted while it waits for a `receive` to be confirmed gives the message to the consumer's `keep`.

What is wrong raises a JMSException, before anything is written.
"""

from .addresses import Address, Addresses, options_in
from .attempts import Attempts
from .browser import BrowserMachine
from .confirmation import CompletionListener, Confirmation
from .connection import NEVER, ConnectionMachine, Phase
from .consumer import ConsumerMachine, Subscription
from .producer import ProducerMachine
from .session import SessionMachine
from .xa import Recovered, XASessionMachine

__all__ = [
    "NEVER", "Address", "Addresses", "Attempts", "BrowserMachine", "CompletionListener", "Confirmation", "ConnectionMachine", "ConsumerMachine", "Phase",
    "ProducerMachine", "Recovered", "SessionMachine", "Subscription", "XASessionMachine", "options_in",
]  # fmt: skip
