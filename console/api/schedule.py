"""What the service does by itself, and how often."""

from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import schedule
from console.services import schedule as service

from . import bodies, shapes
from .documented import says
from .view import View, one


class Schedule(View):
    @says("List periodic tasks: how often, last run and its result, next run", shapes.ScheduledTask(many=True))
    def get(self, request: Request) -> Response:
        self.look("task list")
        return Response(shapes.ScheduledTask(schedule.tasks(), many=True).data)


class OneTask(View):
    @says("Query a periodic task", shapes.ScheduledTask)
    def get(self, request: Request, name: str) -> Response:
        self.look("task query")
        return one(shapes.ScheduledTask, schedule.by_name(name))

    @says("Change how often a task runs, or whether; for administrators", shapes.ScheduledTask, body=bodies.TaskBody)
    def patch(self, request: Request, name: str) -> Response:
        service.update(self.actor, name, **self.body(bodies.TaskBody))
        return one(shapes.ScheduledTask, schedule.by_name(name))


class RunTask(View):
    @says("Run a task now, beside its schedule; for administrators", shapes.ScheduledTask, writes=True)
    def post(self, request: Request, name: str) -> Response:
        service.run_now(self.actor, name)
        return one(shapes.ScheduledTask, schedule.by_name(name))
