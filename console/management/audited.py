"""What commands of the system's accounts did, for the audit: nobody of the console's operators is behind them."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.db import Error

from console.launch.refusal import CannotStart
from console.services.audit import record


@contextmanager
def audited(what: str, folder: Path) -> Iterator[dict[str, Any]]:
    """A row with what is put into the result, in the database as it is then: after a restore the restored one. It says so, too, if nothing came of it."""
    result: dict[str, Any] = {}
    try:
        yield result
    except BaseException as error:  # by hand as well: Ctrl-C, SIGTERM
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        with suppress(Error):  # perhaps what failed; or it has no audit yet. The command says why.
            _record(what, folder, {"refused": "stopped by hand" if stopped else str(error)})
        raise
    try:
        _record(what, folder, result)
    except Error as error:
        raise CannotStart(f"The {what} is done, but the audit could not be told of it: {str(error).strip()}.") from error


def _record(what: str, folder: Path, result: dict[str, Any]) -> None:
    name = system_account()
    record(f"system account {name}", f"command line of {name}", what, arguments={"folder": str(folder)}, result=result)


def system_account() -> str:
    """Of this process. Some have no name, as in containers."""
    user = os.getuid()
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
