"""The command line: what holds for every command, and what the call of one takes; and what was typed, in the form that the call wants."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from . import described, exits
from .commands import COMMANDS, Command
from .described import BODY, HEADER, JSON, PATH, Argument, Described

PROGRAM = "manage.py mq"
PAIR_OPTION = "option"
"""As in imqcmd: -o NAME=VALUE."""
SECRET_PAIRS = ("passcode",)
"""Of a link: not to be seen in a list of processes."""
FILE_OCTETS_MAX = 8 << 20
EXITS = """exit codes: 0 done; 1 refused, nothing was done; 2 the command line is wrong; 3 no service, database or node answered;
4 the token is wrong or may not do it; 5 asked, and not ended, or not as it should; 130 Ctrl-C. More: docs/operations.md"""


@dataclass(slots=True)
class Typed:
    """A call, as far as the command line says it."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise exits.Ended(exits.USAGE, f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def everywhere() -> Parser:
    """Options of every command."""
    parser = Parser(PROGRAM, add_help=False, allow_abbrev=False)
    shared = parser.add_argument_group("every command")
    shared.add_argument("--json", action="store_true", help="print the API's answer, for scripts; problems go to standard error, as JSON too")
    shared.add_argument("-f", "--force", action="store_true", help="ask nobody")
    shared.add_argument("--url", help="of the console of another machine; SURETY_URL. Without one: this installation, in this process")
    shared.add_argument("--token-file", metavar="FILE", help="holds the token for --url; - for standard input")
    shared.add_argument("--token", help="the same, but everybody on this machine can read it: better SURETY_TOKEN or --token-file")
    shared.add_argument("--ca", metavar="FILE", help="PEM file of the authority of the console's certificate; else those of this machine")
    shared.add_argument("--plain-http", action="store_true", help="send the token to another machine without TLS all the same")
    shared.add_argument("--as", dest="operator", metavar="NAME", help="without --url: as this operator, with his rights")
    return parser


def general_help() -> str:
    verbs: dict[str, list[str]] = {}
    for command in COMMANDS:
        verbs.setdefault(command.verb, []).append(command.object)
    lines = [f"usage: {PROGRAM} VERB OBJECT [NAME ...] [OPTION ...]", "", "verbs and objects:"]
    lines += [f"  {verb:<11} {' '.join(things)}" for verb, things in verbs.items()]
    lines += ["  completion  bash zsh fish", "", f"One command: {PROGRAM} VERB OBJECT --help", ""]
    return "\n".join(lines) + everywhere().format_help().partition("\n\n")[2] + "\n" + EXITS + "\n"


def parser_of(command: Command, told: Described) -> Parser:
    parser = Parser(
        f"{PROGRAM} {command.name}", description=f"{told.summary}.", epilog=EXITS, parents=[everywhere()], allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for each in told.arguments:
        _add(parser, each)
    if told.paged:
        if told.limited:
            parser.add_argument("--limit", type=_positive, metavar="N", help="at most so many; 100, if you say nothing")
            parser.add_argument("--all", action="store_true", help="all there are")
        parser.add_argument("--after", metavar="KEY", help="go on after the page that ended with it")
    if told.content_type not in ("", JSON):
        parser.add_argument("--file", metavar="FILE", default="-", help="what is sent; - for standard input, which is what is read without this")
    if command.method == "GET" and not told.paged:
        parser.add_argument("--output", metavar="FILE", help="write the answer there; a file that is there stays as it is")
    if command.follows or command.drains or command.compacts:
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the end of the operation")
    return parser


def _add(parser: Parser, each: Argument) -> None:
    destination, text = _key(each), each.help.replace("%", "%%")
    if not each.option:
        parser.add_argument(destination, metavar=each.member.upper(), help=text)
    elif each.secret:
        parser.add_argument(f"--{each.option}-file", dest=destination, metavar="FILE", help="holds it, in one line; - for standard input. " + text)
    elif each.pairs:
        parser.add_argument(
            "-o", f"--{PAIR_OPTION}", dest=destination, action="append", metavar="NAME=VALUE", required=each.required,
            help=f"one of {each.member}: a text, a number, true, false or JSON; NAME=@FILE reads a file",
        )  # fmt: skip
    elif each.kind == "boolean":
        parser.add_argument(f"--{each.option}", dest=destination, action=argparse.BooleanOptionalAction, default=None, required=each.required, help=text)
    elif each.kind == "array":
        items = f"{text} Any number of them.".strip()
        parser.add_argument(f"--{each.option}", dest=destination, action="extend", nargs="*", metavar="ITEM", required=each.required, help=items)
    else:
        choices = [value for value in each.schema.get("enum", ()) if value is not None] or None
        parser.add_argument(
            f"--{each.option}", dest=destination, metavar=None if choices else each.kind.upper(), choices=choices, required=each.required, help=text
        )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:18]) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 on")
    return int(text[:18])


