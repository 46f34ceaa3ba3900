"""What a client says, seeded: mostly frames that are right, some that are nearly so, some put together at random."""

from __future__ import annotations

import random

from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS

VALUES = (
    b"a", b"/queue/a", b"/topic/t", b"/temp-queue/r", b"0", b"1", b"1.1", b"1.3", b"9.9", b"client", b"client-individual", b"true", b"false",
    b"ID\\cnode1-1", b"x\\", b"\xff", b"", b"-1", b"\\c\\n", b"t1", b"d1", b"a = ", b"weight > 1", b"/topic/t.>", b"1000",
)  # fmt: skip
NAMES = (
    b"destination", b"id", b"ack", b"receipt", b"content-length", b"persistent", b"priority", b"expires", b"message-id", b"subscription",
    b"transaction", b"heart-beat", b"accept-version", b"selector", b"prefetch-count", b"reliability", b"foo", b"", b"a b", b"\xc3",
    b"durable-subscription-name", b"activemq.subscriptionName", b"durable", b"auto-delete", b"shared", b"subscription-name", b"no-local",
    b"browser", b"exclusive", b"consumer-priority", b"reply-to", b"client-id", b"delay", b"duplicate-id", b"JMSXGroupID",
)  # fmt: skip
SELECTORS = (
    b"weight > 1", b"weight BETWEEN 1 AND 3 AND colour <> 'red'", b"colour IN ('red', 'blue') OR colour IS NULL", b"NOT (colour LIKE 'r%')",
    b"weight * 2 + 1 >= 5", b"TRUE", b"colour = weight", b"JMSPriority > 4", b"colour LIKE '!_%' ESCAPE '!'",
)  # fmt: skip
TOKENS = (
    b"weight", b"colour", b"JMSPriority", b"1", b"-2.5E3", b"'red'", b"'it''s'", b"(", b")", b"(", b")", b"AND", b"OR", b"NOT", b"IN", b"LIKE",
    b"ESCAPE", b"BETWEEN", b"IS", b"NULL", b"=", b"<>", b"<=", b"+", b"-", b"*", b"/", b",", b"TRUE", b"'", b"%", b"\xc3\xa4", b"0x7fL", b"1e400",
)  # fmt: skip
TRANSACTIONS = (b"t1", b"t2")
XIDS = (b"1.aa.", b"2147483647.ABCDEF.01", b"1.aa.", b"1.a")
XA = b"SEND\ndestination:/queue/mq.sys.xa\n%b%b"
BRANCH_FRAMES = (
    b"BEGIN\n%b%b", b"BEGIN\n%b%bflag:join\n", b"BEGIN\n%b%btimeout:9\n", b"COMMIT\n%b%bphase:prepare\n", b"COMMIT\n%b%bphase:one\n",
    b"COMMIT\n%b%bphase:two\n", b"ABORT\n%b%b", XA + b"operation:end\n", XA + b"operation:forget\n",
    XA + b"operation:recover\nreply-to:/temp-queue/r\n",
)  # fmt: skip
MODES = (b"auto", b"client", b"client-individual")


