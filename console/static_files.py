"""Style sheet, script and mark, straight from the packages."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise answers with a file to be streamed, which an asynchronous server can only do by reading it whole, with a warning.
    The largest of ours is 50 KiB, so that it is read whole here."""

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
