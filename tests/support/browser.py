"""A person's browser, as far as the console needs one: cookies, forms with their CSRF token, and the REST API by session."""

from __future__ import annotations

import re
from typing import Any

import requests

SECONDS = 15


class Browser:
    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"
        self._session = requests.Session()
        self._session.trust_env = False

    def get(self, path: str, *, follow: bool = True) -> requests.Response:
        return self._session.get(f"{self.root}{path}", timeout=SECONDS, allow_redirects=follow)

    def log_in(self, name: str, password: str) -> None:
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get("/login").text)[0]
        form = {"csrfmiddlewaretoken": token, "username": name, "password": password}
        answer = self._session.post(f"{self.root}/login", form, timeout=SECONDS, allow_redirects=False)
        assert answer.status_code == 302, answer.text

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Of the API."""
        headers = {"X-CSRFToken": self._session.cookies.get("surety_csrf", "")}
        return self._session.request(method, f"{self.root}/api/v1/{path}", json=body, headers=headers, timeout=SECONDS)

    def does(self, method: str, path: str, body: Any = None) -> Any:
        """The same; it must succeed. What it answers."""
        answer = self.ask(method, path, body)
        assert answer.status_code in (200, 201), f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()
