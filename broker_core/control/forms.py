"""What each verb takes: whether it concerns a destination, and what is wrong with arguments that the node would only refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker_core.engine.aliases import problem as alias_problem
from broker_core.engine.commands import Direction
from broker_core.engine.compaction import PERCENT_MAX
from broker_core.engine.message import LANES
from broker_core.engine.operation import problem as operation_problem
from broker_core.engine.settings import NAMES, Settings

DEPTH_MAX = (1 << 63) - 1
DELIVERIES_MAX = 1_000
"""That one release names."""
REASON_CHARACTERS_MAX = 255
NODE_CHARACTERS_MAX = 255
DRAIN_SECONDS_MAX = 86_400
DIRECTIONS = tuple(direction.name for direction in Direction)


@dataclass(slots=True, frozen=True)
class Form:
    """What a verb takes."""

    addressed: bool
    """It concerns one destination, whose address must be given."""
    problem: Callable[[Mapping[str, Any]], str]
    """A sentence that says what is wrong with the arguments, or nothing."""
    reserved: bool = True
    """May concern destinations of the broker itself."""
    pattern: bool = False
    """The address is a pattern of queues or topics."""


def _settings(arguments: Mapping[str, Any]) -> str:
    return Settings.problem(dict(arguments))


def _changed_settings(arguments: Mapping[str, Any]) -> str:
    nothing = "" if arguments else f"an update names at least one setting; the settings are {', '.join(NAMES)}"
    return _settings(arguments) or nothing


def _direction(arguments: Mapping[str, Any]) -> str:
    if set(arguments) == {"direction"} and arguments["direction"] in DIRECTIONS:
        return ""
    return f"name the direction: one of {', '.join(DIRECTIONS)}"


def _depth(arguments: Mapping[str, Any]) -> str:
    depth = arguments.get("depth")
    if set(arguments) == {"depth"} and type(depth) is int and 0 <= depth <= DEPTH_MAX:
        return ""
    return "name the depth you saw, a whole number of messages: nobody should discard messages without knowing how many"


def _destruction(arguments: Mapping[str, Any]) -> str:
    """`if_unused`: refused if anybody uses it, or anything is in it."""
    if not isinstance(arguments.get("if_unused", False), bool):
        return "if_unused is true or false"
    return _depth({name: value for name, value in arguments.items() if name != "if_unused"})


def _alias(arguments: Mapping[str, Any]) -> str:
    return alias_problem(arguments) or ("" if "target" in arguments else "name the target, the destination that it stands for")


def _changed_alias(arguments: Mapping[str, Any]) -> str:
    return alias_problem(arguments) or ("" if arguments else "an update names what is to change")


def _nothing(arguments: Mapping[str, Any]) -> str:
    return "this takes no arguments" if arguments else ""


def _number(arguments: Mapping[str, Any], what: str, of: str) -> str:
    number = arguments.get(what)
    if set(arguments) == {what} and type(number) is int and 0 < number <= DEPTH_MAX:
        return ""
    return f"name the {of}, a whole number"


_branch = partial(_number, what="branch", of="branch: its number in surety.prepared")
_operation = partial(_number, what="operation", of="operation: its number")
_undo = partial(_number, what="undo", of="purge: its number")


def _founding(arguments: Mapping[str, Any]) -> str:
    """See engine.founding."""
    if unknown := sorted(set(arguments) - {"name", "client_id", "account", "shared", "selector", "no_local"}):
        return f"a subscription does not take {unknown[0]}"
    if not all(isinstance(arguments.get(name, "x"), str) for name in ("name", "client_id", "account", "selector")):
        return "name, client_id, account and selector are texts"
    if not (arguments.get("name") and arguments.get("account")):
        return "name the subscription, and the account that it belongs to"
    flags = all(isinstance(arguments.get(name, False), bool) for name in ("shared", "no_local"))
    return "" if flags else "shared and no_local are true or false"


def _ending(arguments: Mapping[str, Any]) -> str:
    number = arguments.get("subscription")
    if set(arguments) - {"force"} == {"subscription"} and type(number) is int and 0 < number <= DEPTH_MAX and isinstance(arguments.get("force", False), bool):
        return ""
    return "name the subscription, by its number; force is true or false"


def _subscriptions(arguments: Mapping[str, Any]) -> str:
    numbers = arguments.get("numbers")
    if set(arguments) != {"numbers"} or not isinstance(numbers, list) or len(numbers) > DELIVERIES_MAX or any(type(number) is not int for number in numbers):
        return f"numbers are those of subscriptions, {DELIVERIES_MAX} at the most"
    return ""


def _numbers(arguments: Mapping[str, Any]) -> str:
    for name, value in arguments.items():
        if type(value) is not int or not 0 <= value <= DEPTH_MAX:
            return f"{name} must be a whole number, 0 or greater"
    return ""


def _look(arguments: Mapping[str, Any]) -> str:
    """See engine.looking."""
    if unknown := sorted(set(arguments) - {"subscription", "from", "newest_first", "positions", "messages", "bodies"}):
        return f"a look does not take {unknown[0]}"
    for name in ("positions", "messages"):
        value = arguments.get(name, 1)
        if type(value) is not int or not 0 < value <= DEPTH_MAX:
            return f"{name} must be a whole number, 1 or greater"
    place = arguments.get("from")
    if place is not None and not (isinstance(place, list) and len(place) == 2 and all(type(each) is int for each in place)
                                  and 0 <= place[0] < LANES and 0 <= place[1] <= DEPTH_MAX):  # fmt: skip
        return "from must be a lane and a position"
    if not isinstance(arguments.get("subscription", 0), int):
        return "subscription must be a number"
    return "" if all(isinstance(arguments.get(name, False), bool) for name in ("newest_first", "bodies")) else "newest_first and bodies are true or false"


def _listing(arguments: Mapping[str, Any]) -> str:
    """See engine.presence."""
    if unknown := sorted(set(arguments) - {"after", "limit", "only", "connection", *_LISTED_OF}):
        return f"a list does not take {unknown[0]}"
    numbers = [arguments.get(name, 0) for name in ("after", "limit", "only", "connection")]
    wrong = any(type(number) is not int or not 0 <= number <= DEPTH_MAX for number in numbers) or arguments.get("limit") == 0
    texts = all(isinstance(arguments.get(name, ""), str) for name in _LISTED_OF)
    return "after, limit, only and connection are whole numbers, all else is a text" if wrong or not texts else ""


_LISTED_OF = ("destination", "account", "client_id")


def _held(arguments: Mapping[str, Any]) -> str:
    if unknown := sorted(set(arguments) - {"consumer", "deliveries", "after", "limit"}):
        return f"this does not take {unknown[0]}"
    deliveries = arguments.get("deliveries", [])
    if not isinstance(deliveries, list) or len(deliveries) > DELIVERIES_MAX or any(type(tag) is not int for tag in deliveries):
        return f"deliveries are their numbers, {DELIVERIES_MAX} at the most"
    numbers = [arguments.get(name, 1) for name in ("after", "limit")] + [arguments.get("consumer")]
    return "name the consumer, by its number" if any(type(number) is not int or not 0 <= number <= DEPTH_MAX for number in numbers) else ""


def _delayed(arguments: Mapping[str, Any]) -> str:
    """See engine.rescheduling."""
    action, moves = arguments.get("action"), arguments.get("action") == "reschedule"
    if action not in ("cancel", "deliver", "reschedule") or set(arguments) != {"schedule", "due_at", "action", *(["at"] if moves else [])}:
        return "name the delayed message by its number and by when it is due, and the action: cancel, deliver, or reschedule with the instant"
    numbers = [arguments["schedule"], arguments["due_at"], arguments.get("at", 1)]
    return "" if all(type(number) is int and 0 < number <= DEPTH_MAX for number in numbers) else "numbers and instants are whole numbers"


def _dismissal(arguments: Mapping[str, Any], what: str = "connection") -> str:
    number, reason = arguments.get(what), arguments.get("reason")
    if set(arguments) != {what, "reason"} or type(number) is not int or not 0 < number <= DEPTH_MAX:
        return f"name the {what}, by its number, and the reason"
    if not isinstance(reason, str) or not 0 < len(reason) <= REASON_CHARACTERS_MAX or not reason.isprintable():
        return f"give a reason, which the client is told: 1 to {REASON_CHARACTERS_MAX} printable characters"
    return ""


def _term(arguments: Mapping[str, Any], **others: Callable[[Any], bool]) -> str:
    """Of the node itself, not of what it holds: `epoch` says which term is meant, so that the next one is not quiesced by what was asked of this one."""
    epoch = arguments.get("epoch")
    if set(arguments) != {"epoch", *others} or type(epoch) is not int or not 0 < epoch <= DEPTH_MAX:
        return f"give these and nothing else: {', '.join(['epoch, that of the node that serves', *others])}"
    wrong = [name for name, fits in others.items() if not fits(arguments[name])]
    return f"{wrong[0]} cannot be {arguments[wrong[0]]!r:.80}" if wrong else ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NODE_CHARACTERS_MAX and value.isprintable()


def _drain(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, seconds=lambda value: type(value) is int and 0 <= value <= DRAIN_SECONDS_MAX)


def _taking_over(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, node=_is_name)


def _listener(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, listener=_is_name)


def _percent(arguments: Mapping[str, Any]) -> str:
    percent = arguments.get("percent")
    if set(arguments) == {"percent"} and type(percent) is int and 0 <= percent <= PERCENT_MAX:
        return ""
    return f"name the percent of a segment that may be unsettled, a whole number up to {PERCENT_MAX}"


VERBS: Mapping[str, Form] = {
    "create": Form(addressed=True, problem=_settings, reserved=False),
    "update": Form(addressed=True, problem=_changed_settings),
    "create_alias": Form(addressed=True, problem=_alias, reserved=False),
    "update_alias": Form(addressed=True, problem=_changed_alias, reserved=False),
    "delete_alias": Form(addressed=True, problem=_nothing, reserved=False),
    "set_policy": Form(addressed=True, problem=_changed_settings, pattern=True),
    "drop_policy": Form(addressed=True, problem=_nothing, pattern=True),
    "pause": Form(addressed=True, problem=_direction, reserved=False),
    "resume": Form(addressed=True, problem=_direction, reserved=False),
    "purge": Form(addressed=True, problem=_depth),
    "destroy": Form(addressed=True, problem=_destruction, reserved=False),
    "undo": Form(addressed=True, problem=_undo),
    "give_up": Form(addressed=True, problem=_undo),
    "subscribe": Form(addressed=True, problem=_founding, reserved=False),
    "unsubscribe": Form(addressed=False, problem=_ending),
    "subscriptions": Form(addressed=False, problem=_subscriptions),
    "browse": Form(addressed=True, problem=_look),
    "connections": Form(addressed=False, problem=_listing),
    "consumers": Form(addressed=False, problem=_listing),
    "producers": Form(addressed=False, problem=_listing),
    "transactions": Form(addressed=False, problem=_listing),
    "unsettled": Form(addressed=False, problem=_held),
    "release": Form(addressed=False, problem=_held),
    "delayed": Form(addressed=True, problem=_delayed),
    "detach": Form(addressed=False, problem=partial(_dismissal, what="consumer")),
    "disconnect": Form(addressed=False, problem=_dismissal),
    "operate": Form(addressed=True, problem=operation_problem),
    "cancel": Form(addressed=True, problem=_operation),
    "quiesce": Form(addressed=False, problem=_term),
    "unquiesce": Form(addressed=False, problem=_term),
    "drain": Form(addressed=False, problem=_drain),
    "take_over": Form(addressed=False, problem=_taking_over),
    "pause_listener": Form(addressed=False, problem=_listener),
    "resume_listener": Form(addressed=False, problem=_listener),
    "compact": Form(addressed=False, problem=_percent),
    "compactable": Form(addressed=False, problem=_percent),
    "commit": Form(addressed=False, problem=_branch),
    "rollback": Form(addressed=False, problem=_branch),
    "forget": Form(addressed=False, problem=_branch),
    "expire": Form(addressed=False, problem=_numbers),
    "reap": Form(addressed=False, problem=_numbers),
    "ledger": Form(addressed=False, problem=_numbers),
    "retain": Form(addressed=False, problem=_numbers),
}
"""The last four are the scheduler's, the rest operators' verbs: `operate` begins an operation on many messages (engine.operation), which has the request's
number, and `cancel` ends one. Six are about the node itself (server.managing). Three are of prepared branches of distributed transactions, to end one by
hand and to forget that one was ended so."""
LOOKS = frozenset(("subscriptions", "browse", "connections", "consumers", "producers", "transactions", "unsettled", "compactable"))
"""The verbs that change nothing: the answer is for who asked alone, as it may hold messages, and he takes it away (`take`)."""
