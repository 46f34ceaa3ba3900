"""A service with certificates, as operators set it up who let clients in by theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.certificates import certificate
from tests.support.service import Service

IDLE_MS = 2000


@dataclass
class Secured:
    service: Service
    own: Path
    """Of the service, which is its own authority."""
    certificate: Path
    """Of a client whose account is guest."""
    key: Path


@contextmanager
def running(own_folder: Path, client_folder: Path) -> Iterator[Secured]:
    own, own_key = certificate(own_folder)
    client, key = certificate(client_folder, "guest")
    environment = {
        "SURETY_TLS_CERT": str(own), "SURETY_TLS_KEY": str(own_key), "SURETY_TLS_CLIENT_CA": str(client), "SURETY_AMQP_ANONYMOUS_ACCOUNT": "guest",
        "SURETY_AMQP_IDLE_MS": str(IDLE_MS),
    }  # fmt: skip
    with Service(environment=environment) as service:
        yield Secured(service, own, client, key)