def _key(each: Argument) -> str:
    return f"{each.place}:{each.member}"


# -- what was typed ---------------------------------------------------------------------------------------------------------------------------
def typed(command: Command, told: Described, given: argparse.Namespace, stdin: TextIO) -> Typed:
    """Raises Ended."""
    found = Typed(path={name: str(value) for name, value in command.fixed.items() if f"{{{name}}}" in command.path})
    found.body = {**command.defaults, **{name: value for name, value in command.fixed.items() if name not in found.path}}
    for each in told.arguments:
        value = getattr(given, _key(each))
        if value is None:
            continue
        try:
            _put(found, each, _read(each, value, stdin))
        except ValueError as error:
            raise exits.Ended(exits.USAGE, f"{each.option or each.member}: {error}.") from error
    return found


def _read(each: Argument, value: Any, stdin: TextIO) -> Any:
    """Raises ValueError."""
    if each.secret:
        return line_of(value, stdin)
    if each.pairs:
        return dict(_pair(text, each.schema, stdin) for text in value)
    if each.kind == "array":
        return [described.value_of(text, each.schema.get("items", {})) for text in value]
    if each.kind == "boolean" or each.destination:
        return value  # a destination's number is asked for later
    return described.value_of(value, each.schema) if each.place == BODY else value


def _pair(text: str, schema: dict[str, Any], stdin: TextIO) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if value.startswith("@"):
        return name, read_file(value[1:], stdin).decode().rstrip("\n") if name in SECRET_PAIRS else read_file(value[1:], stdin).decode()
    if name in SECRET_PAIRS:
        raise ValueError(f"everybody on this machine can read what is typed here: write {name}=@FILE")
    return described.pair_of(text, schema)


def _put(found: Typed, each: Argument, value: Any) -> None:
    if each.place == BODY:
        outer, _, inner = each.member.rpartition(".")
        (found.body.setdefault(outer, {}) if outer else found.body)[inner] = value
        return
    text = str(value).lower() if isinstance(value, bool) else str(value)
    {PATH: found.path, HEADER: found.headers}.get(each.place, found.query)[each.member] = text


def line_of(name: str, stdin: TextIO) -> str:
    """The first line of a file: a secret. Raises ValueError."""
    lines = read_file(name, stdin).decode().splitlines()
    if not lines or not lines[0]:
        raise ValueError(f"{name} has nothing in its first line")
    return lines[0]


def read_file(name: str, stdin: TextIO) -> bytes:
    """Raises ValueError with a sentence."""
    try:
        if name == "-":
            read: Callable[[int], bytes] = getattr(stdin, "buffer", stdin).read
            content: bytes | str = read(FILE_OCTETS_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(FILE_OCTETS_MAX + 1)
    except OSError as error:
        raise ValueError(f"{name} cannot be read ({error.strerror})") from error
    octets = content.encode() if isinstance(content, str) else content
    if len(octets) > FILE_OCTETS_MAX:
        raise ValueError(f"{name} has more than {FILE_OCTETS_MAX >> 20} MiB")
    return octets


def split(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """What holds for every command, wherever it stands; and the rest: verb, object and what they take. Raises Ended."""
    return everywhere().parse_known_args(argv)
