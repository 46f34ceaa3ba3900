"""Pages of the console in a headless Chromium that is watched: what it complains of, what it fetches from elsewhere, what axe-core finds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.service import Service

EXECUTABLE = shutil.which("chromium") or "/usr/bin/chromium"
ADMINISTRATOR = ("operator", "of-the-acceptance-tests")
PASSWORD = "of-the-browser-tests"
THEMES = ("light", "dark")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def missing() -> str:
    """Why there is no browser; empty: there is one."""
    return "" if Path(EXECUTABLE).exists() else "Chromium is not installed: apt-get install chromium"


@dataclass
class Watched:
    """A page, logged in, and all that was wrong with it."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)
    posted: list[tuple[str, str]] = field(default_factory=list)
    """Path and form of each POST that was taken."""

    def watch(self) -> Watched:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"{self.page.url}: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)
        return self

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def axe(self, theme: str) -> list[str]:
        """What axe-core finds in the page as it is, in a theme: rules of WCAG 2.2 A and AA, each with the first place that breaks it."""
        from axe_playwright_python.sync_playwright import Axe

        self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], "resultTypes": ["violations"]}
        found: list[dict[str, Any]] = Axe().run(self.page, options=options).response["violations"]
        where = f"{theme} {urlsplit(self.page.url).path}"
        return [f"{where}: {each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0].get('failureSummary', '')}" for each in found]

    def width_beyond(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{self.page.url}: console {message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.base).netloc and urlsplit(request.url).scheme not in ("data", "blob"):
            self.wrong.append(f"{self.page.url}: asks {request.url}")

    def _answered(self, response: Any) -> None:
        if response.request.method == "POST" and response.status < 400:
            self.posted.append((urlsplit(response.url).path, (response.request.post_data_buffer or b"").decode(errors="replace")))


class Console:
    """The console of a service as people of different roles have it; each logs in once."""

    def __init__(self, browser: Browser, service: Service) -> None:
        self.base = f"http://127.0.0.1:{service.http_port}"
        self._browser = browser
        self._cookies: dict[str, Any] = {}
        self._contexts: list[BrowserContext] = []

    def page_as(self, role: str = "administrator", size: dict[str, int] = WIDE, **settings: Any) -> Watched:
        if role not in self._cookies:
            self._cookies[role] = self._logged_in(role)
        context = self._browser.new_context(viewport=size, storage_state=self._cookies[role], **settings)
        self._contexts.append(context)
        context.set_default_timeout(15_000)
        return Watched(context.new_page(), self.base).watch()

    def close(self) -> None:
        while self._contexts:
            self._contexts.pop().close()

    def _logged_in(self, role: str) -> Any:
        name, password = ADMINISTRATOR
        if role != "administrator":
            name, password = role, PASSWORD
            made = {"name": name, "password": password, "role": role}
            page = self.page_as().open("/")
            token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "surety_csrf")
            answer = page.request.post(f"{self.base}/api/v1/operators", data=made, headers={"X-CSRFToken": token, "Referer": self.base})
            assert answer.status == 201 or name in answer.text(), answer.text()  # another module has made him
        context = self._browser.new_context()
        page = context.new_page()
        page.goto(f"{self.base}/login")
        page.fill("#username", name)
        page.fill("#password", password)
        page.click("button.primary")
        page.wait_for_selector("#nav", state="attached")
        state = context.storage_state()
        context.close()
        return state
