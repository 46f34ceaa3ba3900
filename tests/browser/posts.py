"""Everything that can be done on the console's pages, which is every address that takes a POST: by name, and with its verb where one address has several.

Django is asked in a process of its own (`python -m tests.browser.posts`): the tests here drive the console from outside.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

_VERBS = re.compile(r"\(\?P<(verb|plural)>([^()]*)\)")
OF_MESSAGES = "message_act"
"""Its verb is in the form."""


def named() -> dict[str, str]:
    """Regular expressions of paths, by name."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "console.settings", "SURETY_SECRET_KEY": "only for this", "DATABASE_URL": "postgresql://nobody@/none"}
    return json.loads(subprocess.run([sys.executable, "-m", __name__], env=environment, check=True, capture_output=True, text=True).stdout)


def name_of(routes: dict[str, str], path: str, form: str) -> str | None:
    """What was done by this POST; None: nothing that has a name."""
    for name, expression in routes.items():
        if re.search(expression, path.removeprefix("/")):
            verb = name.partition(" ")[2]
            if not name.startswith(OF_MESSAGES) or verb in parse_qs(form).get("verb", []) or f'name="verb"\r\n\r\n{verb}\r\n' in form:
                return name
    return None


def _routes() -> Iterator[tuple[str, str]]:
    import django

    django.setup()
    from console.pages.bulk import VERBS
    from console.urls import urlpatterns

    for pattern in urlpatterns:
        if getattr(pattern, "callback", None) and "POST" in _methods(pattern.callback):
            expression = pattern.pattern.regex.pattern
            found = _VERBS.search(expression)
            if found is not None:
                for verb in found[2].split("|"):
                    yield f"{pattern.name} {verb}", expression.replace(found[0], verb)
            elif pattern.name == OF_MESSAGES:
                yield from ((f"{pattern.name} {verb}", expression) for verb in VERBS)
            else:
                yield pattern.name, expression


def _methods(view: Any) -> list[str]:
    """By its decorator, or its class."""
    if hasattr(view, "view_class"):
        return [name.upper() for name in view.view_class.http_method_names if hasattr(view.view_class, name)]
    wrapped: Callable[..., Any] | None = view
    while wrapped is not None:
        names = wrapped.__code__.co_freevars
        if "request_method_list" in names:
            return list((wrapped.__closure__ or ())[names.index("request_method_list")].cell_contents)
        wrapped = getattr(wrapped, "__wrapped__", None)
    raise AssertionError(f"{view} does not say by which methods it is asked: decorate it with require_safe, require_POST or require_http_methods")


if __name__ == "__main__":
    print(json.dumps(dict(_routes())))
