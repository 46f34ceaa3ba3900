"""The log as lines of JSON, for who collects logs: one object a line, what was said in `message`, what it was about in members of their own."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime

TRACE_CHARACTERS_MAX = 20_000
"""Of a Python traceback: one line of the log stays one."""


class JsonLines(logging.Formatter):
    """A record's `fields`, a dictionary of texts given as `extra`, are members beside the ones that all have."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": at, "level": record.levelname, "logger": record.name, "message": record.getMessage(), "process": record.process}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-TRACE_CHARACTERS_MAX:]
        return json.dumps({**getattr(record, "fields", {}), **line}, ensure_ascii=False, default=str)


def speak_json(handlers: Iterable[logging.Handler]) -> None:
    for handler in handlers:
        handler.setFormatter(JsonLines())
