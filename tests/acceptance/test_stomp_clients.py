"""STOMP clients that nobody here wrote: the newest stomp.py and Debian's, each in a process of its own."""

from __future__ import annotations

import datetime as dt
import ipaddress
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.acceptance import stomp_py_scenarios
from tests.support.service import Service

SCENARIO_SECONDS_MAX = 150
DEBIAN = Path("/usr/bin/python3")
SCENARIOS = [scenario.__name__ for scenario in stomp_py_scenarios.SCENARIOS]


def clients() -> list[tuple[str, str]]:
    """Interpreters that have a stomp.py, with its version."""
    found = []
    for interpreter in (sys.executable, str(DEBIAN)):
        done = subprocess.run(
            [interpreter, "-c", "from importlib.metadata import version; import stomp; print(version('stomp.py'))"], capture_output=True, text=True
        )
        if done.returncode == 0:
            found.append((interpreter, done.stdout.strip()))
    return found


CLIENTS = clients()


def play(interpreter: str, port: int, queue: str, scenario: str, *arguments: str) -> None:
    done = subprocess.run(
        [interpreter, stomp_py_scenarios.__file__, str(port), queue, scenario, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SCENARIO_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "refused_until_dead"])
@pytest.mark.parametrize("interpreter", [pytest.param(path, id=f"stomp.py-{version}") for path, version in CLIENTS])
def test_a_stomp_py_application_works(service: Service, queue: str, interpreter: str, scenario: str) -> None:
    play(interpreter, service.stomp_port, queue, scenario)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return certificate_file, key_file


def test_tls_and_a_short_way_to_the_dead_message_queue(tmp_path: Path) -> None:
    certificate_file, key_file = certificate(tmp_path)
    environment = {
        "SURETY_TLS_CERT": str(certificate_file), "SURETY_TLS_KEY": str(key_file),
        "SURETY_REDELIVERY_MAX": "2", "SURETY_REDELIVERY_DELAY_MS": "100",
    }  # fmt: skip
    with Service(environment=environment) as service:
        for number, (interpreter, _) in enumerate(CLIENTS):
            play(interpreter, service.stomp_tls_port, f"/queue/tls.{number}", "over_tls", str(certificate_file))
            play(interpreter, service.stomp_port, f"/queue/dead.{number}", "refused_until_dead")
