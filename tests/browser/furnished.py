"""A service in which there is something of everything that pages show, so that every page is there and none is empty."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from broker_core.client import Queue, Topic
from tests.acceptance.python_client import CLIENT, factory, fail, fill, leave_in_doubt, texts
from tests.browser.doing import ask_for_replay, settled
from tests.support.browser import Browser
from tests.support.service import Service

ORDERS, MAIL, PRICES = Queue("shown.orders"), Queue("shown.mail"), Topic("shown.prices")
NAMED = {
    "aliases": {"address": "queue/shown.alias", "target": "queue/shown.orders"},
    "objects": {"name": "jms/shown", "kind": "queue", "attributes": {"destination": "queue/shown.orders"}},
    "links": {"name": "shown-link", "attributes": {"host": "127.0.0.1", "port": 1}},
    "operators": {"name": "shown-operator", "password": "of-the-shown-pages", "role": "restricted"},
    "grants": {"operator": "shown-operator", "pattern": "queue/shown.*", "verbs": ["metrics"]},
    "tokens": {"name": "shown", "scope": "read"},
}
"""What is made by the API, which names it so."""
REPORTED = (
    "INSERT INTO surety.pipeline_run (shard, kind, state, requested_by, process) VALUES (0, 'audit', 'done', 'operator', 'host:1')",
    """INSERT INTO surety.pipeline_audit (shard, run, from_number, to_number, complete, proven, unproven, violations, fates, discards, gaps, state,
                                          milliseconds)
       SELECT 0, max(run), 1, 9, true, 5, 0, 1, '[{"destination": 1, "fate": "acknowledged", "messages": 5}]', '[]', '[]', 'audit/slot=0', 80
         FROM surety.pipeline_run""",
    """INSERT INTO surety.pipeline_violation (audit, kind, reason, first, last, messages, evidence)
       SELECT max(audit), 'lost', 'its row is gone', 3, 3, 1, '[]' FROM surety.pipeline_audit""",
)


@contextlib.contextmanager
def furnished(service: Service, api: Browser) -> Iterator[None]:
    """As long as the block lasts somebody consumes and holds."""
    api.does("PUT", "policies/queue/shown.policy.*", {"settings": {"max_messages": 10}})
    for path, body in NAMED.items():
        answer = api.ask("POST", path, body)
        assert answer.status_code in (200, 201, 409) or path == "operators", f"{path}: {answer.text}"  # another module may have made it
    with factory(service, configured_client_id="shown").create_connection() as connection:
        fill(connection, ORDERS, '{"order": 1, "customer": "c-1"}', "<order><number>2</number></order>", *map(str, range(60)))
        with connection.create_session(acknowledge_mode=CLIENT) as session:
            session.create_durable_consumer(PRICES, "board").close()
            fill(connection, PRICES, "1.10", "1.20")
            later = session.create_producer(ORDERS)
            later.delivery_delay = 3600
            later.send("due in an hour")
            api.ask("POST", "destinations", {"address": MAIL.address.removeprefix("/"), "settings": {"redelivery_max": 0}})
            fail(service, MAIL, "to nobody")
            leave_in_doubt(service, ORDERS, "shown", "pages", "booked")
            _operate(api)
            _report(service)
            texts(session.create_consumer(ORDERS), 2)
            yield


def _operate(api: Browser) -> None:
    """Two operations, of which one is a purge that can be undone."""
    for address, done in (("queue/shown.orders", "operations?dry_run=true"), ("queue/shown.purged", "purge")):
        api.ask("POST", "destinations", {"address": address})
        number = settled(api, address)["number"]
        if done == "purge":
            api.does("POST", f"destinations/{number}/messages", {"text": "gone"})
            settled(api, address, depth=1)
        api.does("POST", f"destinations/{number}/{done}", {"depth": 1} if done == "purge" else {"verb": "delete", "filter": {"text": "nothing says this"}})


def _report(service: Service) -> None:
    """What the data pipeline leaves, without Spark, and a replay that nobody does."""
    ask_for_replay(service, "queue/shown.kept", "queue/shown.again")
    with service.database() as connection:
        for statement in REPORTED:
            connection.execute(statement)
