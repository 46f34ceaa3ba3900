"""Two causes for which services say no that callers tell apart; each service's exceptions of its own say them in a sentence."""


class AlreadyThere(ValueError):
    """There is one of this name."""


class NotThere(ValueError):
    """There is none of this name."""
