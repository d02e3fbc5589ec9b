"""Metrics in the text format of Prometheus, read into samples.

Comes in: what a process serves at /metrics. Goes out: the type of each metric, and its samples. A
line that is neither a comment nor a sample is told as a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)(?: \d+)?\Z")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')


@dataclass(frozen=True)
class Sample:
    """One value, with its labels."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Scrape:
    """All that one process served at once. `faults` are lines that are not in the format."""

    types: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def of(self, metric: str) -> list[Sample]:
        """The samples of a metric; of a histogram those of its buckets, sum and count."""
        parts = {metric, *(f"{metric}_{part}" for part in ("bucket", "sum", "count"))}
        return [sample for sample in self.samples if sample.name in parts]


def read(text: str) -> Scrape:
    """Read what was served."""
    scrape = Scrape()
    for line in text.splitlines():
        words = line.split(" ")
        if line.startswith("# TYPE ") and len(words) == 4:
            scrape.types[words[2]] = words[3]
        elif line and not line.startswith("#"):
            found = _SAMPLE.match(line)
            try:
                if found is None:
                    raise ValueError(line)
                scrape.samples.append(Sample(found.group(1), dict(_LABEL.findall(
                    found.group(2) or "")), float(found.group(3))))
            except ValueError:
                scrape.faults.append(line)
    return scrape


def total(scrapes: Iterable[Scrape], metric: str, **labels: str) -> float:
    """The sum of a metric over processes, of the samples that have these labels."""
    return sum(sample.value for scrape in scrapes for sample in scrape.samples
               if sample.name == metric and labels.items() <= sample.labels.items())
