"""Prepared branches of distributed transactions: what is in doubt, what is in it, and ending it by hand."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from broker_core.viewing import LEVEL_NAMES
from console import xids
from console.permissions import RESOLVE_TRANSACTIONS, may
from console.selectors import audit, branches
from console.selectors.branches import Branch
from console.services import branches as service
from console.services.audit import look

from .actor import actor_of
from .asked import asked, whole
from .telling import tell

ITEMS, DIGITS_MAX = 100, 18
DONE = {"commit": "committed", "rollback": "rolled back", "forget": "forgotten"}
PREPARED = "prepared"
VIEWS = ("", "ended")
HISTORY = 50


def _number(text: str) -> int:
    return whole(text, DIGITS_MAX)


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Those that are in doubt; with `state=ended` those that somebody ended by hand and nobody has forgotten."""
    actor, wanted = actor_of(request), asked(request, choices={"state": VIEWS}, texts=())
    look(actor, "branch list")
    found, following = branches.page(_number(wanted["after"]), ended=bool(wanted["state"]))
    rows = [(it, xids.parts(it.xid), it.age_seconds) for it in found]
    context = {"asked": wanted, "rows": rows, "following": following, "tabs": _tabs("ended" if wanted["state"] else "")}
    return render(request, "console/transactions.html", context)


def _tabs(current: str) -> list[tuple[str, str, bool]]:
    told = (("", "In doubt", "/transactions"), ("ended", "Ended by hand", "/transactions?state=ended"), ("history", "History", "/transactions/history"))
    return [(words, href, name == current) for name, words, href in told]


@require_safe
def history(request: HttpRequest) -> HttpResponse:
    """What operators did to branches, newest first."""
    wanted = asked(request, texts=())
    look(actor_of(request), "audit")
    before = _number(wanted["after"])
    found = [entry for verb in service.VERBS for entry in audit.page(before, HISTORY + 1, audit.Wanted(what=verb))[0]]
    entries = sorted(found, key=lambda entry: -entry.entry)
    shown = entries[:HISTORY]
    following = str(shown[-1].entry) if len(entries) > HISTORY else ""
    return render(request, "console/transactions_history.html", {"asked": wanted, "entries": shown, "following": following, "tabs": _tabs("history")})


@require_safe
def one(request: HttpRequest, number: str) -> HttpResponse:
    actor, wanted = actor_of(request), asked(request, texts=())
    look(actor, "branch query")
    it = _found(number)
    items, following = branches.items(it.number, _number(wanted["after"]) if wanted["after"] else -1, ITEMS)
    rows = [(item, LEVEL_NAMES[item.reliability]) for item in items]
    context = {
        "it": it, "asked": wanted, "parts": xids.parts(it.xid), "rows": rows, "following": following, "in_doubt": it.state == PREPARED,
        "seconds": it.age_seconds, "may_end": may(actor, RESOLVE_TRANSACTIONS), "tabs": _tabs("none"),
    }  # fmt: skip
    return render(request, "console/transaction.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def end(request: HttpRequest, number: str, verb: str) -> HttpResponse:
    """Commit or roll back what is in doubt, whatever the other branches come to; or forget that somebody did."""
    it, problem = _found(number), ""
    typed = "" if verb == "forget" else xids.tail(it.xid)
    if (verb == "forget") == (it.state == PREPARED):
        messages.warning(request, f"Branch {it.number} is {it.state}.")
        return redirect("transaction", it.number)
    if request.method == "POST":
        if request.POST.get("typed", "") == typed:
            tell(request, f"Branch {it.number}", DONE[verb], service.end(actor_of(request), verb, it.number))
            return redirect("transactions")
        problem = f"Type {typed}, the end of its XID, to say that you mean this one."
    context = {"it": it, "verb": verb, "typed": typed, "problem": problem, "parts": xids.parts(it.xid)}
    return render(request, "console/transaction_end.html", context, status=400 if problem else 200)


def _found(number: str) -> Branch:
    it = branches.by_number(int(number))
    if it is None:
        raise Http404("There is no such branch: it has ended.")
    return it
