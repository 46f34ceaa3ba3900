"""Tells a web address something, once: a POST of JSON, signed. What an administrator wrote is reached, and nothing that it leads to: no redirection is
followed, no proxy asked, nothing of the answer kept but its status."""

import contextlib
import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

SECONDS = 5.0
"""For all of it: a server that sends its answer octet by octet holds up nobody for longer."""
URL_CHARACTERS_MAX = 1_000
SIGNATURE = "Surety-Signature"
AGENT = "Surety"


class Untold(Exception):
    """It may not have come; the message is a sentence without anything of the address but its host."""


def problem(url: str) -> str:
    """Why nothing can be told there, as a sentence; empty: nothing is against it."""
    try:
        parts = urlsplit(url)
        named = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return "a webhook is a URL such as https://alerts.example/hook"
    if parts.scheme not in ("http", "https") or not named or len(url) > URL_CHARACTERS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        return f"a webhook is a URL such as https://alerts.example/hook, of ASCII, with at most {URL_CHARACTERS_MAX} characters"
    if parts.username is not None or parts.fragment:
        return "a webhook's URL has no user, no password and no fragment"
    return ""


def shown(url: str) -> str:
    """What may be shown of it: the rest of it may be a secret, as with chat services."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..." if url else ""


def sign(secret: str, at: int, body: bytes) -> str:
    """`t=` seconds since 1970, `v1=` HMAC-SHA256 of that, a dot and the body, in hexadecimal."""
    return f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def tell(url: str, secret: str, told: Mapping[str, Any]) -> None:
    """Raises Untold, unless the answer has a status from 200 to 299."""
    if wrong := problem(url):
        raise Untold(f"{wrong}.")
    parts, body, at = urlsplit(url), json.dumps(dict(told)).encode(), int(time.time())
    headers = {"Content-Type": "application/json", "User-Agent": AGENT, "Surety-Event": str(told.get("event", ""))}
    if secret:
        headers[SIGNATURE] = sign(secret, at, body)
    deadline = time.monotonic() + SECONDS
    try:
        with contextlib.closing(_connect(str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80))) as connected:
            status = _post(connected, parts.scheme == "https", url, body, headers, deadline)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Untold(f"{parts.hostname} could not be told ({type(error).__name__}{_said(error)}).") from error
    if not 200 <= status < 300:
        raise Untold(f"{parts.hostname} answered {status}{' (redirections are not followed)' if 300 <= status < 400 else ''}.")


def _said(error: Exception) -> str:
    """What the system says of it, which has nothing of the address."""
    return f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""


def _connect(host: str, port: int) -> socket.socket:
    """To the first of its addresses that answers. Raises OSError. Link-local ones are none: clouds hand out their machines' credentials there."""
    failed: OSError = OSError("its name has no address that may be asked")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:4]:
        ip = ipaddress.ip_address(str(address[0]).partition("%")[0])
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
            failed = OSError(0, "its address is link-local, multicast or none, and is not asked")
            continue
        reached = socket.socket(family, kind, protocol)
        reached.settimeout(SECONDS / 2)
        try:
            reached.connect(address)
        except OSError as error:
            failed = error
            reached.close()
        else:
            return reached
    raise failed


def _post(connected: socket.socket, tls: bool, url: str, body: bytes, headers: Mapping[str, str], deadline: float) -> int:
    """The status of the answer. The socket is shut at the deadline, whatever is being read."""
    parts = urlsplit(url)
    timer = threading.Timer(max(deadline - time.monotonic(), 0.0), _shut, [connected])
    timer.daemon = True
    timer.start()
    try:
        sock = ssl.create_default_context().wrap_socket(connected, server_hostname=parts.hostname) if tls else connected
        asking = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=SECONDS)
        asking.sock = sock
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        asking.request("POST", target, body, {"Host": parts.netloc, **headers, "Connection": "close"})
        status = asking.getresponse().status
        sock.close()
        return status
    finally:
        timer.cancel()


def _shut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was done a moment before
        connected.shutdown(socket.SHUT_RDWR)
