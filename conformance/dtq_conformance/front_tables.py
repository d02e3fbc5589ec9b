"""The contract's tables of its fronts as data: routes, codes, commands, events, metrics, settings.

Read from CONTRACT.md, so that there is no second list. Checkers judge answers by these, and cases
go through them row by row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from dtq_conformance.clauses import read_page, read_table


@dataclass(frozen=True)
class Route:
    """One route: `statuses` are those of a good answer."""

    method: str
    path: str
    statuses: tuple[int, ...]

    def fits(self, method: str, path: str) -> bool:
        """Whether a request is one of this route."""
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(self.path))
        return method == self.method and re.fullmatch(pattern, path.partition("?")[0]) is not None


@dataclass(frozen=True)
class Metric:
    """One metric: its type and its labels."""

    name: str
    type: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """One variable, with its default and what it accepts, as the table words them."""

    name: str
    default: str
    accepts: str


@cache
def routes() -> tuple[Route, ...]:
    """The routes of the HTTP API, in the order of the table."""
    found = []
    for words, statuses, _ in read_table(read_page(), "route"):
        method, path = words.split(" ")
        found.append(Route(method, path, tuple(int(each) for each in statuses.split(", "))))
    return tuple(found)


def route_of(method: str, path: str) -> Route | None:
    """The route that a request is for; of those that fit the one with the fewest parameters."""
    fitting = [route for route in routes() if route.fits(method, path)]
    return min(fitting, key=lambda route: route.path.count("{"), default=None)


@cache
def codes() -> dict[str, int]:
    """The HTTP status of each code of a refusal."""
    return {row[0]: int(row[1]) for row in read_table(read_page(), "code")}


@cache
def commands() -> dict[tuple[str, ...], list[str]]:
    """Each command, as its words behind `dtq`, with the options that the table names."""
    return {tuple(row[0].split(" ")[1:]): re.findall(r"`(--[a-z-]+)`", row[1])
            for row in read_table(read_page(), "command")}


@cache
def events() -> tuple[str, ...]:
    """The types of events."""
    return tuple(row[0] for row in read_table(read_page(), "event"))


@cache
def metrics() -> dict[str, Metric]:
    """The metrics by name."""
    return {row[0]: Metric(row[0], row[1], tuple(row[2].split(", ")) if row[2] else ())
            for row in read_table(read_page(), "metric")}


@cache
def settings() -> dict[str, Setting]:
    """The settings by name."""
    return {row[0]: Setting(row[0], row[1], row[2]) for row in read_table(read_page(), "variable")}
