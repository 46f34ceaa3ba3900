"""The Python client runtime: JMS over STOMP, for applications.

    from broker_core.client import ConnectionFactory, Queue

    with ConnectionFactory().create_connection() as connection, connection.create_session() as session:
        orders = Queue("orders")
        session.create_producer(orders).send("a first order")
        print(session.create_consumer(orders).receive().text)

docs/client.md tells all of it. Names are those of JMS in snake_case; durations are seconds, instants milliseconds since 1970.

Theory of operation: `machine/` is the runtime without sockets, threads or clock and holds every rule of JMS; `driver.py` runs it over a socket
with one thread a connection; Connection, Session, MessageProducer and MessageConsumer are what applications see of both. What of them does not wait
is in `faces/`, for asyncio has it too: `aio/` is the other driver.
"""

from .browser import QueueBrowser, SubscriptionBrowser
from .connection import Connection, ExceptionListener
from .consumer import MessageConsumer, MessageListener
from .destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from .exceptions import (
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
from .factory import ConnectionFactory
from .machine import CompletionListener
from .messages import BytesMessage, MapMessage, Message, ObjectMessage, TextMessage
from .producer import MessageProducer
from .session import Session
from .settings import (
    AcknowledgeMode,
    AddressListBehavior,
    Batch,
    DeliveryMode,
    DupsOkPolicy,
    PrefetchPolicy,
    Profile,
    Reliability,
)
from .xa import XAConnection, XAConnectionFactory, XASession
from .xid import BranchState, Xid

__all__ = [
    "AcknowledgeMode", "AddressListBehavior", "Batch", "BranchState", "BytesMessage", "CompletionListener", "Connection", "ConnectionFactory", "DeliveryMode",
    "Destination", "DupsOkPolicy", "ExceptionListener", "IllegalStateException", "InvalidClientIDException", "InvalidDestinationException",
    "InvalidSelectorException", "JMSException", "JMSSecurityException", "MapMessage", "Message", "MessageConsumer", "MessageFormatException",
    "MessageListener", "MessageNotWriteableException", "MessageProducer", "ObjectMessage", "PrefetchPolicy", "Profile", "Queue", "QueueBrowser", "Reliability",
    "ResourceAllocationException", "Session", "SubscriptionBrowser", "TemporaryQueue", "TemporaryTopic", "TextMessage", "Topic",
    "TransactionInProgressException", "TransactionRolledBackException", "XAConnection", "XAConnectionFactory", "XASession", "Xid",
]  # fmt: skip
