"""`manage.py mq` against a console elsewhere, by its address and a token."""

import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from console.cli import exits
from tests.console.api import token
from tests.console.conftest import OPERATOR
from tests.console.terminal import mq
from tests.console.test_api_examples import address  # noqa: F401 - a fixture: a console that listens

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shown(database):
    return token(User.objects.get(username=OPERATOR))


@pytest.fixture
def far(address, shown):  # noqa: F811 - the fixture
    with override_settings(COMMAND_URL=address, COMMAND_TOKEN=shown):
        yield address


class _Answers(BaseHTTPRequestHandler):
    """Of what is no console."""

    def do_GET(self):
        kind = self.server.kind
        if kind == "cut off":
            self.connection.close()
            return
        status, headers, body = {
            "elsewhere": (302, {"Location": "https://else.example/"}, b""),
            "a page": (200, {"Content-Type": "text/html"}, b"<html>"),
            "a proxy": (502, {"Content-Type": "text/html"}, b"<html>Bad gateway"),
            "a bug": (500, {"Content-Type": "text/html"}, b"Server error"),
        }[kind]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - http.server's name

    def log_message(self, *args):
        """Says nothing."""


@pytest.fixture
def stranger(request):
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.kind = request.param
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


# -- refused ----------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://a", "is no address of a console"),
        ("console", "is no address of a console"),
        ("http://a:b@localhost", "is no address of a console"),
        ("http://localhost:port", "is no address"),
        ("http://broker.example:8000", "sent in the open: use https, or say --plain-http"),
    ],
)
def test_an_address_that_is_none_is_refused_before_the_token_leaves(url, sentence):
    ran = mq("list", "dst", "--url", url, "--token", "surety_x")
    assert ran.code == exits.USAGE
    assert sentence in ran.said


@pytest.mark.parametrize("wrong", ["", "two words", "\u00e4"])
def test_a_token_that_is_none_is_not_sent(wrong):
    ran = mq("list", "dst", "--url", "http://127.0.0.1:9", "--token", wrong)
    assert (ran.code, ran.said) == (exits.USAGE, "Give the token in SURETY_TOKEN or with --token-file: one line of letters, digits and signs.\n")


def test_a_wrong_token_is_told_from_a_refusal(far):
    ran = mq("list", "dst", "--token", "surety_wrong")
    assert ran.code == exits.NOT_ALLOWED
    assert ran.said == "The token is wrong, has expired or was revoked, or its owner is disabled. [unauthenticated]\n"


def test_a_token_that_may_only_read_changes_nothing(far):
    reading = token(User.objects.get(username=OPERATOR), "read", "reader")
    assert mq("list", "dst", "--token", reading).code == exits.DONE
    ran = mq("create", "alias", "queue/x", "--target", "queue/orders", "--token", reading)
    assert (ran.code, ran.said) == (exits.NOT_ALLOWED, "This token may only read. [forbidden]\n")


def test_where_nobody_listens_it_is_unreachable(shown):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = mq("pause", "dst", "7", "--url", f"http://127.0.0.1:{free.getsockname()[1]}", "--token", shown)
    assert ran.code == exits.UNREACHABLE
    assert "cannot be reached (Connection refused)." in ran.said


@pytest.mark.parametrize(
    ("stranger", "code", "sentence"),
    [
        ("elsewhere", exits.UNREACHABLE, "sends elsewhere, to 'https://else.example/'"),
        ("a page", exits.UNREACHABLE, "The answer is no JSON"),
        ("a proxy", exits.UNREACHABLE, "The answer is 502"),
        ("a bug", exits.UNFINISHED, "The answer is 500"),
        ("cut off", exits.UNREACHABLE, "has not answered"),
    ],
    indirect=["stranger"],
)
def test_what_is_no_console_is_said_not_to_be(stranger, code, sentence):
    ran = mq("list", "dst", "--url", stranger, "--token", "surety_x")
    assert (ran.code, sentence in ran.said) == (code, True), ran.said


@pytest.mark.parametrize("stranger", ["cut off"], indirect=True)
def test_a_change_whose_answer_is_lost_may_have_been_made(stranger):
    ran = mq("pause", "dst", "7", "--url", stranger, "--token", "surety_x")
    assert ran.code == exits.UNFINISHED
    assert ran.said.endswith("whether it was done is not known. Look, and try again.\n")


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    ran = mq("list", "dst", "--url", "https://127.0.0.1:9", "--token", "surety_x", "--ca", str(tmp_path / "none.pem"))
    assert ran.code == exits.USAGE
    (tmp_path / "empty.pem").write_text("no certificate\n")
    ran = mq("list", "dst", "--url", "https://127.0.0.1:9", "--token", "surety_x", "--ca", str(tmp_path / "empty.pem"))
    assert ran.code == exits.USAGE
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_message = "self-signed certificate"
    from console.cli.transports import _words

    assert _words(error) == "its certificate: self-signed certificate"


def test_another_operator_is_asked_for_by_his_token_only():
    assert mq("list", "dst", "--url", "http://127.0.0.1:9", "--as", "vera").code == exits.USAGE


# -- done --------------------------------------------------------------------------------------------------------------------------------------
def test_the_same_command_has_the_same_answer_here_and_there(far, database):
    words = ("query", "usr", "guest", "--json")
    assert mq(*words).document == mq(*words, "--url", "").document
    assert mq("list", "dst").told == mq("list", "dst", "--url", "").told


def test_a_purge_by_a_token_is_asked_for_and_done(far):
    ran = mq("purge", "dst", "queue/orders", "--depth", "3", typed="yes\n")
    assert ran.said == "How many messages there are is not known. purge dst queue/orders? Type yes to go on: "
    assert (ran.code, ran.told.startswith("Done: purged 3")) == (exits.DONE, True)


def test_the_token_may_come_from_a_file(far, shown, tmp_path):
    (tmp_path / "token").write_text(f"{shown}\n")
    with override_settings(COMMAND_TOKEN=""):
        assert mq("query", "me", "--token-file", str(tmp_path / "token"), "--json").document["name"] == OPERATOR
        assert mq("query", "me", "--token-file", "-", typed=f"{shown}\n").code == exits.DONE
        assert mq("query", "me", "--token-file", str(tmp_path / "none")).code == exits.USAGE


def test_messages_go_both_ways(far):
    key = mq("list", "msg", "queue/orders", "--json").document["items"][0]["key"]
    assert mq("download", "msg", "queue/orders", key).octets == b"one"
    lines = mq("export", "msg", "queue/orders").told
    assert json.loads(lines.splitlines()[0])["key"] == key
    assert mq("import", "msg", "queue/orders", "--json", typed=lines).document == {"sent": 3}
    assert mq("send", "msg", "queue/orders", "--text", "four").code == exits.DONE
    assert mq("create", "alias", "queue/100% a/b?", "--target", "queue/orders").code == exits.DONE
    assert mq("query", "alias", "queue/100% a/b?", "--json").document["address"] == "queue/100% a/b?"
