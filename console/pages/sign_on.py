"""Logging in by single sign-on: to the provider, and back. What must be known when the browser comes back is in a signed cookie of its own, not in a
session: strangers make no rows."""

import logging
from typing import Any

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth import login as begin_session
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from console import single_sign_on
from console.services import login, sign_on
from console.services.audit import record

from .actor import origin_of

log = logging.getLogger("surety.console")

COOKIE, SALT = "surety_sign_on", "single sign-on"
COOKIE_SECONDS = 600
COOKIE_CHARACTERS_MAX = 4_000
GUESSES = "single sign-on"
"""The name under which failures are counted, beside logins."""
BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    if settings.OIDC is None:
        raise Http404("Single sign-on is not set up.")
    try:
        url, kept = single_sign_on.begin(request.build_absolute_uri(reverse("sign_on_back")))
    except single_sign_on.NotShown as error:
        return _refuse(request, error, "The provider of single sign-on does not answer as it should. Try again later.", 502)
    response = HttpResponseRedirect(url)
    kept = {"kept": kept, "next": request.GET.get(REDIRECT_FIELD_NAME, "")[:1000]}
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(COOKIE, signing.dumps(kept, salt=SALT, compress=True), COOKIE_SECONDS, secure=secure, httponly=True, samesite="Lax")
    return response


@login_not_required
@require_safe
def back(request: HttpRequest) -> HttpResponse:
    if settings.OIDC is None:
        raise Http404("Single sign-on is not set up.")
    origin = origin_of(request)
    try:
        attempt = login.admit(GUESSES, origin)
    except login.Throttled as throttled:
        response = render(request, "console/login.html", {"retry_seconds": throttled.retry_seconds}, status=429)
        response.headers["Retry-After"] = str(throttled.retry_seconds)
        return response
    try:
        kept = _kept(request)
        shown = single_sign_on.conclude(request.GET, kept["kept"])
        user = sign_on.admit(shown, settings.OIDC.roles, origin)
    except single_sign_on.ProviderSilent as error:
        return _refuse(request, error, "The provider of single sign-on does not answer as it should. Try again later.", 502)
    except single_sign_on.NotShown as error:
        return _refuse(request, error, "The provider of single sign-on has not shown who you are. Try again.", 403)
    except sign_on.NotAdmitted as error:
        return _refuse(request, error, str(error), 403)
    login.succeeded(attempt)
    begin_session(request, user, BACKEND)
    record(user.get_username(), origin, "login", arguments={"by": "single sign-on"})
    following = kept.get("next", "")
    good = url_has_allowed_host_and_scheme(following, {request.get_host()}, request.is_secure())
    response = HttpResponseRedirect(following if good else resolve_url(settings.LOGIN_REDIRECT_URL))
    response.delete_cookie(COOKIE, samesite="Lax")
    return response


def _kept(request: HttpRequest) -> dict[str, Any]:
    """What `begin` has signed in the last minutes. Raises NotShown."""
    try:
        return dict(signing.loads(request.COOKIES.get(COOKIE, "")[:COOKIE_CHARACTERS_MAX], salt=SALT, max_age=COOKIE_SECONDS))
    except signing.BadSignature as error:
        raise single_sign_on.NotShown("this browser has not begun it, or too long ago") from error


def _refuse(request: HttpRequest, error: Exception, sentence: str, status: int) -> HttpResponse:
    log.warning("Single sign-on from %s refused: %s", origin_of(request), error)
    record("a stranger", origin_of(request), "login", arguments={"by": "single sign-on"}, result={"refused": str(error)})
    response = render(request, "console/login.html", {"problem": sentence, "sign_on": settings.OIDC}, status=status)
    response.delete_cookie(COOKIE, samesite="Lax")
    return response
