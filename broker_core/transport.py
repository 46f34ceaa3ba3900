"""What the two Celery apps share: messages travel through two tables of the broker's own database, so there is nothing else to run.

`python -m broker_core.transport` creates those tables before several processes try to at the same moment.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from celery import Celery
from celery.platforms import SecurityWarning

from broker_core.config import BrokerConfig

NODE_QUEUE = "surety-node"
"""Nothing is ever sent here: a node's worker must not take tasks from the queue of another."""
TASKS_QUEUE = "surety-tasks"
"""Where scheduled tasks wait for the tasks worker."""


def transport_url(config: BrokerConfig) -> str:
    scheme, _, rest = config.database_url.partition("://")
    assert scheme in ("postgresql", "postgres"), scheme
    return f"sqla+postgresql+psycopg://{rest}"


def create_app(config: BrokerConfig, name: str, queue: str, fixups: Sequence[str] = ()) -> Celery:
    """An app on that queue. Celery's own fixups would load Django wherever DJANGO_SETTINGS_MODULE is set; only who names one gets it."""
    # Celery warns root because pickled tasks would run as root. These apps accept JSON only (Celery's default) and one queue each.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = Celery(name, broker=transport_url(config), backend=None, fixups=list(fixups))
    app.conf.update(
        task_default_queue=queue,
        task_ignore_result=True,
        accept_content=["json"],
        worker_enable_remote_control=False,  # needs fanout, which the database transport does not have
        worker_send_task_events=False,
        worker_prefetch_multiplier=1,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # the database may need minutes to replay its log
        broker_transport_options={"pool_pre_ping": True, "pool_size": 1, "max_overflow": 1},
        timezone="UTC",
    )
    return app


def declare_queues(config: BrokerConfig) -> None:
    with create_app(config, "surety", NODE_QUEUE).connection_for_write() as connection:
        for queue in (NODE_QUEUE, TASKS_QUEUE):
            connection.SimpleQueue(queue).close()


if __name__ == "__main__":
    declare_queues(BrokerConfig.from_env())
