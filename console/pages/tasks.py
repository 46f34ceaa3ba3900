"""What the service does by itself: what came of it; changing how often, having it done now."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.permissions import MANAGE_SCHEDULE, may
from console.selectors import schedule
from console.services import schedule as service
from console.services.audit import look

from .actor import actor_of

DIGITS_MAX = 9
TONES = {schedule.NEVER: "", schedule.RUNNING: "info", schedule.DONE: "good", schedule.FAILED: "bad", schedule.CUT_OFF: "warn"}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    look(actor, "task list")
    rows = [(task, TONES[task.state]) for task in schedule.tasks()]
    return render(request, "console/tasks.html", {"rows": rows, "may_change": may(actor, MANAGE_SCHEDULE)})


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, name: str) -> HttpResponse:
    look(actor_of(request), "task query")
    task = schedule.by_name(name)
    if task is None:
        raise Http404("There is no such task.")
    context = {"task": task, "low": service.SECONDS_MIN, "high": service.SECONDS_MAX}
    if request.method != "POST":
        return render(request, "console/task.html", context)
    seconds = request.POST.get("seconds", "")
    try:
        if not (seconds.isascii() and seconds.isdigit() and len(seconds) <= DIGITS_MAX):
            raise service.InvalidSchedule("Say every how many seconds, as a whole number.")
        service.update(actor_of(request), name, seconds=int(seconds), enabled=request.POST.get("enabled") == "on")
    except service.InvalidSchedule as error:
        return render(request, "console/task.html", {**context, "problem": str(error), "seconds": seconds}, status=400)
    messages.success(request, f"{name} runs as you said from now on.")
    return redirect("tasks")


@require_POST
def run(request: HttpRequest, name: str) -> HttpResponse:
    done = service.run_now(actor_of(request), name)
    if done.problem:
        messages.error(request, f"{name} failed: {done.problem}")
    else:
        messages.success(request, f"{name} has run, in {done.duration_ms} ms.")
    return redirect("tasks")
