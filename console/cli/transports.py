"""How a call reaches the API: in this process, or over HTTP. Both take the same call and give the same answer."""

import http.client
import json
import logging
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIRequest
from django.db import Error, InterfaceError, OperationalError
from django.urls import resolve

from console.api.problems import CODES, problem_of
from console.api.problems import document_of as document_of_problem
from console.launch.database import check_database
from console.launch.refusal import CannotStart
from console.management.audited import system_account

from .exits import NOT_ALLOWED, REFUSED, UNFINISHED, UNREACHABLE, USAGE, Ended, refusal

ROOT = "/api/v1/"
TIMEOUT_SECONDS = 60
"""For what the service says next; it answers whatever it is asked within some ten."""
DOCUMENT_OCTETS_MAX = 64 << 20
PIECE_OCTETS = 1 << 16


@dataclass(slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    pieces: Iterator[bytes]

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()

    def document(self) -> Any:
        """None: it is no JSON. Raises Ended."""
        octets = bytearray()
        for piece in self.pieces:
            octets += piece
            if len(octets) > DOCUMENT_OCTETS_MAX:
                raise Ended(UNREACHABLE, f"The answer has more than {DOCUMENT_OCTETS_MAX >> 20} MiB: this is no console.")
        try:
            return json.loads(octets)
        except (ValueError, RecursionError):
            return None


class Transport(Protocol):
    def call(self, method: str, target: str, body: bytes | None = None, content_type: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        """`target`: below /api/v1/, with its query. Raises Ended."""


# -- in this process --------------------------------------------------------------------------------------------------------------------------
class InProcess:
    """The API's own views over the database of this installation: the console need not run. Who may run this has the database anyway, so there is
    no login; the calls are an operator's, with his rights, and the audit says that they came from the command line, and from whose."""

    def __init__(self, name: str = "") -> None:
        """`name`: of an operator; empty: the one of SURETY_ADMIN_USER, or if there is none, the first administrator. Raises Ended."""
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it says what a sentence says a moment later
        try:
            self._user = _operator(name)
        except Error as error:
            raise _without_database(error) from error
        self.origin = f"command line of {system_account()}"

    @property
    def name(self) -> str:
        return str(self._user.get_username())

    def call(self, method: str, target: str, body: bytes | None = None, content_type: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        path, _, query = (ROOT + target).partition("?")
        octets = body or b""
        carried = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in (headers or {}).items()}
        request = WSGIRequest(
            {
                "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": _unquoted(path), "QUERY_STRING": query, "SERVER_PROTOCOL": "HTTP/1.1",
                "SERVER_NAME": "localhost", "SERVER_PORT": "0", "wsgi.url_scheme": "http", "CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(octets)),
                "wsgi.input": BytesIO(octets), **carried,
            }
        )  # fmt: skip
        request.user = self._user
        request.command_line = self.origin
        request._dont_enforce_csrf_checks = True  # nobody else's page made this request
        view, arguments, named = resolve(request.path_info)
        response = view(request, *arguments, **named)
        if hasattr(response, "render"):
            response.render()
        pieces = response.streaming_content if response.streaming else [response.content]
        return Answer(response.status_code, {key.lower(): value for key, value in response.items()}, _pieces(pieces))


def _pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Raises Ended: a service says why it stops, where a console elsewhere could only hang up."""
    try:
        yield from pieces
    except Exception as error:
        if (problem := problem_of(error)) is not None:
            why = refusal(CODES[problem.code][0], document_of_problem(problem))
            raise Ended(why.code, f"It is not all there: {why.sentence}", why.problem) from error
        raise


def _unquoted(path: str) -> str:
    """As a server hands it to WSGI: octets, each as a character."""
    return unquote_to_bytes(path).decode("iso-8859-1")


def _operator(name: str) -> User:
    """Raises Ended, django.db.Error."""
    active = User.objects.filter(is_active=True)
    if name:
        found = active.filter(username=name).first()
        if found is None:
            raise Ended(NOT_ALLOWED, f"There is no operator {name}, or he is disabled.")
        return found
    administrators = active.filter(is_superuser=True).order_by("pk")
    found = administrators.filter(username=settings.ADMIN_USER).first() or administrators.first()
    if found is None:
        raise Ended(REFUSED, "Nobody is an administrator here: `manage.py bootstrap` makes one.")
    return found


def _without_database(error: Error) -> Ended:
    if not isinstance(error, OperationalError | InterfaceError):
        return Ended(UNREACHABLE, "The database has no tables of this service: `make run`, or `manage.py migrate`, makes them.")
    try:
        check_database(settings.BROKER)
    except CannotStart as refused:
        return Ended(UNREACHABLE, str(refused))
    return Ended(UNREACHABLE, "The database could not be reached: try again.")


# -- over HTTP ----------------------------------------------------------------------------------------------------------------------------------
class Remote:
    """A console elsewhere, by its address and a token."""

    def __init__(self, url: str, token: str, *, authority: str | None = None, plain: bool = False) -> None:
        """`authority`: PEM file; None: those of this machine. Raises Ended."""
        self._url, self._host = _checked(url, plain)
        if not (token and token.isascii() and token.isprintable() and " " not in token):
            raise Ended(USAGE, "Give the token in SURETY_TOKEN or with --token-file: one line of letters, digits and signs.")
        self._token = token
        try:
            self._context = ssl.create_default_context(cafile=authority) if self._url.scheme == "https" else None
        except OSError as error:
            raise Ended(USAGE, f"{authority} holds no certificate that can be read ({error.strerror or error}).") from error

    def call(self, method: str, target: str, body: bytes | None = None, content_type: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "*/*", **({"Content-Type": content_type} if body is not None else {}), **(headers or {})}
        connection = self._connection()
        try:
            connection.connect()
        except OSError as error:
            raise Ended(UNREACHABLE, f"{self._url.geturl()} cannot be reached ({_words(error)}).") from error
        try:
            connection.request(method, self._url.path.rstrip("/") + ROOT + target, body, sent)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._cut_off(method, error) from error
        found = {name.lower(): value for name, value in response.getheaders()}
        if 300 <= response.status < 400:
            raise Ended(UNREACHABLE, f"{self._url.geturl()} sends elsewhere, to {found.get('location', '?')[:200]!r}: give that as --url if it is right.")
        return Answer(response.status, found, self._pieces(method, response))

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._url.port, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(self._host, self._url.port, timeout=TIMEOUT_SECONDS, context=self._context)

    def _pieces(self, method: str, response: http.client.HTTPResponse) -> Iterator[bytes]:
        try:
            while piece := response.read(PIECE_OCTETS):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise self._cut_off(method, error) from error
        finally:
            response.close()

    def _cut_off(self, method: str, error: Exception) -> Ended:
        where = f"{self._url.geturl()} has not answered ({_words(error)})"
        if method == "GET":
            return Ended(UNREACHABLE, f"{where}.")
        return Ended(UNFINISHED, f"{where}: whether it was done is not known. Look, and try again.")


def _checked(url: str, plain: bool) -> tuple[SplitResult, str]:
    """Raises Ended."""
    try:
        found = urlsplit(url)
        found.port  # noqa: B018 - raises if it is none
    except ValueError as error:
        raise Ended(USAGE, f"{url[:200]!r} is no address: {error}.") from error
    if found.scheme not in ("http", "https") or not found.hostname or found.username or found.query or found.fragment or not url.isprintable():
        raise Ended(USAGE, f"{url[:200]!r} is no address of a console: give https://HOST:PORT.")
    if found.scheme == "http" and not plain and not _on_this_machine(found.hostname):
        raise Ended(USAGE, "The token would be sent in the open: use https, or say --plain-http.")
    return found, found.hostname


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return str(getattr(error, "strerror", "") or error or type(error).__name__)


def document_of(answer: Answer) -> Any:
    """Of an answer of success. Raises Ended: it is another."""
    document = answer.document()
    if not 200 <= answer.status < 300:
        raise refusal(answer.status, document)
    if document is None:
        raise Ended(UNREACHABLE, "The answer is no JSON: is the address that of a console?")
    return document
