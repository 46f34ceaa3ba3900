"""The examples of docs/api.md, run by a shell against a console that listens."""

import re
import shutil
import subprocess
import threading
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application

from tests.console import facts
from tests.console.api import token
from tests.console.conftest import OPERATOR
from tests.console.store_node import StoreNode

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "api.md"


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        """Says nothing."""


@pytest.fixture
def address(database):
    with StoreNode(database) as node, make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=_Quiet) as server:
        node.send(b"one", b"two", b"three")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_examples_do_what_they_say(address, database):
    shown = token(User.objects.get(username=OPERATOR))
    examples = re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", example],
            env={"PATH": "/usr/bin:/bin", "SURETY": address, "TOKEN": shown},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    told = [what for (what,) in facts.rows(database, "SELECT what FROM surety.audit WHERE who = 'olga' ORDER BY entry")]
    assert told == ["token create", "create", "pause", "purge", *["operate", "retry done"] * 2, "set_policy", "account create", "account password", "send"]
    [(result,)] = facts.rows(database, "SELECT result FROM surety.control_request WHERE verb = 'purge'")
    assert result["purged"] == 3
