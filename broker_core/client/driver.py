"""The machine over sockets and threads. Each connection has one thread of its own, the I/O thread: it reads, beats, and connects again.

One lock guards the machine. A call that waits for the broker writes at once, and then reads the socket itself or sleeps on its session's condition until
whoever reads has read the answer. A call that does not wait leaves its octets to the I/O thread, or writes when they are many: so a burst of sends is
few writes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .channel import WAIT_SECONDS_MAX, Channel
from .clock import milliseconds
from .exceptions import CONNECTION_LOST, IllegalStateException, JMSException
from .machine import NEVER, Address, Addresses, Attempts, Confirmation, ConnectionMachine, Phase
from .machine.attempts import LOGIN_SECONDS, not_let_in
from .sockets import Socket

log = logging.getLogger("surety.client")

END_SECONDS = 5.0
"""How long close() waits for the I/O thread; one that is stuck in connecting again ends by itself later."""


class Driver:
    """Drives one machine. Everything but `start` and `join` is called with `lock` held."""

    def __init__(
        self,
        machine: ConnectionMachine,
        addresses: Addresses,
        open_socket: Callable[[Address], Socket],
        failed: Callable[[JMSException], None],
    ) -> None:
        self.machine = machine
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        """For what concerns the whole connection: there is one, there is room."""
        self._channel = Channel(machine, self.lock)
        self.flush = self._channel.flush
        self.flush_soon = self._channel.flush_soon
        self.notify = self._channel.notify
        self._addresses = addresses
        self._open_socket = open_socket
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name="surety-client", daemon=True)
        self._blocked = 0
        """Callers that wait for room."""
        self._stopping = False
        self.abandoned: list[Callable[[], object]] = []
        """What is to be done as soon as may be by whoever has the lock. The only thing that is added to without it."""

    def start(self) -> None:
        """Without the lock: connect, and return when a broker has let us in. Raises if none has."""
        self._thread.start()
        with self.lock:
            try:
                while not self.machine.opened.is_settled:
                    self.condition.wait()
            except BaseException:  # a signal's handler has raised: nobody will close what is opened now
                self.stop()
                raise
        self.machine.opened.check()

    def stop(self) -> None:
        """The connection is closed: the I/O thread has nothing to do any more."""
        self._stopping = True
        self._channel.wake()

    def join(self) -> None:
        """Without the lock: until the I/O thread has ended."""
        if threading.current_thread() is not self._thread:
            self._thread.join(END_SECONDS)

    # -- callers ------------------------------------------------------------------------------------------------------------------------
    def ready(self) -> None:
        """Wait until there is a connection. Raises if there will be none."""
        machine = self.machine
        while machine.phase is Phase.WAITING or machine.phase is Phase.CONNECTING:
            self.check_thread("there is no connection at the moment")
            self.condition.wait()
        machine.check()

    def ready_to_send(self) -> None:
        """And until there is room for one more message."""
        if self.machine.phase is not Phase.OPEN:
            self.ready()
        while not self._has_room():
            self.check_thread("as much as may be is on its way to the broker")
            self.flush()
            if not self._has_room():
                self._blocked += 1
                self.sleep(self.condition, None)
                self._blocked -= 1
            self.ready()

    def _has_room(self) -> bool:
        return not self.machine.window.is_full and self._channel.has_room

    def wait(self, confirmation: Confirmation, condition: threading.Condition) -> None:
        """Until it is settled. Raises what went wrong, or when the broker takes longer than ack_timeout."""
        if not confirmation.is_settled:
            self.check_thread("only it could hear the broker's answer")
            timeout = self.machine.settings.ack_timeout
            deadline = time.monotonic() + timeout if timeout else None
            while not confirmation.is_settled:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise confirmation.late(timeout)
                self.sleep(condition, left)
        confirmation.check()

    def sleep(self, condition: threading.Condition, timeout: float | None) -> None:
        """Until something may have come for whoever waits on `condition`."""
        self.flush_soon()
        if timeout is not None:
            timeout = min(timeout, WAIT_SECONDS_MAX)
        if self.machine.phase is Phase.OPEN and self._channel.lead(condition, timeout):
            self._take_in()
            if self.machine.completions:
                self._channel.wake()  # their listeners are the I/O thread's to call
        else:
            condition.wait(timeout)

    def check_thread(self, why: str) -> None:
        """Raise if this is the I/O thread, which would wait for itself."""
        if threading.current_thread() is self._thread:
            raise IllegalStateException(f"a completion listener cannot wait for the broker: {why}; let another thread do it")

    # -- what has come ------------------------------------------------------------------------------------------------------------------
    def _take_in(self) -> None:
        """Wake whom it concerns. Of many messages in portions: between two of them what is to be said leaves, and others get the lock."""
        self._notify()
        while self.machine.has_more:
            self.flush()
            self.lock.release()
            self.lock.acquire()
            self.machine.proceed(milliseconds())
            self._notify()

    def _notify(self) -> None:
        """Wake those for whom something has come, and those for whom there is room."""
        machine = self.machine
        if self.abandoned:
            self._end_abandoned()
        for each in machine.take_woken():
            if each is machine:
                self.notify(self.condition)
            else:
                each.owner.notify()
        if self._blocked and self._has_room():
            self.notify(self.condition)

    def _end_abandoned(self) -> None:
        abandoned, self.abandoned = self.abandoned, []
        for end in abandoned:
            if not self.machine.is_ended:
                end()
        self.flush_soon()

    # -- the I/O thread -----------------------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        failure = None
        try:
            while self._connect():
                opened_at = time.monotonic()
                with self.lock:
                    self._pump(NEVER)
                    if self.machine.awaits_socket():
                        log.warning("The connection was lost and is made again: %s", self.machine.trouble)
                        # One that is lost as soon as it is there must not be made as fast as the machine can.
                        pause = self.machine.settings.reconnect_interval
                        if time.monotonic() - opened_at < pause and not self._awaits_socket_after(pause):
                            break
        finally:
            with self.lock:
                self._channel.end()
                self.machine.give_up(JMSException("the connection's thread has ended", CONNECTION_LOST))
                self._notify()
                if self.machine.opened.error is None:
                    failure = self.machine.failure
                self._tell()
            if failure is not None:
                self._failed(failure)

    def _connect(self) -> bool:
        """Reach a broker that lets us in. False: there is none, or the connection is closed."""
        attempts = Attempts(self.machine, self._addresses)
        for address, pause in attempts.to_try():
            with self.lock:
                if not self._awaits_socket_after(pause):
                    return False
            try:
                opened = self._open_socket(address)
            except OSError as error:
                attempts.unreachable(address, error)
                continue
            with self.lock:
                self._channel.open(opened)
                if not self._awaits_socket_after(0.0):
                    return False
                self.machine.connect(address.host, milliseconds())
                self._pump(milliseconds() + int(LOGIN_SECONDS * 1000))
                if attempts.is_over(address):
                    break
        with self.lock:
            return attempts.end()

    def _awaits_socket_after(self, seconds: float) -> bool:
        """Whether a socket is still wanted, after so long."""
        end = milliseconds() + int(seconds * 1000)
        while not self._stopping and self.machine.phase is Phase.WAITING and milliseconds() < end:
            self._channel.select(end)
        return not self._stopping and self.machine.phase is Phase.WAITING

    def _pump(self, login_at: int) -> None:
        """Read, write and beat until the socket is gone; or, given until when that may last, until the broker has let us in."""
        machine, channel = self.machine, self._channel
        while True:
            now = milliseconds()
            machine.tick(now)
            if now >= login_at:
                machine.lost(not_let_in(LOGIN_SECONDS), now)
            self.flush()
            self._notify()
            self._tell()
            if login_at < NEVER and machine.phase is Phase.OPEN:
                return
            if machine.phase is Phase.WAITING or machine.phase is Phase.CLOSED or (self._stopping and machine.phase is not Phase.LEAVING):
                channel.close()
                return
            channel.select(min(machine.next_deadline(), login_at))
            self._take_in()

    def _tell(self) -> None:
        """Call the listeners of asynchronous sends, without the lock."""
        completions = self.machine.take_completions()
        if not completions:
            return
        self.lock.release()
        try:
            for confirmation in completions:
                assert confirmation.completion is not None and confirmation.message is not None
                try:
                    confirmation.completion(confirmation.message, confirmation.error)
                except BaseException:  # sys.exit() too: it would end this thread, and the connection with it
                    log.exception("A completion listener failed")
        finally:
            self.lock.acquire()
        self.machine.completed(completions)
        self._notify()
