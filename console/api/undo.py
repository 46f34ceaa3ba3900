"""What can be undone: purges, and operations that delete messages."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.control import UNDO_ENDS
from console.selectors import undo
from console.services import undo as service

from . import shapes
from .documented import DRY_RUN, says
from .problems import Problem
from .view import View, idempotent, one, page, told

SEARCH = OpenApiParameter("search", OpenApiTypes.STR, description="Part of the destination, or of the name of who discarded, whatever its case.")
OPEN = OpenApiParameter("open", OpenApiTypes.BOOL, description="Only those that can still be undone.")


class Shown(shapes.Shape):
    """What a purge, or an operation that deletes messages, has discarded and may be given back."""

    number = shapes.Integer(help_text="That of the request, or of the operation.")
    verb = serializers.ChoiceField(("purge", "delete"))
    address = shapes.String()
    requested_by = shapes.String()
    messages = shapes.Integer(help_text="That would come back: those that are stored. Of a topic once for every durable subscription.")
    octets = shapes.Integer(help_text="Of their header sections and bodies, which stay on the disk.")
    kept_at = shapes.Instant()
    lapses_at = shapes.Instant(allow_null=True, help_text="Until when it can be undone. Null: the operation goes on.")
    ended_at = shapes.Instant(allow_null=True)
    ended_how = serializers.ChoiceField(["", *UNDO_ENDS], help_text="Why it cannot be undone any more. Empty: it can.")


Shown.__name__ = "Undo"


class OfUndo(View):
    def found(self, number: str) -> undo.Undo:
        """Raises Problem."""
        it = undo.by_number(int(number), self.sight)
        if it is None:
            raise Problem("not-found")
        return it


class Undos(View):
    @says("List purges and deletions that can be undone, and what became of others, the newest first", Shown, paged=True, parameters=[OPEN, SEARCH])
    def get(self, request: Request) -> Response:
        sought = request.query_params.get("search", "")
        return page(Shown, undo.page(self.number_after(), self.limit(), open_only=self.flag("open"), search=sought, within=self.sight))


class OneUndo(OfUndo):
    @says("Query what can be undone of a purge or a deletion", Shown)
    def get(self, request: Request, number: str) -> Response:
        return one(Shown, self.found(number))

    @says(
        "Give up that it can be undone: the disk is free of what was discarded; with dry_run, a Preview", shapes.DISCARDED, asks=True, once=True,
        parameters=[DRY_RUN],
    )  # fmt: skip
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        it = self.found(number)
        if self.flag("dry_run"):
            return one(shapes.Preview, service.preview_give_up(self.actor, it))
        return told(service.give_up(self.actor, it))


class Undoing(OfUndo):
    @says("Undo a purge or a deletion: what it discarded waits again, where it was", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        return told(service.undo(self.actor, self.found(number)))