class Talk:
    """One connection's. It knows what it has begun and `hears` what is delivered, so that it gets far; with the probability `oddity` it does not care,
    or says what is put together at random. `large`: octets of a body that is a large one."""

    def __init__(self, chance: random.Random, version: bytes, *, oddity: float = 0.0, large: int = 401, subscriptions_max: int = 3) -> None:
        self.chance = chance
        self.version = version
        self.oddity = oddity
        self.large = large
        self.subscriptions_max = subscriptions_max
        self.client_id = b""
        self._subscribed: list[int] = []
        self._last = 0
        self._deliveries: list[tuple[int, bytes, bytes]] = []
        """(subscription, ack, message-id) of those not acknowledged."""
        self._transactions: list[bytes] = []
        self._frames = (
            [self.send] * 8 + [self.text] * 2 + [self.acknowledge] * 8 + [self.subscribe] * 3 + [self.listen] * 4
            + [self.unsubscribe, self.end_subscription, self.begin, self.begin, self.end, self.end, self.branch, self.beats]
        )  # fmt: skip

    def connect(self, client_id: bytes = b"") -> bytes:
        self.client_id = client_id
        stated = b"client-id:%b\n" % client_id if client_id else b""
        return b"CONNECT\naccept-version:%b\nhost:/\n%b\n\0" % (self.version, stated)

    def hears(self, subscription: int, ack: bytes, message_id: bytes) -> None:
        """Of a delivery; with ack:auto 1.2 gives nothing to acknowledge it by."""
        if subscription in self._subscribed and (ack or self.version != b"1.2"):
            self._deliveries.append((subscription, ack, message_id))

    def frame(self) -> bytes:
        return self.odd() if self._is_odd() else self.chance.choice(self._frames)()

    def _is_odd(self) -> bool:
        return self.chance.random() < self.oddity

    def _maybe(self, *lines: bytes) -> bytes:
        """One of them, or none."""
        return self.chance.choice((b"", b"", *lines))

    def _within(self) -> bytes:
        open_ones = TRANSACTIONS if self._is_odd() else self._transactions
        return self._maybe(*(b"transaction:%b\n" % name for name in open_ones))

    # -- messages -----------------------------------------------------------------------------------------------------------------------
    def send(self) -> bytes:
        chance = self.chance
        body = chance.randbytes(chance.choice((0, 1, 50, self.large, 3 * self.large))).replace(b"\0", chance.choice((b"\0", b"o")))
        receipt = self._maybe(b"receipt:%d\n" % chance.randrange(99))
        headers = self._maybe(b"persistent:true\n", b"weight:%d\n" % chance.randrange(5), b"colour:red\npriority:%d\n" % chance.randrange(10))
        destination = chance.choice((b"/queue/a", b"/topic/t"))
        return b"SEND\ndestination:%b\n%b%b%bcontent-length:%d\n\n%b\0" % (destination, receipt, self._within(), headers, len(body), body)

    def text(self) -> bytes:
        text = b"text " * self.chance.choice((1, 10, 100))
        told = self._maybe(b"reply-to:/temp-queue/r\n", b"expires:%d\n" % self.chance.randrange(1, 2_000_000))
        return b"SEND\ndestination:%b\nfoo:%d\n%b\n%b\0" % (self.chance.choice((b"/queue/a", b"/topic/t")), self.chance.randrange(9), told, text)

    def acknowledge(self) -> bytes:
        chance = self.chance
        if self._is_odd():
            wrong = chance.randrange(1, self._last + 2), b"%d.%d" % (chance.randrange(9), chance.randrange(9)), b"ID\\cnode1-%d" % chance.randrange(9)
            self._deliveries.append(wrong)
        if not self._deliveries:
            return self.beats()
        subscription, ack, message_id = self._deliveries.pop(chance.randrange(len(self._deliveries)))
        if self.version != b"1.2":
            return b"ACK\nsubscription:%d\nmessage-id:%b\n%b\n\0" % (subscription, message_id, self._within())
        return b"%b\nid:%b\n%b%b\n\0" % (chance.choice((b"ACK", b"ACK", b"NACK")), ack, self._maybe(b"receipt:k\n"), self._within())

    # -- subscriptions ------------------------------------------------------------------------------------------------------------------
    def _next(self) -> int:
        self._last += 1
        self._subscribed.append(self._last)
        return self._last

    def subscribe(self) -> bytes:
        """To a queue."""
        if len(self._subscribed) >= self.subscriptions_max:
            return self.beats()
        how = self._maybe(b"exclusive:true\n", b"consumer-priority:5\n", b"browser:true\n", b"prefetch-count:9\n")
        destination = self.chance.choice((b"/queue/a", b"/queue/a", b"/temp-queue/r"))
        return b"SUBSCRIBE\nid:%d\ndestination:%b\nack:%b\n%b\n\0" % (self._next(), destination, self.chance.choice(MODES), how)

    def listen(self) -> bytes:
        """To a topic."""
        if len(self._subscribed) >= self.subscriptions_max:
            return self.beats()
        how = self._maybe(b"durable-subscription-name:s\nshared:true\n", b"subscription-name:v\nshared:true\n")
        if self.client_id or self._is_odd():
            how = self._maybe(how, b"durable-subscription-name:d%d\n" % self._last, b"durable:true\n", b"no-local:true\n")
        selector = b""
        if b"shared" not in how and self.chance.random() < 0.4:
            selector = b"selector:%b\n" % (self.selector() if self._is_odd() else self.chance.choice(SELECTORS))
        return b"SUBSCRIBE\nid:%d\ndestination:/topic/t\nack:%b\n%b%b\n\0" % (self._next(), self.chance.choice(MODES), how, selector)

    def selector(self) -> bytes:
        """Words of the language in any order: hardly ever right."""
        return b" ".join(self.chance.choice(TOKENS) for _ in range(self.chance.randrange(1, 20)))[:150]

    def _leave(self) -> int:
        left = self._subscribed.pop(self.chance.randrange(len(self._subscribed)))
        self._deliveries = [delivery for delivery in self._deliveries if delivery[0] != left]
        return left

    def unsubscribe(self) -> bytes:
        return b"UNSUBSCRIBE\nid:%d\nreceipt:u\n\n\0" % self._leave() if self._subscribed else self.beats()

    def end_subscription(self) -> bytes:
        """A durable one, which often is none: that ends the connection."""
        if not self._subscribed or self.chance.random() < 0.8:
            return self.beats()
        left = self._leave()
        return b"UNSUBSCRIBE\nid:%d\ndurable-subscription-name:d%d\n\n\0" % (left, left - 1)

    # -- transactions and the rest ------------------------------------------------------------------------------------------------------
    def begin(self) -> bytes:
        name = self.chance.choice(TRANSACTIONS)
        if name in self._transactions and not self._is_odd():
            return self.beats()
        self._transactions.append(name)
        return b"BEGIN\ntransaction:%b\n%b\n\0" % (name, self._maybe(b"receipt:b\n"))

    def end(self) -> bytes:
        if not self._transactions:
            return self.beats()
        name = self._transactions.pop()
        return b"%b\ntransaction:%b\n%b\n\0" % (self.chance.choice((b"COMMIT", b"COMMIT", b"ABORT")), name, self._maybe(b"receipt:e\n"))

    def branch(self) -> bytes:
        """Of a distributed transaction: in its order, as far as that is left to chance."""
        chance = self.chance
        xid, receipt = b"xid:%b\n" % chance.choice(XIDS), self._maybe(b"receipt:x\n")
        frame = chance.choice(BRANCH_FRAMES)
        return frame % (xid, receipt) + b"\n\0"

    def beats(self) -> bytes:
        return b"\n" * self.chance.randrange(50)

    def odd(self) -> bytes:
        chance = self.chance
        command = chance.choice(sorted(CLIENT_COMMANDS | SERVER_COMMANDS)).encode()
        lines = [b"%b:%b" % (chance.choice(NAMES), chance.choice((*VALUES, self.selector()))) for _ in range(chance.randrange(10))]
        end = chance.choice((b"\n", b"\n", b"\r\n"))
        return end.join([command, *lines, b"", chance.choice((b"", b"body", b"b\0dy"))]) + b"\0"


def mutated(chance: random.Random, octets: bytes) -> bytes:
    """The stream with a few octets changed, cut out, doubled or put in."""
    stream = bytearray(octets)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        at = chance.randrange(len(stream) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            stream[at : at + 1] = bytes((chance.choice((0, 10, 13, 58, 92, 255, chance.randrange(256))),))
        elif kind == 1:
            del stream[at : at + chance.choice((1, 5, 100))]
        elif kind == 2:
            stream[at:at] = stream[at : at + chance.choice((1, 20, 200))]
        else:
            stream[at:at] = chance.choice((b"\0", b"\n\n", b"\r\n\r\n", b"content-length:99999\n", b"x" * 600, b"SEND\n", b"a:b\n" * 9))
    return bytes(stream)
