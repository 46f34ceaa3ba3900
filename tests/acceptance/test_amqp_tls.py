"""AMQP over TLS with clients that nobody here wrote, who log in by certificates; and what operators may allow or shorten: anonymous clients, idle time-outs."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from broker_core.amqp.frames import AMQP_HEADER, SASL_HEADER, frame, sasl_frame
from broker_core.amqp.performatives import Open, SaslInit
from tests.acceptance import test_javascript_clients as javascript
from tests.acceptance.programs import play
from tests.acceptance.secured import IDLE_MS, Secured
from tests.support.service import Service

packages = javascript.packages
PASSWORD = "of-the-store"


def test_proton_logs_in_by_its_certificate(secured: Secured) -> None:
    proton = pytest.importorskip("proton", reason="python-qpid-proton is built where there is a C compiler")
    from proton.utils import BlockingConnection

    domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(secured.own))
    domain.set_peer_authentication(proton.SSLDomain.VERIFY_PEER)
    domain.set_credentials(str(secured.certificate), str(secured.key), None)
    connection = BlockingConnection(f"amqps://127.0.0.1:{secured.service.amqp_tls_port}", timeout=20, ssl_domain=domain, allowed_mechs="EXTERNAL")
    connection.create_sender("by.certificate").send(proton.Message(body="a"))
    assert connection.create_receiver("by.certificate", credit=1).receive(timeout=20).body == "a"
    connection.close()


def test_rhea_logs_in_by_its_certificate(packages: None, secured: Secured) -> None:
    files = [str(file) for file in (secured.own, secured.certificate, secured.key)]
    assert play(["node", "play_tls.mjs", str(secured.service.amqp_tls_port), "rhea.certificate", *files], javascript.FOLDER) == ""


def test_qpid_jms_logs_in_by_its_certificate(class_path: str, secured: Secured, tmp_path: Path) -> None:
    key = load_pem_private_key(secured.key.read_bytes(), None)
    store = tmp_path / "client.p12"
    certified = load_pem_x509_certificate(secured.certificate.read_bytes())
    store.write_bytes(serialize_key_and_certificates(b"client", key, certified, None, BestAvailableEncryption(PASSWORD.encode())))  # type: ignore[arg-type]
    options = f"transport.keyStoreLocation={store}&transport.keyStorePassword={PASSWORD}&transport.storeType=PKCS12&transport.trustAll=true"
    uri = f"amqps://127.0.0.1:{secured.service.amqp_tls_port}?amqp.saslMechanisms=EXTERNAL&transport.verifyHost=false&{options}"
    said = subprocess.run(["java", "-cp", class_path, "Scenarios", uri, uuid.uuid4().hex[:8], "byCertificate"], capture_output=True, text=True, timeout=60)
    assert "well" in said.stdout.splitlines(), said


def greeted(service: Service, mechanism: str, response: bytes = b"") -> socket.socket:
    """One who has said open."""
    client = socket.create_connection(("127.0.0.1", service.amqp_port), timeout=10)
    client.sendall(SASL_HEADER + sasl_frame(SaslInit(mechanism, response)))
    client.sendall(AMQP_HEADER + frame(0, Open("silent", max_frame_size=4096, idle_time_out=400)))
    return client


def heard(client: socket.socket, seconds: float) -> tuple[bytes, bool]:
    """What comes within this time, and whether the broker hung up."""
    ends, octets = time.monotonic() + seconds, b""
    while (left := ends - time.monotonic()) > 0:
        client.settimeout(left)
        try:
            came = client.recv(65536)
        except TimeoutError:
            break
        if not came:
            return octets, True
        octets += came
    return octets, False


def test_anonymous_clients_come_in_where_the_operator_lets_them(secured: Secured) -> None:
    with greeted(secured.service, "ANONYMOUS", b"somebody") as client:
        octets, _ = heard(client, 1)
        assert b"ANONYMOUS" in octets
        assert b"surety-" in octets, "it is answered with open"


def test_a_client_that_is_silent_is_given_up(secured: Secured) -> None:
    """It hears empty frames meanwhile: it wants something every 400 ms."""
    with greeted(secured.service, "PLAIN", b"\0guest\0guest") as client:
        octets, is_over = heard(client, 3 * IDLE_MS / 1000)
        assert is_over
        assert octets.count(b"\0\0\0\x08\x02\0\0\0") >= 4
        assert b"amqp:resource-limit-exceeded" in octets
