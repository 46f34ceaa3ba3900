"""What a listener failed with, in words: for those who find its message dead."""

from __future__ import annotations

from traceback import format_exception_only

from broker_core.stomp.limits import COMMENT_CHARACTERS_MAX


def in_words(failure: BaseException) -> str:
    """Its name and its text, on one line that any header can hold. Whatever the application raises, this does not."""
    text = " ".join("".join(format_exception_only(failure)).split())
    return "".join([each if each.isprintable() else "?" for each in text[:COMMENT_CHARACTERS_MAX]])
