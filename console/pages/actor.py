"""The person behind an HTTP request."""

from django.http import HttpRequest

from console.services.audit import Actor


def actor_of(request: HttpRequest) -> Actor:
    return Actor(request.user, request.META.get("REMOTE_ADDR") or "")
