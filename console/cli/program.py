"""`manage.py mq`: one command from its words to its exit code."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from urllib.parse import quote, urlencode

from django.conf import settings

from . import completion, exits, options
from .commands import COMMANDS, Command, find
from .described import BODY, COUNTED, JSON, ROOT, Described, describe
from .exits import Ended
from .following import POLL_SECONDS, Following
from .portions import LINES, portions, unfinished
from .showing import Documents, Table, plain, show, warnings_of
from .transports import Answer, InProcess, Remote, Transport, document_of

LIMIT, PAGE_MAX = 100, 1_000
ANSWER_SECONDS = 40
"""A request lapses after thirty."""
PRUNES = "What the document does not have is removed; --dry-run tells what that is."
KEY = "Idempotency-Key"
MAY_HAVE_SLASHES = ("destination", "name")


@dataclass(slots=True)
class Terminal:
    """Where a command reads and writes."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    def say(self, text: str) -> None:
        print(plain(text), file=self.stderr)


def main(argv: Sequence[str], terminal: Terminal | None = None) -> int:
    """The exit code."""
    terminal = terminal or Terminal(sys.stdin, sys.stdout, sys.stderr)
    shared = argparse.Namespace(json=False)
    try:
        shared, rest = options.split(argv)
        code = _run(shared, rest, terminal)
        terminal.stdout.flush()
    except Ended as ended:
        if shared.json and ended.problem:
            print(json.dumps(ended.problem), file=terminal.stderr)
        elif ended.sentence:
            for line in ended.sentence.split("\n"):
                terminal.say(line)
        return ended.code
    except KeyboardInterrupt:
        terminal.say("Stopped.")
        return exits.STOPPED
    except BrokenPipeError:  # who reads has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE
    return code


def _run(shared: argparse.Namespace, rest: Sequence[str], terminal: Terminal) -> int:
    if any("\udc80" <= letter <= "\udcff" for word in rest for letter in word):
        raise Ended(exits.USAGE, "A word of the command line is not in the encoding that this terminal says it has.")
    verb, thing = [*rest, "", ""][:2]
    if not verb or verb in ("-h", "--help", "help"):
        terminal.stdout.write(options.general_help())
        return exits.DONE if verb else exits.USAGE
    if verb == "completion":
        terminal.stdout.write(completion.script(thing))
        return exits.DONE
    command = find(verb, thing)
    if command is None:
        raise Ended(exits.USAGE, _no_command(verb, thing))
    told = describe(command)
    parser = options.parser_of(command, told)
    if {"-h", "--help"} & set(rest[2:]):
        terminal.stdout.write(parser.format_help())
        return exits.DONE
    given = parser.parse_args(rest[2:])
    transport = transport_of(shared, terminal.stdin)
    return _Run(command, told, transport, terminal, given, shared).run()


def _no_command(verb: str, thing: str) -> str:
    things = [each.object for each in COMMANDS if each.verb == verb]
    if things:
        return f"There is no {verb} {thing}".rstrip() + f": {verb} takes {', '.join(things)}."
    return f"There is no {verb}: the verbs are {', '.join(dict.fromkeys(each.verb for each in COMMANDS))}."


def transport_of(shared: argparse.Namespace, stdin: TextIO) -> Transport:
    """Raises Ended."""
    url = settings.COMMAND_URL if shared.url is None else shared.url
    if not url:
        if shared.token or shared.token_file:
            raise Ended(exits.USAGE, "A token goes with --url; this installation is asked without one.")
        return InProcess(shared.operator or "")
    if shared.operator:
        raise Ended(exits.USAGE, "--as is for this installation; elsewhere the token says who asks.")
    try:
        token = options.line_of(shared.token_file, stdin) if shared.token_file else shared.token or settings.COMMAND_TOKEN
    except (ValueError, UnicodeDecodeError) as error:
        raise Ended(exits.USAGE, f"--token-file: {error}.") from error
    return Remote(url, token, authority=shared.ca, plain=shared.plain_http)


