"""The Prometheus text format, version 0.0.4."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Family:
    """Samples of one name. A value that is None is unknown: its sample is left out, which Prometheus shows as a gap."""

    name: str
    kind: str
    """gauge, counter or histogram."""
    help: str
    samples: list[tuple[str, Mapping[str, str], float]] = field(default_factory=list)
    """(suffix of the name, labels, value); only a histogram's samples have suffixes."""

    def add(self, value: float | None, **labels: str) -> "Family":
        if value is not None:
            self.samples.append(("", labels, value))
        return self

    def add_histogram(self, bounds: Sequence[float], buckets: Sequence[int], total: float, **labels: str) -> "Family":
        """`buckets`: observations up to each bound, and one more for those beyond the last; not cumulative."""
        count = 0
        for bound, observed in zip([*bounds, math.inf], buckets, strict=True):
            count += observed
            self.samples.append(("_bucket", {**labels, "le": _value(bound)}, count))
        self.samples += [("_sum", labels, total), ("_count", labels, count)]
        return self


def exposition(families: Iterable[Family]) -> str:
    lines = []
    for family in families:
        if family.samples:
            lines.append(f"# HELP {family.name} {_help(family.help)}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            lines += [f"{family.name}{suffix}{_labels(labels)} {_value(value)}" for suffix, labels, value in family.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _value(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, bool) else repr(value)
