"""Why a command refuses to start: one sentence for the person at the terminal."""


class CannotStart(Exception):
    """The message says what is wrong and what to do about it."""


class AlreadyRuns(CannotStart):
    """The service runs on this home."""
