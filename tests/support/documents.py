"""Real documents: the stanzas of Debian's package lists, tens of thousands of UTF-8 texts of 200 octets to 76 KB in many languages."""

from __future__ import annotations

import subprocess
from pathlib import Path

DPKG_STATUS = Path("/var/lib/dpkg/status")


def stanzas(text: bytes) -> list[bytes]:
    """Paragraphs separated by empty lines (Debian policy 5.1)."""
    return [paragraph for paragraph in text.split(b"\n\n") if paragraph.strip()]


def installed_packages() -> list[bytes]:
    return stanzas(DPKG_STATUS.read_bytes())


def available_packages() -> list[bytes]:
    done = subprocess.run(["apt-cache", "dumpavail"], check=True, stdout=subprocess.PIPE)
    return stanzas(done.stdout)


def all_documents() -> list[bytes]:
    documents = installed_packages() + available_packages()
    assert all(document.decode("utf-8") for document in documents)
    return documents
