"""What stands between the service and its promises, each cause as a sentence that says what to do. Nothing is well that is not known to be."""

from dataclasses import dataclass
from typing import Any

from .node import QUIESCED, SERVING, NodeStatus
from .rows import rows


NO_NODE = "where `manage.py run` is to run, look into log/node.log; `manage.py node` starts one more"
MAKE_ROOM = "Purge what nobody needs, or enlarge the disk or SURETY_DATABASE_OCTETS_MAX: producers go on by themselves"


@dataclass(slots=True, frozen=True)
class Listener:
    name: str
    up: bool
    detail: str
    paused: bool = False
    """By an operator."""


def problems(status: NodeStatus) -> dict[str, str]:
    """What is wrong, by name of the check; empty: the service is ready. One query."""
    found = _durability()
    if not status.alive:
        found["node"] = f"no node holds the lease: {NO_NODE}" if status.heartbeat_seconds is None else _silent(status)
        return found
    if not status.reporting:
        found["node"] = f"{status.holder} holds the lease, but tells nothing about itself: if it is not starting, log/node.log says why; restart it"
        return found
    if status.state not in (SERVING, None):
        found["quiesced"] = _quiesced(status)
    down = [listener for listener in listeners(status) if not listener.up]
    if not status.listeners:
        found["listeners"] = "the node has no listener open yet: it is starting, or log/node.log says why not"
    elif down:
        found["listeners"] = "; ".join(map(_down, down))
    if status.metrics.get("space_low") is not False:
        found["space"] = (
            f"producers wait for disk space: {status.metrics.get('space_reason') or 'the node does not say why'}. {MAKE_ROOM}"
            if status.metrics.get("space_low")
            else "the node does not say whether the database has room: if it is not starting, log/node.log says why"
        )
    return found


def listeners(status: NodeStatus) -> list[Listener]:
    """What the node says of each listener that the configuration names."""
    return named(status.listeners)


def named(told_of: dict[str, Any]) -> list[Listener]:
    return [_listener(name, told) for name, told in sorted(told_of.items())]


def _listener(name: str, told: Any) -> Listener:
    if not isinstance(told, dict):
        return Listener(name, told is True, "")
    where = f"{told['host']}:{told['port']}" if told.get("host") and told.get("port") else ""
    return Listener(name, told.get("up") is True, str(told.get("problem") or where), told.get("paused") is True)


def _down(listener: Listener) -> str:
    if listener.paused:
        return f"{listener.name} is paused by an operator, who may resume it"
    why = f" ({listener.detail})" if listener.detail else ""
    return f"{listener.name} is down{why}: free its port or give it another (docs/configuration.md), then restart the node"


def _quiesced(status: NodeStatus) -> str:
    """Why no client is let in, as precisely as the node says."""
    drain = status.drain
    if drain is not None and drain.ended is None:
        left = f"{drain.connections} connections are left, with {drain.unsettled} messages and {drain.transactions} transactions"
        return f"{status.holder} is being drained and takes no new connections: {left}"
    if status.state == QUIESCED:
        return f"{status.holder} is quiesced by an operator: it takes no new connections, those that are there go on"
    return f"{status.holder} takes no new connections: it is {status.state}"


def _durability() -> dict[str, str]:
    """Settings of the server without which a commit that returned is not on disk, or not whole after a crash."""
    values = rows("SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes")[0]
    return {
        name: f"PostgreSQL runs with {name} = {value}: a crash loses what was confirmed. Set it to on and reload."
        for name, value in values.items()
        if value != "on"
    }


def _silent(status: NodeStatus) -> str:
    return f"no node holds the lease; {status.holder or 'the last holder'} was last heard of {status.heartbeat_seconds:.0f} s ago: {NO_NODE}"
