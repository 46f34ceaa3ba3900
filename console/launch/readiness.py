"""Asks the service itself whether it is ready, as a load balancer would."""

from __future__ import annotations

import asyncio

from broker_core.config import BrokerConfig

LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  nothing is bound here
"""Who binds every address is asked by loopback."""
ANSWER_SECONDS_MAX = 3
ANSWER_OCTETS_MAX = 1 << 16


async def is_ready(config: BrokerConfig) -> tuple[bool, str]:
    """Whether GET /health/ready answers 200, and if not, what it said."""
    host = LOOPBACK_OF.get(config.bind, config.bind)
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(host, config.http_port)
            try:
                writer.write(b"GET /health/ready HTTP/1.0\r\nHost: localhost\r\n\r\n")
                answer = await reader.read(ANSWER_OCTETS_MAX)
            finally:
                writer.close()
    except TimeoutError:
        return False, "the console does not answer"
    except OSError as error:
        return False, f"the console does not listen yet ({error.strerror})"
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(maxsplit=2)
    if len(words) > 1 and words[1] == b"200":
        return True, ""
    return False, body.decode("utf-8", "replace").strip() or head.decode("latin-1")
