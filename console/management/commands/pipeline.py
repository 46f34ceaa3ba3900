"""`manage.py pipeline run|audit|replay|status`: the data pipeline, beside the service or without it. What its state is can be asked without Spark."""

import json
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_core.config import BrokerConfig
from broker_core.pipeline.replays import RATE, InvalidReplay, Wanted
from broker_core.pipeline.status import status
from console.launch.server import database_of
from console.launch.spark import provide
from console.management.refusals import refusals_told

WAIT_SECONDS = 5
ResultT = TypeVar("ResultT")


class Command(BaseCommand):
    help = "The data pipeline on Apache Spark: bring the ledger into the lake, prove what became of messages, send them again, or see how far it is."
    requires_system_checks: list[str] = []  # the database may not be running yet

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        run = commands.add_parser("run", help="bring the lake up to date with the ledger")
        run.add_argument("--anew", action="store_true", help="go on with what the ledger still has, though the lake is not the one that the database knows")
        run.add_argument("--requested-by", default="", help="who is named in the list of runs")
        audit = commands.add_parser("audit", help="bring the lake up to date, and prove of what is new in it what became of every message")
        audit.add_argument("--since", type=instant, help="of all messages accepted since then, as in 2026-11-22T10:00:00+00:00, instead of what is new")
        audit.add_argument("--destination", default="", help="of one alone, as in queue/orders")
        audit.add_argument("--requested-by", default="", help="who is named in the list of runs")
        again = commands.add_parser("replay", help="send messages again that the lake has archived (destinations with archive_ms)")
        again.add_argument("--destination", default="", help="where they were, as in queue/orders")
        again.add_argument("--into", default="", help="where they go (default: where they were)")
        again.add_argument("--from", dest="accepted_from", type=instant, help="those accepted from then on, as in 2026-11-22T10:00:00+00:00")
        again.add_argument("--to", dest="accepted_to", type=instant, help="and before then")
        again.add_argument("--selector", default="", help="those that it takes")
        again.add_argument("--ids", nargs="+", default=[], help="those with these identifiers")
        again.add_argument("--rate", type=int, default=RATE, help="messages a second, at the most (default: %(default)s)")
        again.add_argument("--number", type=int, help="go on with what was asked for under this number, instead of all of the above")
        again.add_argument("--requested-by", default="", help="who is named in the list of runs")
        for each in (run, audit, again):
            each.add_argument("--waits", action="store_true", help="for the run that goes on, instead of being refused")
            each.add_argument("--lake", help="a folder, or a URI that Hadoop knows (default: SURETY_LAKE)")
            each.add_argument("--master", help="where Spark runs: local[2], spark://host:7077 (default: SURETY_SPARK_MASTER)")
            each.add_argument("--memory-mib", type=int, help="of Spark's driver (default: SURETY_SPARK_MEMORY_MIB)")
        status = commands.add_parser("status", help="how far the lake is behind the ledger, and the last runs")
        status.add_argument("--json", action="store_true", help="for programs")

    def handle(self, what: str, **options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the run says that it has failed, on the way
        config = BrokerConfig.from_env()
        with refusals_told():
            if what != "status":
                provide(settings.JAVA_HOME, self.stderr.write)
            with database_of(config, alone=False):
                {"run": self._run, "audit": self._audit, "replay": self._replay, "status": self._status}[what](config, options)

    def _run(self, config: BrokerConfig, options: dict[str, Any]) -> None:
        # Only now: what they import may have been installed a moment ago.
        from broker_core.pipeline import jobs
        from broker_core.pipeline.lake import LakeRefused
        from broker_core.pipeline.runs import RunRefused
        from broker_core.pipeline.session import SparkSettings
        from broker_core.pipeline.surroundings import SparkMissing

        master, memory = options["master"] or config.spark_master, options["memory_mib"] or config.spark_memory_mib
        place = jobs.Place(config.database_url, options["lake"] or lake_of(config), SparkSettings(work_of(config), master, memory))
        try:
            by = options["requested_by"] or "command line"
            counts = when_free(lambda: jobs.run(place, tell=self._tell, requested_by=by, anew=options["anew"]), waits=options["waits"])
        except (LakeRefused, RunRefused, SparkMissing, jobs.SparkFailed, jobs.DatabaseLost) as refusal:
            raise CommandError(f"{refusal}", returncode=1) from refusal
        except KeyboardInterrupt:
            raise CommandError("Stopped; the next run goes on where this one was.", returncode=130) from None
        self._tell(f"The lake {place.lake} has the ledger up to commit {counts['upto']}: {counts['files']} files, {counts['octets'] >> 10} KiB.")

    def _audit(self, config: BrokerConfig, options: dict[str, Any]) -> None:
        from broker_core.pipeline import jobs
        from broker_core.pipeline.auditing import DestinationUnknown, begin
        from broker_core.pipeline.holdings import HoldingsUnsteady
        from broker_core.pipeline.lake import LakeRefused
        from broker_core.pipeline.runs import RunRefused
        from broker_core.pipeline.session import SparkSettings
        from broker_core.pipeline.surroundings import SparkMissing

        master, memory = options["master"] or config.spark_master, options["memory_mib"] or config.spark_memory_mib
        place = jobs.Place(config.database_url, options["lake"] or lake_of(config), SparkSettings(work_of(config), master, memory))
        by = options["requested_by"] or "command line"
        try:
            asked = {"since": options["since"], "address": options["destination"]}
            report = when_free(lambda: begin(place, tell=self._tell, requested_by=by, **asked), waits=options["waits"])
        except (LakeRefused, RunRefused, SparkMissing, jobs.SparkFailed, HoldingsUnsteady, DestinationUnknown, jobs.DatabaseLost) as refusal:
            raise CommandError(f"{refusal}", returncode=1) from refusal
        except KeyboardInterrupt:
            raise CommandError("Stopped; nothing of the audit counts, and the next one begins where this one did.", returncode=130) from None
        if report is not None and report.violations:
            raise CommandError(f"Violations were found: manage.py mq list violation {report.audit}", returncode=3)

    def _replay(self, config: BrokerConfig, options: dict[str, Any]) -> None:
        from broker_core.pipeline import jobs
        from broker_core.pipeline.lake import LakeRefused
        from broker_core.pipeline.replaying import ReplayUnknown, ask, replay
        from broker_core.pipeline.runs import RunRefused
        from broker_core.pipeline.session import SparkSettings
        from broker_core.pipeline.surroundings import SparkMissing

        master, memory = options["master"] or config.spark_master, options["memory_mib"] or config.spark_memory_mib
        place = jobs.Place(config.database_url, options["lake"] or lake_of(config), SparkSettings(work_of(config), master, memory))
        by = options["requested_by"] or "command line"
        try:
            told = {name: options[name] for name in ("into", "accepted_from", "accepted_to", "selector", "rate")}
            number = options["number"] or ask(place.url, Wanted(options["destination"], identifiers=tuple(options["ids"]), **told), by)
            result = when_free(lambda: replay(place, number, tell=self._tell, requested_by=by), waits=options["waits"])
        except (LakeRefused, RunRefused, SparkMissing, jobs.SparkFailed, ReplayUnknown, InvalidReplay, jobs.DatabaseLost) as refusal:
            raise CommandError(f"{refusal}", returncode=1) from refusal
        except KeyboardInterrupt:
            raise CommandError("Stopped; asked for again, it goes on where it was.", returncode=130) from None
        if result.state != "done":
            raise CommandError("It was cancelled.", returncode=1)

    def _tell(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _status(self, config: BrokerConfig, options: dict[str, Any]) -> None:
        found = status(config.database_url)
        if options["json"]:
            told = {"running": found.running, "watermark": found.watermark, "last": found.last, "unarchived": found.unarchived, "runs": found.runs}
            self.stdout.write(json.dumps(told, default=str, indent=2))
            return
        if found.watermark is None:
            self.stdout.write(f"The pipeline has never run; the ledger has commits up to {found.last}.")
        else:
            self.stdout.write(f"The lake has the ledger up to commit {found.watermark} of {found.last}.")
        if found.unarchived:
            self.stdout.write(f"{found.unarchived} messages that should be in the archive are not: nothing had read them when there was no more room for them.")
        for row in found.runs:
            ended = f" to {row['ended_at']:%H:%M:%S}" if row["ended_at"] else f", {row['stage']}" if row["stage"] else ""
            told = ", ".join(f"{name} {count}" for name, count in row["counts"].items())
            self.stdout.write(f"  {row['run']} {row['kind']} {row['state']}: {row['started_at']:%Y-%m-%d %H:%M:%S}{ended} {told or row['error']}".rstrip())


def when_free(work: Callable[[], ResultT], *, waits: bool) -> ResultT:
    """One run at a time: it begins when the one that goes on has ended, or is refused. Raises RunRefused, and as `work`."""
    from broker_core.pipeline.runs import RunRefused

    while True:
        try:
            return work()
        except RunRefused:
            if not waits:
                raise
        time.sleep(WAIT_SECONDS)


def instant(text: str) -> datetime:
    """In UTC, if it does not say in which zone."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def lake_of(config: BrokerConfig) -> str:
    return config.lake or str(config.home / "lake")


def work_of(config: BrokerConfig) -> Path:
    return config.home / "spark"
