"""Logging in, throttled; and the rule that everything else asks for it."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user, views
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.csrf import csrf_failure
from django_htmx.http import HttpResponseClientRedirect

from console.services import login
from console.services.audit import record

from .actor import origin_of


class LoginRequired(LoginRequiredMiddleware):
    """A page that refreshes itself is sent to the login as a whole: a login form within a table would be no help."""

    def handle_no_permission(self, request: Any, view_func: Any) -> HttpResponse:
        if request.htmx:
            return HttpResponseClientRedirect(reverse("login"))
        return super().handle_no_permission(request, view_func)


def note_forged(request: HttpRequest) -> None:
    """A call that no page of ours has made, or not of late: of a stranger it is nothing, of who has logged in somebody else may have made it."""
    user = get_user(request)  # who it is by his session: the API knows nobody any more
    if user.is_authenticated:
        record(user.get_username(), origin_of(request), f"{request.method} {request.path}", result={"refused": "it does not carry the CSRF token"})


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    note_forged(request)
    return csrf_failure(request, reason)


class Login(views.LoginView):
    template_name = "console/login.html"
    redirect_authenticated_user = True
    attempt: Any = None

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, sign_on=settings.OIDC)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            self.attempt = login.admit(request.POST.get("username", ""), origin_of(request))
        except login.Throttled as throttled:
            context = self.get_context_data(form=self.form_class(request), retry_seconds=throttled.retry_seconds)
            return self.render_to_response(context, status=429, headers={"Retry-After": str(throttled.retry_seconds)})
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        login.succeeded(self.attempt)
        record(form.get_user().get_username(), origin_of(self.request), "login")
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        name = self.request.POST.get("username", "")[: login.NAME_CHARACTERS_MAX]
        # Not as his who has the name: a stranger said it. As often as the throttle lets somebody try.
        record("a stranger", origin_of(self.request), "login", name, result={"refused": "name or password is wrong"})
        return self.render_to_response(self.get_context_data(form=form), status=401)
