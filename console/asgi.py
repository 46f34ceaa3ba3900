"""The console as an ASGI application: `console.asgi:application`."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

# The server itself trusts no header (launch/supervisor.py); without a proxy this trusts nobody either, and passes everything on.
application = ProxyHeadersMiddleware(get_asgi_application(), settings.TRUSTED_PROXIES)
