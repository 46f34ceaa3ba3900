"""What is wrong with a selector's text, and where."""

from __future__ import annotations


class SelectorError(ValueError):
    """The text is not a selector, or goes beyond a bound; JMS calls it an InvalidSelectorException (3.8.1.1).

    `sentence` says what was expected; `column` where, in characters from 1; str() says both. The text itself is quoted in extracts of at most
    EXTRACT characters and with control characters escaped, so that the sentence may go into a frame or a log line.
    """

    def __init__(self, column: int, sentence: str) -> None:
        super().__init__(f"column {column}: {sentence}")
        self.column = column
        self.sentence = sentence


EXTRACT = 30


def extract(text: str) -> str:
    """The beginning of `text`, quoted so that it can stand in a sentence."""
    return ascii(text if len(text) <= EXTRACT else text[:EXTRACT] + "...")
