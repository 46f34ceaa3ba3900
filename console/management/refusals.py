"""What a command that cannot start says."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from broker_core.config import ConfigError
from console.launch.refusal import CannotStart


@contextmanager
def refusals_told() -> Iterator[None]:
    """A refusal becomes one sentence and exit code 1."""
    try:
        yield
    except (CannotStart, ConfigError) as refusal:
        raise CommandError(str(refusal), returncode=1) from refusal
