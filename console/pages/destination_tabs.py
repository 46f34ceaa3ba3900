"""The pages of one destination, as tabs."""

from django.urls import reverse

from console.selectors.destinations import Destination

PAGES = (("messages", "Messages", "messages_of"), ("dead", "By reason", "dead_of"), ("scheduled", "Scheduled", "scheduled_of"))
"""Name, words, and name of the address."""


def tabs(it: Destination, current: str) -> list[tuple[str, str, bool]]:
    """As parts/tabs.html has them."""
    pages = [page for page in PAGES if page[0] != "dead" or it.address.startswith("queue/")]
    return [(words, reverse(url_name, args=[it.number]), name == current) for name, words, url_name in pages]
