"""What tests of large bodies share."""

from __future__ import annotations

LARGE = bytes(range(256)) * 1000
SIZES = {"large_body_octets": 4096, "body_chunk_octets": 65_536}
