"""The pipeline's delivery audit of a service that is running: `manage.py pipeline audit`, as its operator would ask for it, must prove every message."""

from __future__ import annotations

import os
import subprocess
import sys

from broker_core.pipeline.surroundings import java_missing, packages_missing
from tests.acceptance import ledger
from tests.support.service import REPOSITORY, Service

SECONDS_MAX = 1_200
VIOLATION = 3
"""What the command ends with if there is any."""
SHOWN_MAX = 20


def cannot() -> str:
    """Why there can be no audit on this machine, and the cure; empty: there can."""
    return packages_missing() or java_missing(os.environ.get("JAVA_HOME", ""))


def audit(service: Service, confirmed: int) -> list[str]:
    """What speaks against the ledger, of which the first commit must still be there; empty: every message is proven. Prints how many are. `confirmed`: so
    many messages were, whose fates must be among them."""
    with service.database() as connection:
        last = ledger.commits(connection)
    command = [sys.executable, "manage.py", "pipeline", "audit"]
    done = subprocess.run(command, cwd=REPOSITORY, env=service.environment(), capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode not in (0, VIOLATION):
        return [f"the delivery audit ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"]
    with service.database() as connection:
        row = connection.execute(
            "SELECT audit, from_number, to_number, complete, proven, unproven, violations FROM surety.pipeline_audit ORDER BY audit DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return [f"the delivery audit left no report: {done.stdout[-1000:]}"]
        number, first, upto, complete, proven, unproven, violations = row
        shown = connection.execute(
            "SELECT kind, reason, address, subscription, lane, first, last, evidence FROM surety.pipeline_violation WHERE audit = %s LIMIT %s",
            [number, SHOWN_MAX],
        ).fetchall()
    wrong = [f"delivery audit: {' '.join(map(str, violation))}" for violation in shown]
    if violations > len(shown):
        wrong.append(f"delivery audit: {violations} violations in all")
    if unproven or not complete or first != 1 or upto < last:
        wrong.append(f"delivery audit: {unproven} fates are not proven, commits {first} to {upto} of {last}, {'complete' if complete else 'not complete'}")
    if proven < confirmed:
        wrong.append(f"delivery audit: {proven} fates are proven, and {confirmed} messages were confirmed")
    print(f"delivery audit: {proven:,} fates of messages proven in commits {first} to {upto}, {violations} violations", flush=True)
    return wrong
