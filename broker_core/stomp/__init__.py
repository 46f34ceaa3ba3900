"""STOMP 1.0, 1.1 and 1.2 as a machine without sockets or clock: bytes to engine commands, engine outputs to bytes. See `connection`."""

from .connection import BodyPart, Connection, Event
from .limits import Limits
from .login import Login

__all__ = ["BodyPart", "Connection", "Event", "Limits", "Login"]
