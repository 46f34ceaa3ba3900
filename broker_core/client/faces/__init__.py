"""What applications see of the machine in either colour, less the waiting: parameters, checks, and which call does what.

A face is generic over what its calls give back: the threads' face the value itself, asyncio's something to be awaited. So each call is written, and
documented, once; the colours add how one waits.
"""

from .browser import BrowserFace, QueueBrowserFace, SubscriptionBrowserFace
from .connection import ConnectionFace
from .consumer import ConsumerFace
from .producer import ProducerFace
from .session import SessionFace
from .xa import XASessionFace

__all__ = [
    "BrowserFace", "ConnectionFace", "ConsumerFace", "ProducerFace", "QueueBrowserFace", "SessionFace", "SubscriptionBrowserFace", "XASessionFace",
]  # fmt: skip
