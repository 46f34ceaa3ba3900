"""`manage.py mq VERB OBJECT ...`: what operators do, from a terminal; see console/cli."""

import sys
from collections.abc import Sequence

from django.core.management.base import BaseCommand

from console.cli.program import main


class Command(BaseCommand):
    help = "Do what operators do: list, query, create, update, destroy, pause, resume, purge, send, ... `mq --help` lists it."

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """The words are those of mq, and none of Django's."""
        sys.exit(main(argv[2:]))

    def print_help(self, prog_name: str, subcommand: str) -> None:
        main(["--help"])
