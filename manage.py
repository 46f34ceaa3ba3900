#!/usr/bin/env python
"""The command line of the service: `run`, `node`, `migrate` and whatever else the console offers."""

import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from broker_core.config import ConfigError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        execute_from_command_line(sys.argv)
    except (ConfigError, ImproperlyConfigured) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:  # before there was anything to stop in order
        sys.exit(128 + signal.SIGINT)
