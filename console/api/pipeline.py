"""The data pipeline: how far it is, and what its runs did."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.pipeline import replays
from console.selectors import pipeline
from console.services import replays as service

from . import shapes
from .documented import says
from .fields import Address, Body, Text, Whole
from .problems import Problem
from .view import View, idempotent, one, page


class PipelineRun(shapes.Shape):
    """A run: one at a time."""

    number = shapes.Integer()
    kind = shapes.String()
    state = serializers.ChoiceField(pipeline.STATES, help_text="died: its process ended before it did; the next run goes on where it was.")
    stage = shapes.String(help_text="Of one that is running: what it is at.")
    requested_by = shapes.String()
    process = shapes.String(help_text="Host and number.")
    started_at = shapes.Instant()
    ended_at = shapes.Instant(allow_null=True)
    first_commit = shapes.Integer(allow_null=True, help_text="Of the ledger; null: nothing was new.")
    last_commit = shapes.Integer(allow_null=True)
    counts = serializers.DictField(help_text="What has come of it, by name.")
    error = shapes.String(help_text="One sentence, if it failed.")


class Unarchived(shapes.Shape):
    """Messages that should be in the archive and are not: nothing had read them when there was no more room for them."""

    destination = shapes.Integer()
    address = shapes.String(allow_null=True, help_text="Null: it is gone, and so is its name.")
    messages = shapes.Integer()
    since = shapes.Instant(help_text="When the first were dropped.")
    until = shapes.Instant(help_text="When the last were.")


class Pipeline(shapes.Shape):
    """The data pipeline as a whole."""

    problem = shapes.String(help_text="Why it cannot run on this machine, and the cure; empty: it can.")
    lake_commit = shapes.Integer(allow_null=True, help_text="Up to this commit the ledger is in the lake; null: the pipeline never ran.")
    moved_at = shapes.Instant(allow_null=True, help_text="Since when.")
    behind = shapes.Integer(allow_null=True, help_text="Commits that the lake lacks, as of the last checkpoint; null: unknown.")
    run = PipelineRun(allow_null=True, help_text="The last one.")
    unarchived = Unarchived(many=True, help_text="By destination, the newest first, a hundred at the most.")


class Replay(shapes.Shape):
    """Messages of the archive that are sent again."""

    number = shapes.Integer()
    state = serializers.ChoiceField(replays.STATES, help_text="failed: asked for again, it goes on where it was.")
    requested_by = shapes.String()
    address = shapes.String(help_text="Where they were.")
    into = shapes.String(help_text="Where they go.")
    accepted_from = shapes.Instant(allow_null=True)
    accepted_to = shapes.Instant(allow_null=True)
    selector = shapes.String()
    identifiers = serializers.ListField(child=shapes.String())
    rate = shapes.Integer(help_text="Messages a second, at the most.")
    sent = shapes.Integer()
    total = shapes.Integer(allow_null=True, help_text="How many were found. Null: it has not looked yet.")
    created_at = shapes.Instant()
    ended_at = shapes.Instant(allow_null=True)
    error = shapes.String(help_text="One sentence, if it failed.")


class ReplayBody(Body):
    """What is to be sent again from the archive: everything of the destination, or what all that is said here holds for."""

    destination = Address(help_text="Where it was; archive_ms says what is kept of it.")
    into = Address(required=False, help_text="Where it goes; without, where it was.")
    accepted_from = serializers.DateTimeField(required=False)
    accepted_to = serializers.DateTimeField(required=False, help_text="Before this instant.")
    selector = Text(required=False, max_length=replays.SELECTOR_CHARACTERS_MAX)
    identifiers = serializers.ListField(
        child=Text(max_length=replays.IDENTIFIER_CHARACTERS_MAX), max_length=replays.IDENTIFIERS_MAX, required=False, help_text="JMSMessageIDs."
    )
    rate = Whole(min_value=1, max_value=replays.RATE_MAX, required=False, help_text=f"Messages a second; {replays.RATE} if it is not said.")


class OnePipeline(View):
    @says("Query the data pipeline: how far the lake is behind the ledger", Pipeline)
    def get(self, request: Request) -> Response:
        self.look("pipeline query")
        return one(Pipeline, pipeline.pipeline())


class PipelineRuns(View):
    @says("List runs of the data pipeline, the newest first", PipelineRun, paged=True)
    def get(self, request: Request) -> Response:
        self.look("pipeline list")
        return page(PipelineRun, pipeline.page(self.number_after(), self.limit()))


class OneRun(View):
    @says("Query a run of the data pipeline", PipelineRun)
    def get(self, request: Request, number: str) -> Response:
        self.look("pipeline query")
        return one(PipelineRun, pipeline.by_number(int(number)))


class Replays(View):
    @says("List replays from the archive, the newest first", Replay, paged=True)
    def get(self, request: Request) -> Response:
        self.look("replay list")
        return page(Replay, pipeline.replays(self.number_after(), self.limit()))

    @says("Send messages of the archive again; what was asked before and is not over goes on", Replay, status=202, body=ReplayBody, once=True)
    @idempotent
    def post(self, request: Request) -> Response:
        asked = self.body(ReplayBody)
        asked["identifiers"] = tuple(asked.get("identifiers", ()))
        number = service.ask(self.actor, replays.Wanted(asked.pop("destination"), **asked))
        return Response(Replay(pipeline.replay(number)).data, 202, headers={"Location": f"/api/v1/pipeline/replays/{number}"})


class OneReplay(View):
    @says("Query a replay from the archive: how far it is", Replay)
    def get(self, request: Request, number: str) -> Response:
        self.look("replay query")
        return one(Replay, pipeline.replay(int(number)))


class CancelReplay(View):
    @says("Cancel a replay; what it has sent stays", Replay, once=True)
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        found = pipeline.replay(int(number))
        if found is None:
            raise Problem("not-found")
        service.cancel(self.actor, found)
        return one(Replay, pipeline.replay(found.number))
