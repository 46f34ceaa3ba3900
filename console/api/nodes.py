"""The nodes: the one that serves, those that stand by, and what is done to them."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import health, node
from console.services import nodes as service

from . import bodies, shapes
from .documented import DRY_RUN, says
from .view import View, idempotent, one, told

DRAIN_SECONDS = 60
TOLD = (
    "alive", "holder", "epoch", "since", "heartbeat_seconds", "reporting", "started_at", "version", "state", "state_since", "drain", "compaction",
    "connections",
)  # fmt: skip


class Node(View):
    @says("The node that serves, its listeners, and those that stand by", shapes.Node)
    def get(self, request: Request) -> Response:
        status = node.node_status()
        shown = {name: getattr(status, name) for name in (*TOLD, "standbys", "metrics")}
        return Response(shapes.Node({**shown, "listeners": health.listeners(status)}).data)


class Listeners(View):
    @says("List the listeners of the node that serves", shapes.Listener(many=True))
    def get(self, request: Request) -> Response:
        return Response(shapes.Listener(health.listeners(node.node_status()), many=True).data)


class Nodes(View):
    @says("List nodes: the one that serves, then those that stand by", shapes.OneNode(many=True))
    def get(self, request: Request) -> Response:
        return Response(shapes.OneNode([_shown(each) for each in node.nodes()], many=True).data)


def _shown(it: node.OneNode) -> dict[str, Any]:
    names = ("node", "state", "epoch", "since", "started_at", "heartbeat_seconds", "version", "host", "connections")
    return {**{name: getattr(it, name) for name in names}, "listeners": health.named(it.listeners)}


class Quiesce(View):
    @says("Quiesce the node: no new connections; for administrators", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request) -> Response:
        return told(service.quiesce(self.actor))


class Unquiesce(View):
    @says("Let connections in again, and end a drain; for administrators", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request) -> Response:
        return told(service.unquiesce(self.actor))


class Drain(View):
    @says("Quiesce, and close each connection when it holds nothing; for administrators", shapes.ControlRequest, asks=True, body=bodies.DrainBody, once=True)
    @idempotent
    def post(self, request: Request) -> Response:
        return told(service.drain(self.actor, self.body(bodies.DrainBody).get("seconds", DRAIN_SECONDS)))


class Compact(View):
    @says(
        "Compact segments, which all destinations share; with dry_run, a Compactable; for administrators", shapes.COMPACTED, asks=True,
        body=bodies.CompactBody, once=True, parameters=[DRY_RUN],
    )  # fmt: skip
    @idempotent
    def post(self, request: Request) -> Response:
        percent = self.body(bodies.CompactBody).get("percent", service.COMPACT_PERCENT)
        if self.flag("dry_run"):
            return one(shapes.Compactable, service.compactable(self.actor, percent))
        return told(service.compact(self.actor, percent))


class TakeOver(View):
    @says("Have a node that stands by take over; for administrators", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        return told(service.take_over(self.actor, name))


class PauseListener(View):
    @says("Close a listener; who has come by it stays; for administrators", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        return told(service.pause_listener(self.actor, name))


class ResumeListener(View):
    @says("Open a listener again; for administrators", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        return told(service.resume_listener(self.actor, name))
