"""The machine under an event loop. Each connection has one task of its own, which connects, and connects again; what comes is taken in where the loop
reads it.

Nothing is preempted between two awaits, so there is no lock. What is said leaves at the end of the loop's turn, or when it is much: so a burst of
sends, of one task or many, is few writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from broker_core.client.clock import milliseconds
from broker_core.client.exceptions import CONNECTION_LOST, IllegalStateException, JMSException
from broker_core.client.machine import NEVER, Address, Addresses, Attempts, Confirmation, ConnectionMachine, Phase
from broker_core.client.machine.attempts import LOGIN_SECONDS, not_let_in

from .link import UNSENT_OCTETS_MAX, Link
from .waiting import Signal, resolve

log = logging.getLogger("surety.client")

WRITE_OCTETS = 1 << 16
"""What is written at once."""


class Driver:
    """Drives one machine, in the loop it was made in."""

    def __init__(
        self,
        machine: ConnectionMachine,
        addresses: Addresses,
        open_link: Callable[[Link, Address], Awaitable[None]],
        failed: Callable[[JMSException], None],
    ) -> None:
        self.machine = machine
        self.loop = loop = asyncio.get_running_loop()
        self.signal = Signal(loop)
        """For what concerns the whole connection."""
        self._addresses = addresses
        self._open_link = open_link
        self._failed = failed
        self._link: Link | None = None
        self._task: asyncio.Task[None]
        self._stopping = False
        self._flushes = False
        """At the end of the loop's turn."""
        self._timer: asyncio.TimerHandle | None = None
        self._awake_at = NEVER
        self._room = Signal(loop)
        self._door = asyncio.Lock()
        """Senders that must wait do so one behind the other: the first for room, the others for the first."""
        self._queued = 0

    async def start(self) -> None:
        """Connect, and return when a broker has let us in. Raises if none has."""
        self._task = self.loop.create_task(self._run(), name="surety-client")
        try:
            while not self.machine.opened.is_settled:
                await self.signal.wait()
        except BaseException:
            self.stop()
            raise
        if self.machine.opened.error is not None:
            await self.join()
        self.machine.opened.check()

    def stop(self) -> None:
        """The connection is closed: its task has nothing to do any more."""
        self._stopping = True
        self._task.cancel()

    async def join(self) -> None:
        """Until its task has ended, and the socket with it."""
        await asyncio.wait({self._task})

    # -- callers ------------------------------------------------------------------------------------------------------------------------
    async def ready(self) -> None:
        """Wait until there is a connection. Raises if there will be none."""
        self._check_loop()
        machine = self.machine
        while machine.phase is Phase.WAITING or machine.phase is Phase.CONNECTING:
            await self.signal.wait()
        machine.check()

    async def ready_to_send(self) -> None:
        """And until there is room for one more message, in the order of asking."""
        self._check_loop()
        if self.machine.phase is Phase.OPEN and not self._queued and self._has_room():
            return
        self._queued += 1
        try:
            async with self._door:
                await self.ready()
                while not self._has_room():
                    self.flush()
                    if not self._has_room():
                        await self._room.wait()
                    await self.ready()
        finally:
            self._queued -= 1

    def _has_room(self) -> bool:
        link = self._link
        return not self.machine.window.is_full and self.machine.out_octets <= UNSENT_OCTETS_MAX and (link is None or not link.is_congested)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self.loop:
            raise IllegalStateException("the connection belongs to another event loop: make one in the loop that uses it")

    async def wait(self, confirmation: Confirmation) -> None:
        """Until it is settled. Raises what went wrong, or when the broker takes longer than ack_timeout."""
        if not confirmation.is_settled:
            self.flush_soon()
            future = self.loop.create_future()
            confirmation.waiter = lambda: resolve(future)
            seconds = self.machine.settings.ack_timeout
            timer = self.loop.call_later(seconds, resolve, future) if seconds else None
            try:
                await future
            finally:
                confirmation.waiter = None
                if timer is not None:
                    timer.cancel()
            if not confirmation.is_settled:
                raise confirmation.late(seconds)
        confirmation.check()

    # -- writing ------------------------------------------------------------------------------------------------------------------------
    def flush(self) -> None:
        """Write what the machine has to say."""
        machine, link = self.machine, self._link
        if machine.out_octets and link is not None:
            link.write(machine.data_to_send())
            machine.wrote(milliseconds())

    def flush_soon(self) -> bool:
        """The same at the end of the loop's turn. True: it was so much that it was written at once, and others should have their turn."""
        machine = self.machine
        if machine.ack_at < self._awake_at:
            self._arm()
        if self._link is not None:
            self._link.pause(machine.wants_pause)
        if machine.out_octets > WRITE_OCTETS:
            self.flush()
            return True
        if machine.out_octets and not self._flushes:
            self._flushes = True
            self.loop.call_soon(self._flush)
        return False

    def _flush(self) -> None:
        self._flushes = False
        self.flush()

    # -- what the loop tells ------------------------------------------------------------------------------------------------------------
    def received(self, link: Link, data: bytes) -> None:
        """Octets have come."""
        if link is self._link and self.machine.phase not in (Phase.WAITING, Phase.CLOSED):
            self.machine.receive_data(data, milliseconds())
            self._take_in()

    def gone(self, link: Link, error: Exception | None) -> None:
        """The socket is closed, by whomever."""
        if link is self._link:
            sentence = "the broker closed the connection" if error is None else f"the connection to the broker is lost: {error}"
            self.machine.lost(JMSException(sentence, CONNECTION_LOST), milliseconds())
            self._take_in()

    def relieved(self) -> None:
        """The socket takes more."""
        self._notify()

    def _take_in(self) -> None:
        """Wake whom it concerns. Of many messages in portions: between two of them what is to be said leaves."""
        self._notify()
        while self.machine.has_more:
            self.flush()
            self.machine.proceed(milliseconds())
            self._notify()
        self._tell()
        self.flush_soon()
        self._arm()

    def _notify(self) -> None:
        """Wake those for whom something has come, and those for whom there is room."""
        machine = self.machine
        for each in machine.take_woken():
            if each is machine:
                self.signal.notify()
                self._room.notify()
            else:
                each.owner.notify()
        if self._queued and self._has_room():
            self._room.notify()

    def _tell(self) -> None:
        """Call the listeners of asynchronous sends."""
        while completions := self.machine.take_completions():
            for confirmation in completions:
                assert confirmation.completion is not None and confirmation.message is not None
                try:
                    confirmation.completion(confirmation.message, confirmation.error)
                except Exception:
                    log.exception("A completion listener failed")
            self.machine.completed(completions)
            self._notify()

    # -- time ---------------------------------------------------------------------------------------------------------------------------
    def _arm(self) -> None:
        """See that the machine is told when something is due. What is due later than expected finds that out when it is told."""
        deadline = self.machine.next_deadline()
        if deadline < self._awake_at:
            if self._timer is not None:
                self._timer.cancel()
            self._awake_at = deadline
            self._timer = self.loop.call_later(max(0, deadline - milliseconds()) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer, self._awake_at = None, NEVER
        self.machine.tick(milliseconds())
        self._take_in()

    # -- the task -----------------------------------------------------------------------------------------------------------------------
    async def _run(self) -> None:
        failure: JMSException | None = None
        try:
            while await self._connect():
                opened_at = self.loop.time()
                while self.machine.phase is Phase.OPEN or self.machine.phase is Phase.LEAVING:
                    await self.signal.wait()
                if self.machine.awaits_socket():
                    self._drop()
                    log.warning("The connection was lost and is made again: %s", self.machine.trouble)
                    # One that is lost as soon as it is there must not be made as fast as the machine can.
                    pause = self.machine.settings.reconnect_interval
                    if self.loop.time() - opened_at < pause:
                        await asyncio.sleep(pause)
            failure = self.machine.failure if self.machine.opened.error is None else None
        except asyncio.CancelledError:
            if not self._stopping:
                log.warning("The connection was not closed before its event loop")
            raise
        finally:
            await self._end()
        if failure is not None:
            self._failed(failure)

    async def _end(self) -> None:
        """Nothing comes any more: tell who waits, and let what was said last be heard."""
        self.machine.give_up(JMSException("the connection's task has ended", CONNECTION_LOST))
        self._notify()
        self._tell()
        if self._timer is not None:
            self._timer.cancel()
        link, self._link = self._link, None
        if link is not None and not link.is_gone:
            await link.end()

    def _drop(self) -> None:
        """The socket is of no use."""
        link, self._link = self._link, None
        if link is not None:
            link.abort()

    async def _connect(self) -> bool:
        """Reach a broker that lets us in. False: there is none, or the connection is closed."""
        attempts = Attempts(self.machine, self._addresses)
        for address, pause in attempts.to_try():
            if pause:
                await asyncio.sleep(pause)
            if not self.machine.awaits_socket():
                return False
            link = Link(self)
            try:
                await self._open_link(link, address)
            except OSError as error:
                attempts.unreachable(address, error)
                continue
            self._link = link
            await self._log_in(link, address)
            if attempts.is_over(address):
                if self.machine.phase is Phase.OPEN:
                    log.debug("Connected to %s", address)
                break
            self._drop()
        return attempts.end()

    async def _log_in(self, link: Link, address: Address) -> None:
        machine, deadline = self.machine, self.loop.time() + LOGIN_SECONDS
        machine.connect(address.host, milliseconds())
        if link.is_gone:
            self.gone(link, None)
        self.flush()
        while machine.phase is Phase.CONNECTING:
            left = deadline - self.loop.time()
            if left <= 0:
                machine.lost(not_let_in(LOGIN_SECONDS), milliseconds())
                self._notify()
                return
            await self.signal.wait(left)
