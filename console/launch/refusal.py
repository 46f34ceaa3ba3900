"""Why the service does not start. The message is one sentence for whoever typed the command."""


class CannotStart(Exception):
    """Something must be changed before the service can start; nothing was started, or everything was stopped again."""
