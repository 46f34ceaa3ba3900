"""When pages are painted first, in a browser that has been there before."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from playwright.sync_api import Page

from tests.browser.reached import kind_of, reached
from tests.browser.watched import ADMINISTRATOR, Watched
from tests.support.browser import Browser

LOADS = 4
PAINTED_SECONDS_MAX = 10
SORTS = ("depth", "size", "unsettled", "consumers", "oldest")
FIRST_PAINT = """milliseconds => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("nothing is painted")), milliseconds);
    new PerformanceObserver((list) => { for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime); })
        .observe({ type: "paint", buffered: true });
})"""


@dataclass(slots=True)
class Painted:
    kind: str
    address: str
    ms: list[float] = field(default_factory=list)
    """Of each load, from the beginning of the navigation."""

    @property
    def median(self) -> float:
        return statistics.median(self.ms)


def painted(watched: Watched, deep: int, depth: int) -> list[Painted]:
    """Every page that links lead to, those of the deep queue where there are several of a kind; and lists in their costly forms."""
    person = Browser(int(watched.base.rpartition(":")[2]))
    person.log_in(*ADMINISTRATOR)
    of_deep = f"/destinations/{deep}"
    found = reached(lambda address: person.get(address).text, [of_deep, f"{of_deep}/messages", "/"])
    pages = [Painted(kind, address) for kind, address in found.items()]
    more = [f"/destinations?sort={sort}" for sort in SORTS]
    more += ["/destinations?q=77", "/destinations?show=full", "/destinations?show=unread", "/?span=24+h", f"{of_deep}?span=24+h", "/reports?span=year"]
    more += [f"{of_deep}/messages?{query}" for query in ("order=newest", f"after=4-{depth // 2}", "text=nothing+says+this", "selector=a%3D1")]
    pages += [Painted(kind_of(address) + "?" + address.partition("?")[2], address) for address in more]
    for page in pages:
        watched.open(page.address)  # once before it counts
    for _ in range(LOADS):
        for page in pages:
            page.ms.append(first_paint(watched.page, watched.base + page.address))
    for page in sorted(pages, key=lambda page: -page.median):
        print(f"    {page.median:5.0f} ms, at most {max(page.ms):5.0f}  {page.kind}", flush=True)
    return pages


def first_paint(page: Page, address: str) -> float:
    """In ms. Raises RuntimeError if that is no page."""
    answer = page.goto(address)
    if answer is None or answer.status != 200:
        raise RuntimeError(f"{address}: {answer and answer.status}")
    return float(page.evaluate(FIRST_PAINT, PAINTED_SECONDS_MAX * 1000))
