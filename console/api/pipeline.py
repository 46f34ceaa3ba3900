"""The data pipeline: how far it is, and what its runs did."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import pipeline

from . import shapes
from .documented import says
from .view import View, one, page


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


class Pipeline(shapes.Shape):
    """The data pipeline as a whole."""

    problem = shapes.String(help_text="Why it cannot run on this machine, and the cure; empty: it can.")
    lake_commit = shapes.Integer(allow_null=True, help_text="Up to this commit the ledger is in the lake; null: the pipeline never ran.")
    moved_at = shapes.Instant(allow_null=True, help_text="Since when.")
    behind = shapes.Integer(allow_null=True, help_text="Commits that the lake lacks, as of the last checkpoint; null: unknown.")
    run = PipelineRun(allow_null=True, help_text="The last one.")


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
