"""STOMP 1.0, 1.1 and 1.2 as a machine without sockets or clock: bytes in, engine commands out; engine outputs in, bytes out.

How to drive a `Connection`
---------------------------
1. `receive_data(data, now)` returns engine commands, to be submitted in order, and among them two events of the connection itself:
   `Login`, whose verdict is owed by `accept` or `reject`, and `BodyPart`. Until the verdict nothing more is parsed.
2. `accept` returns more of the same; the first is the engine's Open.
3. Parts of a large body come in order, followed by its Send with `message.body` None: store the parts, put the StoredBody there, then
   submit it. If the connection ends between, drop the parts.
4. `send(outputs, now)` takes the engine's outputs for this peer, in order, after their commit.
5. After each of these write `data_to_send()`. When `wants_close` then is True, close the socket once that is written.
6. When the socket is gone for whatever reason call `receive_eof(now)` once; it returns the engine's PeerLost if the engine knows the peer.
7. Arm a timer for `next_deadline()` and call `tick(now)` when it is due. Do not read from the socket while `wants_pause`.

DISCONNECT closes every link and asks the engine for a Sync; when that is confirmed the receipt goes out and `wants_close` becomes True.

The peer's mistakes never raise: they queue one ERROR frame, drop what is held, and from then on the machine hears and says nothing more.
"""

from .connection import BodyPart, Connection, Event
from .limits import Limits
from .login import Login

__all__ = ["BodyPart", "Connection", "Event", "Limits", "Login"]
