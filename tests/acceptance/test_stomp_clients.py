"""STOMP clients that nobody here wrote: the newest stomp.py and Debian's, each in a process of its own."""

from __future__ import annotations

import datetime as dt
import inspect
import ipaddress
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.acceptance.stomp_py import queues, topics, transactions
from tests.support.service import REPOSITORY, Service

SCENARIO_SECONDS_MAX = 150
DEBIAN = Path("/usr/bin/python3")
OF_ITS_OWN_SERVICE = {"over_tls", "refused_until_dead"}


def scenarios(module: ModuleType) -> list[str]:
    functions = [name for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]
    return [name for name in functions if not name.startswith("_") and name not in OF_ITS_OWN_SERVICE]


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


def play(port: int, name: str, scenario: str, *arguments: str, clients: list[tuple[str, str]] = CLIENTS) -> None:
    """With these clients at once, each with a destination of its own."""
    playing = {
        version: subprocess.Popen(
            [interpreter, "-m", "tests.acceptance.stomp_py", str(port), f"{name}.{version}", scenario, *arguments],
            cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for interpreter, version in clients
    }  # fmt: skip
    try:
        said = {version: process.communicate(timeout=SCENARIO_SECONDS_MAX)[0] for version, process in playing.items()}
    finally:
        for process in playing.values():
            process.kill()
    failed = [f"stomp.py {version}:\n{said[version]}" for version, process in playing.items() if process.returncode != 0]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("scenario", [*scenarios(queues), *scenarios(transactions)])
def test_a_stomp_py_application_works_with_a_queue(service: Service, queue: str, scenario: str) -> None:
    play(service.stomp_port, queue, scenario)


@pytest.mark.parametrize("scenario", scenarios(topics))
def test_a_stomp_py_application_works_with_a_topic(service: Service, topic: str, scenario: str) -> None:
    play(service.stomp_port, topic, scenario)


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
        play(service.stomp_tls_port, "/queue/tls", "over_tls", str(certificate_file))
        for client in CLIENTS:  # they would take each other's from the one dead message queue
            play(service.stomp_port, "/queue/dead", "refused_until_dead", clients=[client])
