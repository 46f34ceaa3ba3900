"""Calls that must not be done twice (header Idempotency-Key): the first is kept with its answer for a day, a repetition gets that answer."""

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from console.models import IdempotentCall
from console.permissions import standing

from .audit import Actor

KEPT_DAYS = 1
KEY_CHARACTERS_MAX = 255


class KeyReused(Exception):
    """The key was used for another call, or by a caller with other rights, whom its answer would tell what he may not know."""


class CallUnanswered(Exception):
    """The call with this key has begun, and what became of it is not known (yet)."""


def begin(actor: Actor, key: str, method: str, path: str, body: Any) -> tuple[IdempotentCall, bool]:
    """The call of this key, and whether it is new: then do it, and tell what became of it by `keep` or `free`. Raises KeyReused, CallUnanswered."""
    told = json.dumps([method, path, body, standing(actor)], sort_keys=True, separators=(",", ":"))
    fingerprint = hashlib.sha256(told.encode()).hexdigest()
    now = timezone.now()
    expired = now - timedelta(days=KEPT_DAYS)
    IdempotentCall.objects.filter(owner=actor.user, key=key, at__lt=expired).delete()
    try:
        with transaction.atomic():
            return IdempotentCall.objects.create(owner=actor.user, key=key, fingerprint=fingerprint, at=now), True
    except IntegrityError:
        call = IdempotentCall.objects.filter(owner=actor.user, key=key).first()
    if call is None or (call.fingerprint == fingerprint and call.status is None):
        raise CallUnanswered
    if call.fingerprint != fingerprint:
        raise KeyReused
    return call, False


def keep(call: IdempotentCall, status: int, answer: Mapping[str, Any], location: str) -> None:
    """The answer that repetitions get. It must hold no secret."""
    IdempotentCall.objects.filter(pk=call.pk).update(status=status, answer=dict(answer), location=location)


def free(call: IdempotentCall) -> None:
    """Nothing was done: the key may be used again."""
    call.delete()
