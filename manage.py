#!/usr/bin/env python
"""The command line of the service: `run`, `node`, `migrate` and whatever else the console offers."""

import os
import sys

from django.core.management import execute_from_command_line

from broker_core.config import ConfigError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        sys.exit(str(error))
