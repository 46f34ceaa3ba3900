"""Lines of JSON: whatever is logged is one line that can be read."""

from __future__ import annotations

import io
import json
import logging

from broker_core.logs import speak_json


def test_a_line_is_an_object_with_what_it_is_about_and_an_exception_does_not_break_it() -> None:
    log, written = logging.getLogger("surety.test.json"), io.StringIO()
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(logging.StreamHandler(written))
    speak_json(log.handlers)
    log.info("%s died", "a\nb", extra={"fields": {"traceparent": "00-aa", "message": "a field does not hide what was said"}})
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("It broke")
    first, second = map(json.loads, written.getvalue().splitlines())
    assert (first["message"], first["traceparent"], first["level"], first["logger"]) == ("a\nb died", "00-aa", "INFO", "surety.test.json")
    assert first["time"].endswith("Z")
    assert "ValueError: two\nlines" in second["exception"]
