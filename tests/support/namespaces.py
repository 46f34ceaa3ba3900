"""Network namespaces: a network of its own between two parts of a test, whose cable can be pulled. Needs Debian's iproute2 and the right to make them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

CLONE_NEWNET = 0x40000000
"""linux/sched.h"""
_NAMED = Path("/run/netns")
_libc = ctypes.CDLL(None, use_errno=True)


class NotAllowed(Exception):
    """This machine makes no namespaces for us; the message says why."""


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets that this thread opens, and processes that it starts, belong to the namespace."""
    with Path("/proc/thread-self/ns/net").open("rb") as before, (_NAMED / namespace).open("rb") as wanted:
        _enter(wanted.fileno())
        try:
            yield
        finally:
            _enter(before.fileno())


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


class Cable:
    """A context manager: two namespaces, each with its loopback, joined by a pair of virtual Ethernet devices. Raises NotAllowed."""

    near, far = "10.247.0.1", "10.247.0.2"
    """The addresses of both ends."""

    def __init__(self) -> None:
        self.broker, self.client = (f"surety-{os.getpid()}-{end}" for end in ("broker", "client"))

    def __enter__(self) -> Self:
        try:
            self._make()
            self._join()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            self.__exit__()
            told = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else "ip is not installed (Debian: iproute2)"
            raise NotAllowed(told) from error
        return self

    def __exit__(self, *_: object) -> None:
        for namespace in (self.broker, self.client):  # a device goes with its namespace
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)

    def _make(self) -> None:
        for namespace in (self.broker, self.client):
            _ip("netns", "add", namespace)
            _ip("-netns", namespace, "link", "set", "lo", "up")

    def _join(self) -> None:
        _ip("-netns", self.broker, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.client)
        for namespace, address in ((self.broker, self.near), (self.client, self.far)):
            _ip("-netns", namespace, "address", "add", f"{address}/30", "dev", "cable")
            _ip("-netns", namespace, "link", "set", "cable", "up")

    def pull(self) -> None:
        """The client's end is out: neither side hears anything more of the other."""
        _ip("-netns", self.client, "link", "set", "cable", "down")

    def plug(self) -> None:
        _ip("-netns", self.client, "link", "set", "cable", "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
