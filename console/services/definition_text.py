"""YAML as definitions need it: a document of bounded size and depth without anchors, aliases and tags, read with the line of everything in it.

Words mean what they mean in JSON: `true`, `false`, `null` and decimal numbers; all else is a text, `no` and `12:30` among them. Names are always texts.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

OCTETS_MAX = 1_048_576
DEPTH_MAX = 8
VALUES_MAX = 200_000
"""Of all kinds: what a document of this size can hold must fit in memory, too."""
Path = tuple[str | int, ...]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_FLOAT = re.compile(r"-?[0-9]{1,300}\.[0-9]{0,300}([eE][-+][0-9]{1,3})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InvalidDefinitions(ValueError):
    """Nothing was applied; `errors` has pairs of a path in the document and a sentence."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        path, sentence = errors[0]
        super().__init__(f"{path}: {sentence}" if path else sentence)
        self.errors = errors


class Document:
    """What was read, and on which line each part of it stands."""

    def __init__(self, text: str) -> None:
        """Raises InvalidDefinitions."""
        self.lines: dict[Path, int] = {}
        self._values = 0
        try:
            self.value = self._read(yaml.parse(text, Loader=yaml.CSafeLoader))
        except yaml.MarkedYAMLError as error:
            line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
            raise InvalidDefinitions([("", f"{line}this is not YAML: {error.problem or error.context}.")]) from error
        except yaml.YAMLError as error:
            raise InvalidDefinitions([("", "The document has characters that YAML does not allow.")]) from error

    def error(self, path: Path, sentence: str) -> tuple[str, str]:
        while path not in self.lines and path:
            path = path[:-1]
        line = f"line {self.lines[path]}: " if path in self.lines else ""
        return shown(path), f"{line}{sentence}"

    def _read(self, events: Iterator[Any]) -> Any:
        value = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and value is not None:
                raise InvalidDefinitions([("", "There is more than one document: send them one by one.")])
            if isinstance(event, yaml.NodeEvent):
                value = self._value(event, events, ())
        return value

    def _value(self, event: Any, events: Iterator[Any], path: Path) -> Any:
        self.lines[path] = event.start_mark.line + 1
        self._values += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._no(path, "anchors and aliases are not read: write out what they stand for.")
        if event.tag is not None:
            raise self._no(path, "tags are not read: leave it out.")
        if len(path) > DEPTH_MAX:
            raise self._no(path[:2], f"nothing here is deeper than {DEPTH_MAX} levels.")
        if self._values > VALUES_MAX:
            raise self._no(path[:1], f"a document has at most {VALUES_MAX} values.")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, path)
        if isinstance(event, yaml.SequenceStartEvent):
            found: list[Any] = []
            while not isinstance(each := next(events), yaml.SequenceEndEvent):
                found.append(self._value(each, events, (*path, len(found))))
            return found
        return self._scalar(event, path)

    def _mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(name := next(events), yaml.MappingEndEvent):
            if not isinstance(name, yaml.ScalarEvent) or name.anchor is not None or name.tag is not None:
                raise self._no(path, "each name must be a text, without anchor and tag.")
            text = self._text(name.value, path)
            if text in found:
                raise self._no((*path, text), f"the name is there twice, again on line {name.start_mark.line + 1}.")
            found[text] = self._value(next(events), events, (*path, text))
            self.lines[*path, text] = name.start_mark.line + 1
        return found

    def _scalar(self, event: Any, path: Path) -> Any:
        text = self._text(event.value, path)
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _text(self, text: str, path: Path) -> str:
        if any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in text):
            raise self._no(path, "a text has NUL or half of a surrogate pair in it.")
        return text

    def _no(self, path: Path, sentence: str) -> InvalidDefinitions:
        return InvalidDefinitions([self.error(path, sentence)])


def shown(path: Path) -> str:
    """A path in the document, as in destinations["queue/a.b"].max_messages or access[3]."""
    text = ""
    for each in path:
        if isinstance(each, int):
            text += f"[{each}]"
        elif _PLAIN.fullmatch(each):
            text += f".{each}" if text else each
        else:
            text += f'["{each[:300]}"]'
    return text


def written(value: Any) -> str:
    """The document of a value; the same value is the same document, always."""
    return str(yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, default_flow_style=False, width=160))


class _Plain(yaml.SafeDumper):
    """Writes the same list twice instead of an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represented(dumper: _Plain, text: str) -> Any:
    """What is not printable is escaped, which only double quotes allow."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Plain.add_representer(str, _represented)
