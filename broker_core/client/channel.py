"""The socket of a connection, and the threads that share it: any may write, one at a time reads.

As a rule the I/O thread reads. A caller that waits for something reads itself meanwhile, so that an answer need not be handed from thread to thread: it
*leads*. All methods are called with the driver's lock held, which the two `select`s give up while they wait.
"""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress

from .clock import milliseconds
from .exceptions import CONNECTION_LOST, JMSException
from .machine import NEVER, ConnectionMachine
from .sockets import Socket

WRITE_OCTETS = 1 << 16
"""What is written by the caller itself, without leaving it to the I/O thread."""
UNSENT_OCTETS_MAX = 1 << 20
"""Beyond it callers wait until the socket takes more."""
WAIT_SECONDS_MAX = 86_400.0
"""At a time. Operating systems cannot wait as long as applications may want to."""


class Bell:
    """Ends a selector's wait from another thread."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._rung = False
        selector.register(self._reader, selectors.EVENT_READ)

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._writer.send(b"\0")

    def silence(self) -> None:
        if self._rung:
            self._rung = False
            self._reader.recv(1)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class Channel:
    def __init__(self, machine: ConnectionMachine, lock: threading.Lock) -> None:
        self._machine = machine
        self._lock = lock
        self._socket: Socket | None = None
        self._unsent = memoryview(b"")
        self._io = selectors.DefaultSelector()
        self._lead = selectors.DefaultSelector()
        """A selector each for the I/O thread and for the caller that leads."""
        self._io_bell, self._lead_bell = Bell(self._io), Bell(self._lead)
        self._watched = 0
        """What of the socket the I/O thread waits for."""
        self._awake_at = NEVER
        """When the I/O thread looks by itself."""
        self._led_for: threading.Condition | None = None
        """What the caller that leads waits for."""
        self._is_paused = False
        self._is_over = False

    # -- the socket ---------------------------------------------------------------------------------------------------------------------
    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def open(self, opened: Socket) -> None:
        self._socket = opened
        self._lead.register(opened, selectors.EVENT_READ)

    def close(self) -> None:
        """The socket."""
        if self._socket is not None:
            if self._watched:
                self._io.unregister(self._socket)
                self._watched = 0
            self._lead.unregister(self._socket)
            self._socket.close()
            self._socket = None
        self._unsent = memoryview(b"")

    def end(self) -> None:
        """For good: the I/O thread is about to end."""
        self.close()
        self._is_over = True
        self._io.close()
        self._io_bell.close()
        if self._led_for is None:
            self._end_leading()
        else:
            self._lead_bell.ring()

    def _end_leading(self) -> None:
        """Not while a caller waits with them, or has been woken and has not got the lock yet."""
        self._lead.close()
        self._lead_bell.close()

    # -- writing ------------------------------------------------------------------------------------------------------------------------
    @property
    def has_room(self) -> bool:
        return len(self._unsent) + self._machine.out_octets <= UNSENT_OCTETS_MAX

    def flush(self) -> None:
        """Write what the machine has to say; what the socket does not take the I/O thread writes later."""
        while self._socket is not None:
            if not self._unsent:
                if not self._machine.out_octets:
                    return
                self._unsent = memoryview(self._machine.data_to_send())
            try:
                taken = self._socket.send(self._unsent)
            except OSError as error:
                self._hear_last()
                self._lost(error)
                return
            self._machine.wrote(milliseconds())
            self._unsent = self._unsent[taken:]
            if self._unsent:
                self.wake()
                return

    def flush_soon(self) -> None:
        """The same for what nobody waits for."""
        machine = self._machine
        if machine.out_octets > WRITE_OCTETS:
            self.flush()
        elif machine.out_octets or machine.ack_at < self._awake_at or (self._is_paused and not machine.wants_pause):
            self.wake()

    def wake(self) -> None:
        """Have the I/O thread look at once."""
        if not self._is_over:
            self._io_bell.ring()

    def notify(self, condition: threading.Condition) -> None:
        """Wake who waits for it."""
        condition.notify_all()
        if self._led_for is condition:
            self._lead_bell.ring()

    # -- reading ------------------------------------------------------------------------------------------------------------------------
    def select(self, awake_at: int) -> None:
        """For the I/O thread: wait until it is that late, there is something to be read or written, or it is woken; read."""
        self._awake_at = awake_at
        self._is_paused = self._machine.wants_pause
        self._watch()
        more = self._may_read and self._socket is not None and self._socket.has_more
        timeout = 0.0 if more else None if awake_at >= NEVER else min(max(0, awake_at - milliseconds()) / 1000, WAIT_SECONDS_MAX)
        self._lock.release()
        try:
            ready = self._io.select(timeout)
        finally:
            self._lock.acquire()
        self._io_bell.silence()
        # A caller that has begun to lead meanwhile is told of the same octets, and must be the one to read them.
        if self._may_read and (more or self._is_readable(ready)):
            self._read()

    def lead(self, condition: threading.Condition, timeout: float | None) -> bool:
        """For a caller: wait until something has been read, in place of the I/O thread, or `condition` is notified. False: somebody else does
        already, or nobody may."""
        opened = self._socket
        if opened is None or self._led_for is not None or self._is_paused:
            return False
        self._led_for = condition
        self._watch()
        try:
            more = opened.has_more
            self._lock.release()
            try:
                ready = self._lead.select(0.0 if more else timeout)
            finally:
                self._lock.acquire()
            self._lead_bell.silence()
            if self._socket is opened and (more or self._is_readable(ready)):
                self._read()
        finally:
            self._led_for = None
            self._watch()
            if self._is_over:
                self._end_leading()
        return True

    def _is_readable(self, ready: list[tuple[selectors.SelectorKey, int]]) -> bool:
        return any(key.fileobj is self._socket and events & selectors.EVENT_READ for key, events in ready)

    @property
    def _may_read(self) -> bool:
        return self._led_for is None and not self._is_paused

    def _watch(self) -> None:
        """Tell the I/O thread's selector what to wait for, also while it waits."""
        if self._socket is None:
            return
        wanted = (selectors.EVENT_READ if self._may_read else 0) | (selectors.EVENT_WRITE if self._unsent else 0)
        if wanted == self._watched:
            return
        if not self._watched:
            self._io.register(self._socket, wanted)
        elif wanted:
            self._io.modify(self._socket, wanted)
        else:
            self._io.unregister(self._socket)
        self._watched = wanted

    def _read(self) -> None:
        """All that has come, up to a bound."""
        if self._socket is None:
            return
        try:
            data = self._socket.receive()
            while self._socket.has_more and data is not None and len(data) < UNSENT_OCTETS_MAX:
                data += self._socket.receive() or b""
        except OSError as error:
            self._lost(error)
            return
        if data:
            self._machine.receive_data(data, milliseconds())
        elif data is not None:
            self._machine.lost(JMSException("the broker closed the connection", CONNECTION_LOST), milliseconds())

    def _hear_last(self) -> None:
        """A broker that has refused something says so, and closes, however much is on its way to it: what it said must not be lost for that."""
        machine, opened = self._machine, self._socket
        assert opened is not None
        with suppress(OSError):
            while (data := opened.receive()) and machine.is_open:
                machine.receive_data(data, milliseconds())
                while machine.has_more:
                    machine.proceed(milliseconds())

    def _lost(self, error: OSError) -> None:
        self._machine.lost(JMSException(f"the connection to the broker is lost: {error}", CONNECTION_LOST), milliseconds())
        self.wake()
