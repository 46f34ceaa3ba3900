"""The person behind an HTTP request, and where he sits."""

from ipaddress import ip_address

from django.http import HttpRequest

from console.services.audit import Actor

UNKNOWN = "unknown"
ADDRESS_CHARACTERS_MAX = 45
"""An IPv6 address; the zone that may follow one has no bound."""


def actor_of(request: HttpRequest) -> Actor:
    return Actor(request.user, origin_of(request))


def origin_of(request: HttpRequest) -> str:
    """The client's IP address. Behind a proxy it is what the proxy wrote, which may be anything: what is no address is unknown."""
    address = (request.META.get("REMOTE_ADDR") or "")[: ADDRESS_CHARACTERS_MAX + 1]
    try:
        ip_address(address)
    except ValueError:
        return UNKNOWN
    return address if len(address) <= ADDRESS_CHARACTERS_MAX else UNKNOWN
