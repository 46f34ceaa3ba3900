"""What each call says of itself in the OpenAPI document, and by the same words which query parameters it takes."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers

from . import problems, shapes

LIMIT_MAX = 1000
Handler = Callable[..., Any]

LIMIT = OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}, description="At most so many.")
AFTER = OpenApiParameter("after", OpenApiTypes.STR, description="`next` of the page before.")
DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Count, and do nothing.")
KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="The call is done once; for a day repetitions get its answer. With another call, or other rights: 422.",
)
LOCATION = OpenApiParameter(
    "Location", OpenApiTypes.STR, OpenApiParameter.HEADER, response=[201, 202], description="What was made, or the request to ask again."
)
ALWAYS = (400, 401, 403, 404, 406, 429, 503)
WRITES = (409, 413, 415, 422)


@cache
def page_of(shape: type[serializers.Serializer]) -> type[serializers.Serializer]:
    members = {"items": shape(many=True), "next": shapes.String(allow_null=True, help_text="Key of the next page. Null: this is the last.")}
    return type(f"{shape.__name__}Page", (serializers.Serializer,), {"__doc__": "A page.", **members})


def says(
    summary: str,
    answer: Any,
    *,
    status: int = 200,
    paged: bool = False,
    asks: bool = False,
    asks_only: bool = False,
    body: Any = None,
    writes: bool = False,
    once: bool = False,
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[Handler], Handler]:
    """`asks`: the node, which may not answer in time; `asks_only`: it must, or nothing is known; `once`: takes an Idempotency-Key. `answer` may be one by
    status and media type."""
    found: dict[Any, Any] = dict(answer) if isinstance(answer, dict) else {status: page_of(answer) if paged else answer}
    if asks:
        found[202] = shapes.ControlRequest
    changing = writes or asks or once or body is not None
    for number in (*ALWAYS, *(WRITES if changing else (409,) if asks_only else ())):
        found[number, problems.MEDIA_TYPE] = shapes.ProblemDocument
    given = [*parameters, *([LIMIT, AFTER] if paged else ()), *([KEY] if once else ()), *([LOCATION] if asks or status == 201 else ())]

    def document(handler: Handler) -> Handler:
        handler.media_types = frozenset(key[1] for key in found if isinstance(key, tuple))  # type: ignore[attr-defined]
        handler.query_names = frozenset(each.name for each in given if each.location == OpenApiParameter.QUERY)  # type: ignore[attr-defined]
        handler.takes_body = body is not None  # type: ignore[attr-defined]
        name = handler.__qualname__.replace(".", "_").lower()
        return extend_schema(operation_id=name, summary=summary, request=body, responses=found, parameters=given)(handler)

    return document


def close_bodies(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A hook of drf-spectacular: what clients send has no other members."""
    for name, component in result["components"]["schemas"].items():
        if name.endswith("Body"):
            component["additionalProperties"] = False
    return result
