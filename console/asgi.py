"""The console as an ASGI application: `console.asgi:application`. Pages over HTTP, what keeps them up to date over a WebSocket."""

import gc
import os
from importlib import import_module

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import path
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

pages = get_asgi_application()

from console.live.admission import Admission  # noqa: E402  # they need Django to be set up
from console.live.socket import LiveSocket  # noqa: E402

import_module(settings.ROOT_URLCONF)  # with all pages and calls, which the first request would wait for
# What is there by now stays. Else each dozen lists of a thousand rows one would wait a tenth of a second until all of it was looked through for garbage.
gc.collect()
gc.freeze()

_sockets = CookieMiddleware(URLRouter([path("live", LiveSocket.as_asgi())]))
# The server itself trusts no header (launch/supervisor.py); without a proxy this trusts nobody either, and passes everything on.
application = ProxyHeadersMiddleware(ProtocolTypeRouter({"http": Admission(pages), "websocket": _sockets}), settings.TRUSTED_PROXIES)
