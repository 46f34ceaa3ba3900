"""The Python client runtime for asyncio: the same machine, rules and names as `broker_core.client`, under an event loop.

    from broker_core.client.aio import ConnectionFactory, Queue

    async with ConnectionFactory().create_connection() as connection, connection.create_session() as session:
        orders = Queue("orders")
        await session.create_producer(orders).send("a first order")
        async with session.create_consumer(orders) as consumer:
            print((await consumer.receive()).text)

What waits is awaited, what does not is called. docs/client.md tells the rest, and what becomes of calls that are cancelled.

Theory of operation: `machine/` holds every rule, `faces/` what calls mean; `driver.py` runs the machine over a transport of the loop with one task
a connection, and a call that waits sleeps on a future. Nothing here is used by two threads.
"""

from broker_core.client.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from broker_core.client.exceptions import (
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    MessageFormatException,
    MessageNotWriteableException,
    ResourceAllocationException,
    TransactionInProgressException,
    TransactionRolledBackException,
)
from broker_core.client.machine import CompletionListener
from broker_core.client.messages import BytesMessage, MapMessage, Message, ObjectMessage, TextMessage
from broker_core.client.settings import (
    AcknowledgeMode,
    AddressListBehavior,
    Batch,
    DeliveryMode,
    DupsOkPolicy,
    PrefetchPolicy,
    Profile,
    Reliability,
)
from broker_core.client.xid import BranchState, Xid

from .browser import QueueBrowser, SubscriptionBrowser
from .connection import Connection, ExceptionListener
from .consumer import MessageConsumer, MessageListener
from .factory import ConnectionFactory
from .opening import Opening
from .producer import MessageProducer
from .session import Session
from .xa import XAConnection, XAConnectionFactory, XASession

__all__ = [
    "AcknowledgeMode", "AddressListBehavior", "Batch", "BranchState", "BytesMessage", "CompletionListener", "Connection", "ConnectionFactory", "DeliveryMode",
    "Destination", "DupsOkPolicy", "ExceptionListener", "IllegalStateException", "InvalidClientIDException", "InvalidDestinationException",
    "InvalidSelectorException", "JMSException", "JMSSecurityException", "MapMessage", "Message", "MessageConsumer", "MessageFormatException",
    "MessageListener", "MessageNotWriteableException", "MessageProducer", "ObjectMessage", "Opening", "PrefetchPolicy", "Profile", "Queue",
    "QueueBrowser", "Reliability", "ResourceAllocationException", "Session", "SubscriptionBrowser", "TemporaryQueue", "TemporaryTopic", "TextMessage",
    "Topic", "TransactionInProgressException", "TransactionRolledBackException", "XAConnection", "XAConnectionFactory", "XASession", "Xid",
]  # fmt: skip
