"""What a command takes: the parameters and the body of its call, as the OpenAPI document has them, as arguments of a command line."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from console.api.state import document

from .commands import Command

ROOT = "/api/v1/"
PATH, QUERY, HEADER, BODY = "path", "query", "header", "body"
IDENTIFYING = ("address", "name", "pattern")
"""Required members of a body that name what is made: they are given without an option."""
PAIRED = "settings"
PAGING = ("limit", "after")
JSON = "application/json"
BOUND_SHOWN = 1 << 53
COUNTED = "depth"
"""What the dry run of a call counts, and the call needs."""


@dataclass(slots=True, frozen=True)
class Argument:
    place: str
    """One of PATH, QUERY, HEADER, BODY."""
    member: str
    """Its name there, with a dot into what is nested."""
    option: str
    """Without the dashes; empty: it is given without an option."""
    schema: dict[str, Any]
    required: bool = False

    @property
    def kind(self) -> str:
        return str(self.schema.get("type", "any"))

    @property
    def secret(self) -> bool:
        return bool(self.schema.get("writeOnly"))

    @property
    def pairs(self) -> bool:
        """Given as NAME=VALUE, any number of them."""
        return self.kind == "object"

    @property
    def destination(self) -> bool:
        """A number that people give as queue/NAME or topic/NAME."""
        return self.member.rpartition(".")[2] == "destination" and self.kind != "string"

    @property
    def help(self) -> str:
        text = re.sub(r"\s*\n?\* `.*", "", str(self.schema.get("description", "")), flags=re.DOTALL).strip()
        known = [(word, self.schema[name]) for word, name in (("from", "minimum"), ("to", "maximum")) if name in self.schema]
        bounds = [f"{word} {value}" for word, value in known if abs(value) < BOUND_SHOWN]
        return " ".join(part for part in (text, f"({' '.join(bounds)})" if bounds else "") if part)


@dataclass(slots=True, frozen=True)
class Described:
    summary: str
    arguments: tuple[Argument, ...]
    paged: bool
    """Its pages are fetched one after the other."""
    limited: bool
    """A page has at most so many as are asked for."""
    counts: bool
    """It has a dry run that counts messages."""
    content_type: str
    """Of the body; empty: there is none."""


@cache
def operations() -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
    """The path and the description of every call, by its method and its form."""
    return {
        (method.upper(), form(path.removeprefix(ROOT))): (path, described)
        for path, methods in document()["paths"].items()
        for method, described in methods.items()
    }


def form(path: str) -> str:
    """With a star for every name, as each side names them for itself."""
    return re.sub(r"\{\w+\}", "*", path)


def describe(command: Command) -> Described:
    """Raises KeyError: the API has no such call."""
    path, told = operations()[command.method, form(command.path)]
    listed = told.get("parameters", ())
    bodies: dict[str, Any] = told.get("requestBody", {}).get("content", {})
    content_type = JSON if JSON in bodies else next(iter(bodies), "")
    names = {each["name"] for each in listed if each["in"] == QUERY}
    paged = command.method == "GET" and "after" in names
    found = [*_of_path(command, path), *_of_parameters(command, listed, paged)]
    if content_type == JSON:
        found += _of_body(command, _schema(bodies[JSON]["schema"]), {*command.defaults, *([COUNTED] if "dry_run" in names else ())})
    order = sorted(found, key=lambda each: bool(each.option))
    return Described(str(told["summary"]), tuple(order), paged, "limit" in names, "dry_run" in names and content_type in ("", JSON), content_type)


def _of_path(command: Command, path: str) -> Iterator[Argument]:
    for name in re.findall(r"\{(\w+)\}", command.path):
        if name not in command.fixed:
            yield Argument(PATH, name, "", {"type": "any" if name == "destination" else "string"}, required=True)


def _of_parameters(command: Command, listed: Any, paged: bool) -> Iterator[Argument]:
    for each in listed:
        if each["in"] == PATH or (paged and each["name"] in PAGING):
            continue
        schema = {**_schema(each["schema"]), "description": each.get("description", "")}
        yield Argument(each["in"], each["name"], command.names.get(each["name"]) or _dashed(each["name"]), schema, bool(each.get("required")))


def _of_body(command: Command, schema: dict[str, Any], known: set[str]) -> Iterator[Argument]:
    """`known`: members that need not be given."""
    needed = set(schema.get("required", ()))
    for name, each in schema.get("properties", {}).items():
        if name in command.fixed:
            continue
        inner = _schema(each)
        if inner.get("type") == "object" and "properties" in inner and name != PAIRED:
            for part, nested in inner["properties"].items():
                member = f"{name}.{part}"
                yield Argument(BODY, member, command.names.get(member) or _dashed(part), _schema(nested))
            continue
        required = name in needed - known
        option = "" if required and name in IDENTIFYING else command.names.get(name) or _dashed(name)
        yield Argument(BODY, name, option, inner, required)


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """With what it refers to in place of the reference."""
    whole = dict(schema)
    for part in [*whole.pop("allOf", ()), {"$ref": whole.pop("$ref")} if "$ref" in whole else {}]:
        if "$ref" in part:
            whole = {**document()["components"]["schemas"][part["$ref"].rpartition("/")[2]], **whole}
    return whole


# -- values ---------------------------------------------------------------------------------------------------------------------------------
def value_of(text: str, schema: dict[str, Any]) -> Any:
    """What was typed, as the call wants it. Raises ValueError with a sentence."""
    kind = schema.get("type")
    if kind == "string":
        return text
    if kind == "boolean":
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} must be true or false")
        return text == "true"
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            raise ValueError(f"{text!r} must be a {'whole ' if kind == 'integer' else ''}number") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def pair_of(text: str, schema: dict[str, Any]) -> tuple[str, Any]:
    """NAME=VALUE, or NAME=@FILE. Raises ValueError with a sentence."""
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise ValueError(f"{text!r} must be NAME=VALUE")
    return name, value_of(value, schema.get("properties", {}).get(name, {}))
