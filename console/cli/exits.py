"""How a command ends."""

from dataclasses import dataclass, field
from typing import Any

DONE = 0
REFUSED = 1
"""The service, its node, or who was asked said no: nothing was done."""
USAGE = 2
"""The command line is wrong: nothing was asked."""
UNREACHABLE = 3
"""No service, no database or no node answered: nothing was done."""
NOT_ALLOWED = 4
"""The token is wrong, or this person or token may not do it."""
UNFINISHED = 5
"""It was asked, and has not ended, or not as it should: what became of it is not known, or the sentence says it."""
STOPPED = 130
"""Ctrl-C."""
_BY_STATUS = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 429: NOT_ALLOWED, 500: UNFINISHED, 502: UNREACHABLE, 503: UNREACHABLE, 504: UNREACHABLE}


@dataclass(eq=False)
class Ended(Exception):
    """A command ends before it is done."""

    code: int
    sentence: str
    problem: dict[str, Any] = field(default_factory=dict)
    """The problem document, if the service sent one."""


def refusal(status: int, document: Any) -> Ended:
    """Of an answer that is none of success."""
    if not isinstance(document, dict) or "code" not in document:
        return Ended(_BY_STATUS.get(status, REFUSED), f"The answer is {status}, and not as this service answers: is the address right?")
    others = [f"{each['field']}: {each['message']}" for each in document.get("errors", ())[1:]]
    sentence = "\n".join([str(document.get("detail") or document.get("title")), *others])
    code = UNFINISHED if document["code"] == "call-unanswered" else _BY_STATUS.get(status, REFUSED)
    return Ended(code, f"{sentence} [{document['code']}]", document)
