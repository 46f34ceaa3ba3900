"""Style sheet, script and mark, straight from the packages."""

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

FOR_GOOD = "max-age=31536000, public, immutable"


@lru_cache(256)
def _version(name: str) -> str:
    """Of a file's content; empty: there is none."""
    found = finders.find(name)
    return blake2b(Path(found).read_bytes(), digest_size=6).hexdigest() if isinstance(found, str) else ""


class Versioned(StaticFilesStorage):
    """Addresses say which content they mean, so that a browser keeps it for good: no page waits for its style sheets to be asked for again."""

    def url(self, name: str | None) -> str:
        version = _version(name or "")
        return f"{super().url(name)}?v={version}" if version else super().url(name)


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise answers with a file to be streamed, which an asynchronous server can only do by reading it whole, with a warning.
    The largest of ours is 50 KiB, so that it is read whole here."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = super().__call__(request)
        name = request.path_info.removeprefix(self.static_prefix)
        if name != request.path_info and response.status_code in (200, 304) and request.GET.get("v", "") == _version(name) != "":
            response["Cache-Control"] = FOR_GOOD
        return response

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        return response
