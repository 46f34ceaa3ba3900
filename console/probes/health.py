"""`/health/live`: this process answers. `/health/ready`: the service keeps its promises now; if not, the answer names each reason."""

from django.contrib.auth.decorators import login_not_required
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from console.selectors import health
from console.selectors.node import node_status


@login_not_required
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"live": True})


@login_not_required
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    try:
        status = node_status()
        problems = health.problems(status)
    except Error as error:
        connection.close()
        # The class says what kind of failure it is; the text may name hosts and users, and anybody may ask here.
        return _answer({"database": f"the database cannot be asked ({type(error).__name__})"})
    return _answer(problems, node=status.holder, epoch=status.epoch)


def _answer(problems: dict[str, str], **more: object) -> JsonResponse:
    return JsonResponse({"ready": not problems, "problems": problems, **more}, status=503 if problems else 200)
