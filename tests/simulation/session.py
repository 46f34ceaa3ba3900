"""A scripted STOMP client: one connection, frames by the role-neutral codec, every step told to the auditor."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker_core.engine.wishes import PRESERVE
from broker_core.server.listening import Node
from broker_core.stomp.frames import Parser, serialise
from broker_core.stomp.limits import Limits
from broker_core.stomp.mapping import DELAYS, DUPLICATE_IDS
from broker_core.stomp.sections import SERVER_COMMANDS

from .audit import CLOSED, Auditor, Known, Subscription
from .interests import Interest
from .looks import Look, Looks
from .transactions import ACK, NACK, REJECT, Transaction
from .wire import Wire

TOPIC = "topic/t"
DURABLES = {"t1": 0, "t2": 0, "t3": 5}
"""Shared durable subscriptions of the topic, and the priority below which one does not take a message."""


def owed(address: str, priority: int) -> tuple[str, ...]:
    """The subscriptions that a message is for."""
    return tuple(name for name, least in DURABLES.items() if priority >= least) if address == TOPIC else ()


GROUPED = "queue/c"
"""Most of what is sent there belongs to message groups, which the sessions share."""
COLOURS = ("red", "green", "blue", "blue")
SELECTORS: dict[str, Callable[[Known], bool]] = {
    "": lambda _message: True,
    "colour = 'red'": lambda message: message.colour == "red",
    "NOT colour = 'red'": lambda message: message.colour != "red",
    "JMSPriority > 8 OR colour IN ('green', 'red')": lambda message: message.priority > 8 or message.colour != "blue",
}
"""What consumers of queues want, and what that means."""
LEVELS = ("best-effort", "express", "reliable-np", "reliable", "assured")


class Author:
    """Whoever sends messages, whatever he speaks."""

    name: str
    client_id: str
    transaction: Transaction | None
    _auditor: Auditor
    _random: Random
    _now: Callable[[], int]
    _orders: int

    def _author(
        self, address: str, level: int, priority: int, expires: int, size: int, mark: str, *, replies: str, delay: int, kept: bool,
    ) -> Known:  # fmt: skip
        """The next message, of which the auditor knows."""
        uid = f"{mark}{self.name}.{self._orders}"
        body = (uid + " ").encode().ljust(size, b"x")
        message = Known(uid, body, address, self.name, self._orders, level, priority, expires, within=self.transaction, owed=owed(address, priority))
        message.replies, message.client_id = replies, self.client_id
        message.delay, message.due = delay, self._now() + delay if delay else 0
        message.colour = self._random.choice(COLOURS)
        message.unkept = not kept
        message.group = f"g{self._orders % 5}" if address == GROUPED and self._orders % 3 else ""
        self._orders += 1
        self._auditor.sends(message)
        return message


class Session(Author):
    """`log` takes every event, for the trace."""

    def __init__(
        self, name: str, node: Node, auditor: Auditor, random: Random, now: Callable[[], int], log: Callable[[object], None], looks: Looks,
        account: str = "guest", client_id: str = "", said: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        """`said`: an address to one that stands for it, or to itself."""
        self.name, self._auditor, self._random, self._now, self._log = name, auditor, random, now, log
        self._looks, self.client_id, self._said = looks, client_id, said
        self.version = random.choice(("1.1", "1.2", "1.2"))
        self.connected = self.closed = False
        self._is_lost = False
        """The broker has closed the connection."""
        self.is_over = False
        """Its client says no more."""
        self.session = self.told = ""
        """What CONNECTED named it, and what the ERROR said that ended it."""
        self.inbox: list[tuple[Subscription, Known, dict[str, str]]] = []
        """Messages that nobody has decided on."""
        self.subscriptions: dict[str, Subscription] = {}
        self.looks: dict[str, Look] = {}
        """Browsers, by subscription."""
        self.receipts: dict[str, Callable[[], None]] = {}
        self.transaction: Transaction | None = None
        """Begun and not ended."""
        self.preparing: tuple[Transaction, Callable[[Transaction], None]] | None = None
        """Its PREPARE is not answered."""
        self._transactions = 0
        self._ending: dict[str, Transaction] = {}
        """Transactions whose COMMIT is not answered, by its receipt."""
        self.over: tuple[Subscription, dict[str, str]] | None = None
        """The last delivery that was acknowledged in no transaction."""
        self.unconfirmed_sends: list[str] = []
        """Sends without a receipt of their own since the last DISCONNECT: that one's receipt covers them."""
        self._orders = self._receipt = 0
        self.replies = ""
        """Its temporary destination, by the name it has here; as long as somebody may wait for what comes there."""
        self._parser = Parser(Limits(), SERVER_COMMANDS)
        self.wire = Wire(node, self, random)
        named = [("client-id", client_id)] if client_id else []
        self._say("CONNECT", [("accept-version", self.version), ("host", "/"), ("login", account), ("passcode", account), *named])

    def _say(self, command: str, headers: list[tuple[str, str]], body: bytes = b"") -> None:
        self.wire.say(serialise(command, headers, body, self.version))

    def full(self, address: str) -> str:
        """What others call it: of a temporary destination the session is in the name."""
        kind, _, name = address.partition("/")
        return f"{kind}/{self.session}.{name}" if kind.startswith("temp-") else address

    def _replies_are_over(self) -> None:
        if self.replies:
            self._auditor.is_over(self.full(self.replies))
            self.replies = ""

    def _asks(self, then: Callable[[], None]) -> tuple[str, str]:
        self._receipt += 1
        self.receipts[str(self._receipt)] = then
        return "receipt", str(self._receipt)

    # -- what the client says -------------------------------------------------------------------------------------------------------------
    def send(
        self, address: str, level: int, priority: int, expires: int, size: int, mark: str, receipt: bool, reply_to: str = "", delay: int = 0,
        *, named: bool = False, kept: bool = True,
    ) -> Known:
        message = self._author(address, level, priority, expires, size, mark, replies=self.full(reply_to), delay=delay, kept=kept)
        uid = message.uid
        headers = self._headers_of(message, named=named)
        if reply_to:
            headers.append(("reply-to", f"/{reply_to}"))
        if self.transaction is not None:
            self.transaction.sent.append(message)
            headers.append(("transaction", self._name_of_transaction()))
            if receipt:
                headers.append(self._asks(lambda: None))
        elif receipt:
            headers.append(self._asks(lambda: self._auditor.confirmed(uid)))
        elif message.stored or not self._auditor.drops:
            self.unconfirmed_sends.append(uid)
        self._log(("send", uid, address))
        self._say("SEND", headers, message.body)
        return message

    def _headers_of(self, message: Known, *, named: bool) -> list[tuple[str, str]]:
        headers = [("destination", f"/{self._said(message.address)}"), ("reliability", LEVELS[message.level]), ("priority", str(message.priority))]
        headers += [("content-length", str(len(message.body))), ("colour", message.colour)]
        if message.group:
            headers.append(("JMSXGroupID", message.group))
            headers += [("JMSXGroupSeq", "-1")] if message.group == CLOSED and message.order % 2 else []
        if message.unkept:
            headers.append((PRESERVE, "false"))
        if message.expires:
            headers.append(("expires", str(message.expires)))
        if message.delay:
            headers.append((self._random.choice(DELAYS), str(message.delay)))
        if named:
            headers.append((self._random.choice(DUPLICATE_IDS), message.uid))
        return headers

    def again(self, message: Known) -> None:
        """Send it once more, under its name; in a transaction nobody counts on it."""
        headers = self._headers_of(message, named=True)
        if self.transaction is not None:
            headers.append(("transaction", self._name_of_transaction()))
        else:
            headers.append(self._asks(lambda: self._auditor.confirmed(message.uid)))
        message.repeated = True
        self._log(("again", message.uid))
        self._say("SEND", headers, message.body)

    def subscribe(
        self,
        address: str,
        mode: str,
        prefetch: int,
        durable: str = "",
        then: Callable[[], None] | None = None,
        *,
        exclusive: bool = False,
        priority: int = 0,
        selector: str = "",
    ) -> None:
        self._receipt += 1
        name = str(self._receipt)
        credit = prefetch if mode != "auto" else 1 << 30
        self.subscriptions[name] = Subscription(f"{self.name}/{name}", self.full(address), mode, credit, durable, selector, SELECTORS[selector])
        headers = [("id", name), ("destination", f"/{self._said(address)}"), ("ack", mode), ("prefetch-count", str(prefetch))]
        if self._receipt % 5 == 0:
            headers.append(("consumer-flow-threshold", "50"))
        if durable:
            headers += [("durable-subscription-name", durable), ("shared", "true")]
        if durable and DURABLES[durable]:
            headers.append(("selector", f"JMSPriority >= {DURABLES[durable]}"))
        if selector:
            headers.append(("selector", selector))
        if exclusive:
            headers.append(("exclusive", "true"))
        if priority:
            headers.append(("consumer-priority", str(priority)))
        if then is not None:
            headers.append(self._asks(then))
        self._say("SUBSCRIBE", headers)

    def join(self, interest: Interest, durable: str, mode: str, prefetch: int, then: Callable[[], None]) -> None:
        """A subscription of an ordinary topic: with a name it is this client's durable one."""
        self._receipt += 1
        name, wanted = str(self._receipt), interest.wanted
        credit = prefetch if mode != "auto" else 1 << 30
        self.subscriptions[name] = Subscription(f"{self.name}/{name}", wanted.address, mode, credit, interest=interest)
        headers = [("id", name), ("destination", f"/{wanted.address}"), ("ack", mode), ("prefetch-count", str(prefetch)), self._asks(then)]
        headers += [("durable-subscription-name", durable)] if durable else []
        headers += [("selector", wanted.selector)] if wanted.selector else []
        headers += [("no-local", "true")] if wanted.no_local else []
        self._log(("join", self.name, name, interest.place, wanted.address, wanted.selector, wanted.no_local))
        self._say("SUBSCRIBE", headers)

    def look(self, address: str) -> None:
        """Browse it."""
        self._receipt += 1
        name = str(self._receipt)
        self.looks[name] = self._looks.begin(f"{self.name}/{name}", address, self._now())
        mode = self._random.choice(("auto", "client"))
        self._log(("look", name, address))
        self._say("SUBSCRIBE", [("id", name), ("destination", f"/{self._said(address)}"), ("ack", mode), ("browser", "true")])

    def look_away(self, name: str) -> None:
        """Copies may still be on their way."""
        self._say("UNSUBSCRIBE", [("id", name), self._asks(lambda: self.looks.pop(name) and None)])

    # -- transactions ---------------------------------------------------------------------------------------------------------------------
    def _name_of_transaction(self) -> str:
        return f"t:{self._transactions}"

    def begin(self, *, branch: bool = False) -> None:
        """`branch`: of a distributed transaction."""
        self._transactions += 1
        self.transaction = Transaction(f"7.{self.name.encode().hex()}.{self._transactions:04x}" if branch else "")
        self.transaction.is_over = self._is_lost  # and the client does not know yet
        self._auditor.transactions.begins(self.transaction, self._now())
        self._say("BEGIN", [("transaction", self._name_of_transaction()), *([("xid", self.transaction.xid)] if branch else [])])

    def prepare(self, adopt: Callable[[Transaction], None]) -> None:
        """The first phase. `adopt`: who says what becomes of it when the answer has come, or never will."""
        transaction, self.transaction = self.transaction, None
        assert transaction is not None
        self._log(("PREPARE", self.name, [message.uid for message in transaction.sent]))
        if not transaction.is_over:  # the broker has closed the connection, and the client does not know yet
            self.preparing = transaction, adopt
        self._say("COMMIT", [("xid", transaction.xid), ("phase", "prepare"), self._asks(lambda: self._is_prepared(transaction))])

    def _is_prepared(self, transaction: Transaction) -> None:
        if self.preparing is not None and self.preparing[0] is transaction:
            adopt, self.preparing = self.preparing[1], None
            self._auditor.transactions.prepared(transaction)
            adopt(transaction)

    def _leaves_in_doubt(self) -> None:
        if self.preparing is not None:
            (transaction, adopt), self.preparing = self.preparing, None
            self._auditor.transactions.dooms(transaction)
            adopt(transaction)

    def end_branch(self, transaction: Transaction, then: Callable[[], None], *, forget: bool) -> None:
        """What its manager has decided, or that it has noted what was decided by hand."""
        self._log((transaction.ended, self.name, transaction.xid, forget))
        xid = [("xid", transaction.xid), self._asks(then)]
        if forget:
            self._say("SEND", [("destination", "/queue/mq.sys.xa"), ("operation", "forget"), *xid])
        else:
            self._say(transaction.ended, [*xid, *([("phase", "two")] if transaction.ended == "COMMIT" else [])])

    def end(self, *, commit: bool) -> None:
        transaction, self.transaction = self.transaction, None
        assert transaction is not None
        how = "COMMIT" if commit else "ABORT"
        self._log((how, self.name, [message.uid for message in transaction.sent]))
        self._auditor.transactions.ends(transaction, how)
        receipt = self._asks(lambda: self._auditor.transactions.ended(transaction, self._now()))
        self._ending[receipt[1]] = transaction
        named = [("transaction", self._name_of_transaction())]
        if transaction.xid:
            named = [("xid", transaction.xid), *([("phase", "one")] if commit else [])]
        self._say(how, [*named, receipt])

    def spoil(self) -> None:
        """Acknowledge within the transaction what was acknowledged before, if there is anything: it cannot be committed any more."""
        if self.transaction is not None and self.over is not None and self.over[0].open:
            self.transaction.hopeless = "it acknowledged what was not outstanding"
            self._say("ACK", [*self._name_of_delivery(self.over[1]), ("transaction", self._name_of_transaction())])

    def unsubscribe(self, name: str) -> None:
        """What was outstanding is the broker's again as soon as it reads this."""
        subscription = self.subscriptions[name]
        subscription.open = False
        self.inbox = [entry for entry in self.inbox if entry[0] is not subscription]
        self._say("UNSUBSCRIBE", [("id", name), self._asks(lambda: self.subscriptions.pop(name) and None)])

    def end_subscription(self, durable: str, then: Callable[[], None]) -> None:
        """UNSUBSCRIBE for good."""
        self._say("UNSUBSCRIBE", [("id", "none"), ("durable-subscription-name", durable), self._asks(then)])

    def covered(self, at: Subscription, message: Known) -> list[Known]:
        """By an ACK or NACK of this message; with ack:client everything before it as well."""
        if self.version != "1.2":  # of two dead copies with one message-id the first is meant
            message = next(each for each in at.outstanding.values() if each.body == message.body)
        uids = list(at.outstanding)
        return [at.outstanding[uid] for uid in uids[: uids.index(message.uid) + 1]] if at.mode == "client" else [message]

    def settle(
        self, at: Subscription, message: Known, headers: dict[str, str], *, accepted: bool, receipt: bool, final: bool = False,
    ) -> None:  # fmt: skip
        """ACK or NACK, and what is refused need not come again. `final`: what is acknowledged is so at once, outside of the transaction; what is
        refused never comes again."""
        settled, auditor = self.covered(at, message), self._auditor
        self.inbox = [entry for entry in self.inbox if entry[0] is not at or entry[1] not in settled]
        within = self.transaction if not (accepted and final) and (accepted or self._random.random() < 0.7) else None
        named = self._name_of_delivery(headers)
        if within is not None:
            auditor.transactions.settles(within, at, settled, ACK if accepted else REJECT if final else NACK)
        else:
            (auditor.acks if accepted else auditor.rejects if final else auditor.nacks)(at, settled)
            self.over = (at, headers) if accepted else self.over
        if within is not None:
            named.append(("transaction", self._name_of_transaction()))
        elif receipt and final and not accepted:
            named.append(self._asks(lambda: auditor.rejection_confirmed(at, settled)))
        elif receipt:
            named.append(self._asks(lambda: auditor.settlement_confirmed(at, settled, accepted=accepted)))
        if final and not accepted:
            named.append(("requeue", "false"))
        self._log(("ack" if accepted else "reject" if final else "nack", [m.uid for m in settled]))
        self._say("ACK" if accepted else "NACK", named)

    def _name_of_delivery(self, headers: dict[str, str]) -> list[tuple[str, str]]:
        if self.version == "1.2":
            return [("id", headers["ack"])]
        return [("message-id", headers["message-id"]), ("subscription", headers["subscription"])]

    def disconnect(self) -> None:
        """In good order; its receipt covers every send before it."""
        uids, auditor = self.unconfirmed_sends, self._auditor
        self.inbox = []
        self.is_closing()
        self._say("DISCONNECT", [self._asks(lambda: [auditor.confirmed(uid) for uid in uids] and None)])

    def cut(self, *, within_a_frame: bool) -> None:
        if within_a_frame:
            self.wire.say(b"SEND\ndestination:/queue/a\ncontent-length:99\n\nhalf")
        self._end()
        self.wire.cut()

    # -- what the client hears ------------------------------------------------------------------------------------------------------------
    def hears(self, octets: bytes) -> None:
        if self.closed:
            return
        for section, _, body in self._parser.events(octets):
            self._frame(section.command, section.headers, body or b"")

    def _frame(self, command: str, headers: dict[str, str], body: bytes) -> None:
        if command == "MESSAGE":
            self._message(headers, body)
        elif command == "RECEIPT":
            self._log(("receipt", self.name, headers["receipt-id"]))
            self.receipts.pop(headers["receipt-id"])()
        elif command == "CONNECTED":
            self.connected = True
            self.session = headers["session"]
            self._parser.version = self.version
        else:
            self.told = headers.get("message", "")
            if headers.get("receipt-id") in self._ending:
                self._auditor.transactions.refused(self._ending[headers["receipt-id"]], self.told)
            self._log(("error", self.name, headers.get("message"), body))

    def _message(self, headers: dict[str, str], body: bytes) -> None:
        if headers["subscription"] in self.looks:
            self._copy(self.looks[headers["subscription"]], headers, body)
            return
        subscription = self.subscriptions[headers["subscription"]]
        uid = body.partition(b" ")[0].decode()
        redelivered = headers.get("redelivered") == "true"
        self._log(("message", subscription.name, uid, redelivered))
        if not subscription.open:  # unsubscribed, and this was on its way: the broker took it back and will flag it
            self._missed(subscription, uid, headers)
            return
        message = self._auditor.delivered(subscription, uid, body, redelivered, headers, self._now(), int(headers.get("JMSXDeliveryCount", "1")) - 1)
        if not subscription.auto:
            self.inbox.append((subscription, message, headers))

    def _copy(self, look: Look, headers: dict[str, str], body: bytes) -> None:
        if headers.get("browser") == "end":
            self._log(("looked", look.name, len(look.shown)))
            self._looks.ends(look, self._now())
            return
        uid = body.partition(b" ")[0].decode()
        self._log(("copy", look.name, uid))
        self._looks.shows(look, uid, body, headers, self._now())
        if "ack" in headers and self._random.random() < 0.1:
            self._say("ACK", [("id", headers["ack"])])

    def _missed(self, subscription: Subscription, uid: str, headers: dict[str, str]) -> None:
        self._auditor.missed(subscription, uid, headers)

    def missed(self, octets: bytes) -> None:
        """Written by the broker and never received."""
        for section, _, body in self._parser.events(octets):
            if section.command == "MESSAGE" and body is not None:
                subscription = self.subscriptions.get(section.headers["subscription"])
                if subscription is not None:
                    self._auditor.missed(subscription, body.partition(b" ")[0].decode(), section.headers)

    def missed_behind_a_body(self) -> None:
        for subscription in self.subscriptions.values():
            if subscription.auto:
                self._auditor.excuse("it may have waited behind a large body, without acknowledgements", address=subscription.address)

    def is_closing(self) -> None:
        self._is_lost = True
        if self.transaction is not None:
            self._auditor.transactions.abandons(self.transaction)
        self._leaves_in_doubt()
        self._replies_are_over()
        for subscription in self.subscriptions.values():
            subscription.open = False

    def is_cut(self) -> None:
        self._end()

    def _end(self) -> None:
        self.closed = True
        self.inbox = []
        self.is_closing()
