"""The other end of an XA session: what a broker does about branches, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import JMSException, TextMessage, Xid
from broker_core.client.machine import Confirmation, XASessionMachine
from tests.client.broker import INSTANT, Broker, Frame

XID = Xid.of(7, "order 1", b"\x01")
TEXT = "7.6f726465722031.01"
OTHER = Xid(7, b"other")


class XABroker(Broker):
    """With one XA session; `branches` are what it has prepared, as `recover` tells."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**({"reconnect_enabled": True} | settings))
        self.xa = self.client.open_xa_session()
        self.xa.owner = "xa session"

    def begun(self) -> XASessionMachine:
        self.xa.tpc_begin(XID)
        self.confirms()
        return self.xa

    def sent(self) -> XASessionMachine:
        self.begun()
        self.producer(self.xa).send(TextMessage("x"), INSTANT)
        return self.xa

    def prepared(self) -> XASessionMachine:
        self.sent().tpc_prepare()
        self.confirms()
        return self.xa

    def in_doubt(self, operation: str) -> XASessionMachine:
        """The connection is lost before it is answered, and there again."""
        confirmation = getattr(self.xa, operation)()
        self.loses_the_connection()
        assert error_of(confirmation).error_code == "CONNECTION_LOST"
        self.lets_in()
        return self.xa

    def lists(self, *branches: str) -> list[Frame]:
        """Answer what was asked for branches: with these, and with an end. The frames that were heard before."""
        frames = self.hears()
        (asked,) = [frame for frame in frames if frame.headers.get("operation") == "recover"]
        self.answers(asked, *branches)
        if branches:
            (asked,) = self.hears()
            assert asked.headers["after"] == branches[-1].split()[0]
            self.answers(asked)
        return frames

    def answers(self, asked: Frame, *branches: str) -> None:
        body = "".join(f"{branch}\n" for branch in branches).encode()
        head = f"MESSAGE\nsubscription:{self.client.recovery.subscription.decode()}\nmessage-id:1\ncorrelation-id:{asked.headers['correlation-id']}\n"
        self.says(f"{head}destination:/temp-queue/n-1-7.xa\ncontent-length:{len(body)}\n\n".encode() + body + b"\0")


def error_of(confirmation: Confirmation | None) -> JMSException:
    assert confirmation is not None and confirmation.is_settled
    with pytest.raises(JMSException) as raised:
        confirmation.check()
    return raised.value


def is_done(confirmation: Confirmation | None) -> bool:
    assert confirmation is not None
    return confirmation.is_settled and confirmation.error is None


def headers_of(*frames: Frame) -> list[dict[str, str]]:
    return [{name: value for name, value in frame.headers.items() if name != "receipt"} for frame in frames]