def _compactable(found: Mapping[str, Any]) -> str:
    seen = "" if found["looked_at"] == found["segments"] else f" (looked at: {found['looked_at']:,})"
    moved = f"{found['unsettled']:,} of their {found['rows']:,} messages would be moved"
    return f"{found['compactable']:,} of {found['segments']:,} closed segments{seen}, {found['octets']:,} octets, would be compacted: {moved}."


class _Run:
    def __init__(
        self, command: Command, told: Described, transport: Transport, terminal: Terminal, given: argparse.Namespace, shared: argparse.Namespace
    ) -> None:
        self._command, self._told, self._transport, self._terminal = command, told, transport, terminal
        self._given, self._json, self._force = given, shared.json, shared.force
        self._following = Following(transport, terminal.stderr)
        self._typed = options.typed(command, told, given, terminal.stdin)
        if self._dry and any(each.member == COUNTED and each.place == BODY for each in told.arguments):
            self._typed.body.setdefault(COUNTED, 0)
        self._target = " ".join(value for name, value in self._typed.path.items() if name not in command.fixed)

    def run(self) -> int:
        """The exit code. Raises Ended."""
        self._ask_secrets()
        self._find_destinations()
        if self._told.paged:
            return self._list()
        if self._told.content_type == LINES:
            return self._import()
        if not self._dry:
            self._make_sure()
        answer = self._call(self._typed.query, self._body())
        if 200 <= answer.status < 300 and answer.media_type != JSON:
            return self._octets(answer)
        document = self._outcome(answer)
        if self._command.follows and not self._given.no_wait and COUNTED not in document:
            document = self._following.operation(document)
        if self._command.drains and not self._given.no_wait:
            document = self._following.drain()
        if self._command.compacts and not self._dry and not self._given.no_wait:
            document = self._following.compaction(document["number"])
        code = self._tell(document)  # entries of definitions that were not applied are in the answer, each with its sentence
        return exits.UNFINISHED if isinstance(document, dict) and document.get("undone") else code

    # -- what is asked ------------------------------------------------------------------------------------------------------------------------
    @property
    def _dry(self) -> bool:
        return self._typed.query.get("dry_run") == "true"

    def _target_of(self, query: Mapping[str, str]) -> str:
        parts = {name: quote(value) for name, value in self._typed.path.items()}
        return self._command.path.format(**parts) + (f"?{urlencode(query)}" if query else "")

    def _call(self, query: Mapping[str, str], body: bytes | None) -> Answer:
        content_type = self._told.content_type if body is not None else ""
        return self._transport.call(self._command.method, self._target_of(query), body, content_type, self._typed.headers)

    def _body(self) -> bytes | None:
        if self._told.content_type in ("", JSON):
            return json.dumps(self._typed.body).encode() if self._told.content_type else None
        try:
            return options.read_file(self._given.file, self._terminal.stdin)
        except ValueError as error:
            raise Ended(exits.USAGE, f"--file: {error}.") from error

    def _ask_secrets(self) -> None:
        """Those that are needed and were not given in a file."""
        for each in self._told.arguments:
            if not (each.secret and each.required and each.member not in self._typed.body):
                continue
            if not self._terminal.stdin.isatty():
                raise Ended(exits.USAGE, f"Give the {each.member} with --{each.option}-file FILE; - is standard input.")
            first = getpass(f"{each.member}: ", self._terminal.stderr)
            if getpass("again: ", self._terminal.stderr) != first:
                raise Ended(exits.USAGE, "They are not the same.")
            self._typed.body[each.member] = first

    def _find_destinations(self) -> None:
        """Their numbers, where the call wants numbers and people give names."""
        for name, value in self._typed.path.items():
            if "/" in value and name not in MAY_HAVE_SLASHES:  # or it would be the address of another call
                raise Ended(exits.USAGE, f"{name}: {value!r} is none.")
        if "destination" in self._typed.path:
            self._typed.path["destination"] = str(self._number_of(self._typed.path["destination"]))
        for each in self._told.arguments:
            if not each.destination or each.place == "path":
                continue
            outer, _, inner = each.member.rpartition(".")
            holder: dict[str, Any] = self._typed.query if each.place != BODY else self._typed.body.get(outer, {}) if outer else self._typed.body
            if inner in holder:
                number = self._number_of(str(holder[inner]))
                holder[inner] = number if each.place == BODY else str(number)

    def _number_of(self, name: str) -> int:
        digits = name.removeprefix("-")
        if digits.isascii() and digits.isdigit():
            return int(name)
        found = document_of(self._transport.call("GET", f"destinations?{urlencode({'address': name})}"))["items"]
        if not found:
            raise Ended(exits.REFUSED, f"There is no destination {name}, or you may not see it. [not-found]")
        return int(found[0]["number"])

    # -- asking before ------------------------------------------------------------------------------------------------------------------------
    def _make_sure(self) -> None:
        """A person agrees to what discards or deletes, and has seen how much. Raises Ended."""
        prunes = self._typed.query.get("prune") == "true"
        asks = self._command.asks is not None or self._command.method == "DELETE" or self._told.counts or prunes
        if not asks:
            return
        counted = self._counted() if self._told.counts else ""
        if self._force:
            return
        reasons = " ".join(part for part in (counted, self._command.asks or "", PRUNES if prunes else "") if part)
        question = f"{self._command.name} {self._target}".rstrip()
        self._terminal.stderr.write(plain(f"{reasons} " if reasons else "") + plain(f"{question}? Type yes to go on: "))
        self._terminal.stderr.flush()
        answer = self._terminal.stdin.readline()
        if answer.strip() != "yes":
            ending = "" if answer else "\nNobody answers here: --force asks nobody."
            raise Ended(exits.REFUSED, f"Nothing was done.{ending}")

    def _counted(self) -> str:
        """What the dry run counts, as a sentence; the call is given the depth that it says."""
        depth = next((each for each in self._told.arguments if each.member == COUNTED), None)
        given = depth is not None and COUNTED in {**self._typed.query, **self._typed.body}
        if depth is not None and not given and self._typed.headers:
            raise Ended(exits.USAGE, "--idempotency-key goes with --depth: a repetition is the very same call, and what is counted is not.")
        if self._force and (depth is None or given):
            return ""
        body = {COUNTED: 0, **self._typed.body} if depth is not None and depth.place == BODY else self._typed.body
        answer = self._call({**self._typed.query, "dry_run": "true"}, json.dumps(body).encode() if self._told.content_type else None)
        found = self._outcome(answer)
        if self._command.follows and COUNTED not in found:
            found = self._following.operation(found)
            return f"{self._target}: {found['done']:,} messages of {found['looked_at']:,} that were looked at."
        if self._command.compacts:
            return _compactable(found)
        if found[COUNTED] is None:
            if given or depth is None:
                return "How many messages there are is not known."
            raise Ended(exits.UNREACHABLE, "How many messages there are is not known: no node tells it. Nothing was done; say --depth if you know.")
        if depth is not None and not given:
            (self._typed.body if depth.place == BODY else self._typed.query)[COUNTED] = found[COUNTED]
        kept = f", {found['kept']:,} stay with their consumers" if found["kept"] else ""
        delayed = f", and {found['scheduled']:,} delayed ones" if found["scheduled"] else ""
        return f"{found['address']}: {found['discarded']:,} of {found['depth']:,} messages would be discarded{delayed}{kept}."

    # -- what is answered ---------------------------------------------------------------------------------------------------------------------
    def _outcome(self, answer: Answer) -> Any:
        """What became of it; a node that is late is waited for. Raises Ended."""
        document = document_of(answer)
        ends = time.monotonic() + ANSWER_SECONDS
        where = answer.headers.get("location", "").removeprefix(ROOT)
        while answer.status == 202 and document["state"] == "waiting":
            if time.monotonic() > ends:
                raise Ended(exits.UNFINISHED, f"The node has not answered: `query request {document['number']}` tells what became of it.")
            time.sleep(POLL_SECONDS)
            document = document_of(self._transport.call("GET", where))
        if answer.status == 202 and document["state"] != "done":
            words = (document["result"] or {}).get("message", "no node answered in time, and none will do it any more")
            raise Ended(exits.REFUSED if document["state"] == "refused" else exits.UNREACHABLE, f"{words[:1].upper()}{words[1:]}. [{document['state']}]")
        return document

    def _tell(self, document: Any) -> int:
        if self._json:
            print(json.dumps(document), file=self._terminal.stdout)
        else:
            for each in warnings_of(document):
                self._terminal.say(f"Warning: {each}")
            show(document, self._terminal.stdout, self._command.columns.split())
        return exits.DONE

    def _import(self) -> int:
        """By as many calls as it takes; each sends all of its lines, or none. Raises Ended."""
        sent, line, key = 0, 1, self._typed.headers.get(KEY)
        try:
            for part, lines in enumerate(portions(self._given.file, self._terminal.stdin)):
                if part and key is not None:
                    self._typed.headers[KEY] = f"{key}.{part}"
                sent += self._outcome(self._call(self._typed.query, lines))["sent"]
                line += lines.count(b"\n")
        except (Ended, ValueError, KeyboardInterrupt) as stopped:
            if line > 1:
                raise unfinished(stopped, sent, line) from stopped
            if not isinstance(stopped, ValueError):
                raise
            raise Ended(exits.USAGE, f"--file: {stopped}.") from stopped
        return self._tell({"sent": sent})

    def _octets(self, answer: Answer) -> int:
        """A body, or lines of messages, as they come."""
        if self._given.output is None and self._terminal.stdout.isatty() and not answer.media_type.endswith("json"):
            raise Ended(exits.USAGE, "It may hold what a terminal obeys: give --output FILE, or read it by another program.")
        with self._sink() as sink:
            for piece in answer.pieces:
                sink.write(piece)
        return exits.DONE

    @contextmanager
    def _sink(self) -> Iterator[BinaryIO]:
        if self._given.output is None:
            self._terminal.stdout.flush()
            yield self._terminal.stdout.buffer
            return
        try:
            with Path(self._given.output).open("xb") as file:
                yield file
        except OSError as error:
            raise Ended(exits.USAGE, f"{self._given.output} cannot be written ({error.strerror}).") from error

    # -- lists ----------------------------------------------------------------------------------------------------------------------------------
    def _list(self) -> int:
        limit = None if not self._told.limited or self._given.all else self._given.limit or LIMIT
        table, documents = Table(self._command.columns.split(), self._terminal.stdout), Documents(self._terminal.stdout)
        sink = documents if self._json else table
        others: dict[str, Any] = {}
        sums: dict[tuple[Any, ...], dict[str, Any]] = {}
        for page in self._pages(limit):
            items = page.pop("items")
            others = {**page, **({"looked_at": others.get("looked_at", 0) + page["looked_at"]} if "looked_at" in page else {})}
            if self._command.adds:
                _add(sums, items, self._command.adds.split())
            else:
                sink.add(items)
        sink.add(list(sums.values()))
        if self._json:
            documents.end(others)
        elif not table.widths:
            self._terminal.say("There is none." if not others.get("looked_at") else f"None of the {others['looked_at']:,} that were looked at.")
        if not self._json and others.get("next"):
            self._terminal.say(f"There is more: --after {others['next']}, --limit or --all.")
        return exits.DONE

    def _pages(self, limit: int | None) -> Iterator[dict[str, Any]]:
        """Until so many items are there; None: all."""
        after = self._given.after
        while True:
            size = {"limit": str(PAGE_MAX if limit is None else min(limit, PAGE_MAX))} if self._told.limited else {}
            query = {**self._typed.query, **size, **({"after": after} if after is not None else {})}
            page = document_of(self._call(query, None))
            if limit is not None:
                limit -= len(page["items"])
            after = page["next"]
            yield page
            if after is None or (limit is not None and limit <= 0):
                return


def _add(sums: dict[tuple[Any, ...], dict[str, Any]], items: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    for item in items:
        sum_ = sums.setdefault(tuple(item[name] for name in names), {**item, "count": 0, "octets": 0})
        sum_["count"] += item["count"]
        sum_["octets"] += item["octets"]
        sum_["first_at"], sum_["last_at"] = min(sum_["first_at"], item["first_at"]), max(sum_["last_at"], item["last_at"])
