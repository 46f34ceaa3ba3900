"""A seeded source of octets that no STOMP client should send: broken, oversized, half, endless, or valid but in pieces."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.support.clients import encode

COMMANDS = [
    "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT", "CONNECT", "STOMP", "MESSAGE", "RECEIPT",
    "ERROR", "CONNECTED", "send", "", " ", "GET / HTTP/1.1", "\x00", "\u0130", "SEND\x00", "A" * 5000,
]  # fmt: skip
NAMES = [
    "destination", "id", "ack", "receipt", "content-length", "transaction", "selector", "prefetch-count", "priority", "expires",
    "persistent", "reliability", "message-id", "subscription", "delay", "correlation-id", "reply-to", "type", "JMSXGroupID", "", "x",
    "\\", "na\\cme", "redelivered", "durable-subscription-name", "activemq.subscriptionName", "durable", "shared", "subscription-name", "no-local",
    "browser", "exclusive", "client-id", "consumer-priority",
]  # fmt: skip
VALUES = [
    "", "/queue/{queue}", "/topic/x", "/temp-queue/x", "nonsense", "/queue/", "/queue/" + "n" * 300, "0", "-1", "99999999999999999999",
    "1e9", "NaN", "true", "client", "client-individual", "auto", "\\", "\\t", "\\x", "\\n", "a:b", "\x00", "\ud7ff", "12", "\u00e4" * 200,
    "' OR 1=1 --", "%s%n", "9" * 400, "t", "x > 1 AND y LIKE 'a%'", "(" * 300, "NOT " * 500 + "TRUE", "a = " + " + ".join("1" * 300), "/topic/a.>",
]  # fmt: skip
PIECE_OCTETS_MAX = 1 << 16
PAUSE = b""
"""A piece that is none: what came before is worked off before the next one leaves."""


class BadInput:
    """Scripts, each a list of pieces to write one after the other on one logged-in connection. The same seed gives the same scripts."""

    def __init__(self, seed: int, queue: str) -> None:
        self.chance = random.Random(seed)
        self.queue = queue.removeprefix("/queue/")
        self.kinds: list[Callable[[], list[bytes]]] = [
            self.random_frame, self.random_frame, self.random_frame, self.byte_by_byte, self.truncated, self.flipped, self.noise,
            self.wrong_length, self.no_nul, self.many_headers, self.endless_header, self.oversized, self.invalid_utf8, self.many_frames,
            self.repeated_headers, self.transaction, self.transaction, self.topic, self.topic, self.selector, self.late_end,
        ]  # fmt: skip

    def scripts(self, count: int) -> Iterator[tuple[str, list[bytes]]]:
        for number in range(count):
            kind = self.kinds[number % len(self.kinds)]
            yield kind.__name__, kind()

    # -- valid or nearly so ---------------------------------------------------------------------------------------------------------
    def _frame(self) -> bytes:
        headers = [(self._pick(NAMES), self._pick(VALUES).replace("{queue}", self.queue)) for _ in range(self.chance.randrange(8))]
        if self.chance.random() < 0.5:
            headers.insert(0, ("destination", f"/queue/{self.queue}"))
        if self.chance.random() < 0.7:
            return encode(self._pick(COMMANDS), headers, self._body())
        lines = [self._pick(COMMANDS), *(f"{name}:{value}" for name, value in headers)]  # not escaped
        return self._pick(["\n", "\r\n", "\r", "\n\n"]).join(lines).encode(errors="surrogatepass") + b"\n\n" + self._body() + b"\0"

    def _valid(self) -> bytes:
        return encode("SEND", {"destination": f"/queue/{self.queue}", "receipt": "r", "x": "y" * self.chance.randrange(200)}, self._body())

    def _body(self) -> bytes:
        return self.chance.randbytes(self.chance.choice([0, 1, 10, 1000]))

    def _pick(self, words: list[str]) -> str:
        return self.chance.choice(words)

    def random_frame(self) -> list[bytes]:
        return [self._frame()]

    def many_frames(self) -> list[bytes]:
        return [b"".join(self._frame() for _ in range(50))]

    def byte_by_byte(self) -> list[bytes]:
        frame = self._valid()[:400]
        return [frame[at : at + 1] for at in range(len(frame))]

    def truncated(self) -> list[bytes]:
        frame = self._valid()
        return [frame[: self.chance.randrange(1, len(frame))]]

    def flipped(self) -> list[bytes]:
        frame = bytearray(self._valid())
        for _ in range(self.chance.randrange(1, 6)):
            frame[self.chance.randrange(len(frame))] = self.chance.randrange(256)
        return [bytes(frame)]

    def transaction(self) -> list[bytes]:
        """Sends within one that is ended twice, never or in the wrong name."""
        name = self._pick(["t", "t", "\u00e4", "t" * 300])
        frames = [encode("BEGIN", {"transaction": name})] * self.chance.choice([0, 1, 1, 1, 2])
        for _ in range(self.chance.randrange(20)):
            destination = self._pick([f"/queue/{self.queue}", f"/topic/{self.queue}", "nonsense"] if self.chance.random() < 0.1 else [f"/queue/{self.queue}"])
            frames.append(encode("SEND", {"destination": destination, "transaction": self._pick([name, name, name, "other"])}, self._body()))
        frames += [encode(self._pick(["COMMIT", "ABORT"]), {"transaction": name}) for _ in range(self.chance.choice([0, 1, 1, 2]))]
        return [b"".join(frames)]

    def topic(self) -> list[bytes]:
        """Subscriptions of every kind, and messages for them."""
        topic = f"/topic/{self.queue}"
        kinds = [
            {}, {"durable-subscription-name": self._pick(["d", "", "d" * 300])}, {"durable-subscription-name": "s", "shared": "true"},
            {"subscription-name": "v", "shared": "true"}, {"durable": "true"}, {"no-local": "true"}, {"shared": self._pick(["true", "perhaps"])},
        ]  # fmt: skip
        frames = []
        for number in range(self.chance.randrange(1, 6)):
            how = self.chance.choice(kinds) | ({"selector": self._selector()} if self.chance.random() < 0.3 else {})
            frames.append(encode("SUBSCRIBE", {"id": str(number), "destination": topic, "ack": self._pick(["auto", "client"])} | how))
        frames += [encode("SEND", {"destination": topic, "x": "3", "y": "red"}, self._body()) for _ in range(20)]
        frames.append(encode("UNSUBSCRIBE", {"id": "0"} | self.chance.choice(kinds)))
        return [b"".join(frames)]

    def selector(self) -> list[bytes]:
        return [encode("SUBSCRIBE", {"id": "1", "destination": f"/topic/{self.queue}", "selector": self._selector()})]

    def _selector(self) -> str:
        """Nearly right, deep, long, or words of the language in any order."""
        words = ["x", "y", "1", "-1e308", "'a'", "'", "(", ")", "AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "BETWEEN", "IS", "NULL", "=", "<>", "*", "/", ","]
        depth = self.chance.choice([1, 10, 200, 3000])
        return self._pick([
            "x > 1 AND y = 'red'", "(" * depth + "x = 1" + ")" * depth, "NOT " * depth + "x = 1", " OR ".join(["x = 1"] * depth),
            "y LIKE '" + "%a" * depth + "'", "y IN (" + ",".join(["'a'"] * depth) + ")", "-" * depth + "x > 1",
            " ".join(self._pick(words) for _ in range(depth)),
        ])  # fmt: skip

    def late_end(self) -> list[bytes]:
        """A large body whose NUL comes alone."""
        body = self.chance.randbytes(self.chance.choice([262_145, 300_000, 1 << 20, (1 << 20) + 1]))
        frame = encode("SEND", {"destination": f"/queue/{self.queue}", "persistent": self._pick(["true", "false"])}, body)
        cut = len(frame) - self.chance.choice([1, 1, 2, 1000])
        return [frame[:cut], PAUSE, frame[cut:]]

    # -- hostile --------------------------------------------------------------------------------------------------------------------
    def noise(self) -> list[bytes]:
        return [self.chance.randbytes(self.chance.randrange(1, PIECE_OCTETS_MAX))]

    def wrong_length(self) -> list[bytes]:
        length = self.chance.choice(["-1", "0", "3", "5", "1000000", "99999999999999999999999", "abc", "", "1 2", "0x10", "+4", "\u0664"])
        return [f"SEND\ndestination:/queue/{self.queue}\ncontent-length:{length}\n\n".encode() + b"four\0"]

    def no_nul(self) -> list[bytes]:
        return [f"SEND\ndestination:/queue/{self.queue}\n\n".encode(), *[b"x" * PIECE_OCTETS_MAX] * 40]

    def many_headers(self) -> list[bytes]:
        return [f"SEND\ndestination:/queue/{self.queue}\n".encode() + b"".join(b"h%d:v\n" % number for number in range(5000)) + b"\n\0"]

    def endless_header(self) -> list[bytes]:
        return [b"SEND\nx:", *[b"y" * PIECE_OCTETS_MAX] * 200]

    def oversized(self) -> list[bytes]:
        """Announces a body above the limit of 100 MiB and begins to send it."""
        return [f"SEND\ndestination:/queue/{self.queue}\ncontent-length:{200 << 20}\n\n".encode(), *[b"z" * PIECE_OCTETS_MAX] * 200]

    def invalid_utf8(self) -> list[bytes]:
        return [b"SEND\ndestination:/queue/" + self.queue.encode() + b"\n" + self.chance.choice([b"\xff:x", b"x:\xc3\x28", b"x:\xed\xa0\x80"]) + b"\n\nb\0"]

    def repeated_headers(self) -> list[bytes]:
        return [f"SEND\ndestination:/queue/{self.queue}\n".encode() + b"x:1\n" * 900 + b"\nbody\0"]
