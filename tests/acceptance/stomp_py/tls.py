"""A TLS socket that several threads may use. stomp.py reads in one and writes, or closes, in another, on one SSL object: CPython's ssl lets go of its own lock
within OpenSSL, which then corrupts its memory ("free(): corrupted unsorted chunks", "Bad address", a violation of the protocol out of nowhere)."""

import select
import ssl
import threading


class SharedSocket(ssl.SSLSocket):
    """Every call into OpenSSL alone and without waiting in it; what has to wait does so outside."""

    def __new__(cls, *arguments, **options):
        made = super().__new__(cls, *arguments, **options)
        made._turn = threading.RLock()
        return made

    def settimeout(self, seconds):
        with self._turn:
            super().settimeout(seconds)

    def setblocking(self, flag):
        self.settimeout(None if flag else 0)

    def read(self, count=1024, buffer=None):
        return self._in_turns(super().read, 0 if buffer is not None else b"", count, buffer)

    def send(self, data, flags=0):
        return self._in_turns(super().send, None, data, flags)

    def unwrap(self):
        return self._in_turns(super().unwrap, self)

    def _in_turns(self, call, closed, *arguments):
        """`closed`: what it comes to once another thread has ended TLS; None is an error."""
        while True:
            with self._turn:
                if self._sslobj is None and closed is not None:
                    return closed
                timeout = self.gettimeout()
                self.settimeout(0)
                try:
                    return call(*arguments)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                    if timeout == 0:
                        raise
                    waits = ([self], []) if isinstance(error, ssl.SSLWantReadError) else ([], [self])
                finally:
                    if self.fileno() >= 0:
                        self.settimeout(timeout)
            try:
                ready = any(select.select(*waits, [], timeout))
            except ValueError:  # closed meanwhile
                continue
            if not ready:
                raise TimeoutError("timed out")
