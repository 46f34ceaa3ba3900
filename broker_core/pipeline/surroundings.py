"""Whether Spark can be had on this machine, and if not, what to do about it. Imports nothing that may be missing."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
JAVA_WANTED = "Java 17 or later (on Debian: apt-get install openjdk-17-jre-headless; or set JAVA_HOME to where it is)"


class SparkMissing(RuntimeError):
    """The message is one sentence that says what is missing and how to get it."""


def packages_missing() -> str:
    """One sentence with the cure, or nothing."""
    missing = [name for name in ("pyspark", "pyarrow", "numpy") if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"The data pipeline needs {', '.join(missing)}, which is not installed: run python -m pip install -r {REQUIREMENTS}."


def java_missing(java_home: str) -> str:
    """One sentence with the cure, or nothing. `java_home`: what the environment says; empty: nothing."""
    if java_home:
        found = (Path(java_home) / "bin" / "java").exists()
        return "" if found else f"The data pipeline needs {JAVA_WANTED}: there is none in JAVA_HOME, which is {java_home}."
    return "" if shutil.which("java") else f"The data pipeline needs {JAVA_WANTED}: there is no java on the PATH."
