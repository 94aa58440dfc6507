"""What the recipe asks Nsight Compute for, and what of it is read: the table ``recipe.toml``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from gpa_lsp.basis.lazy_dataclass import dataclass

Version = tuple[int, int]
"""Year and number of a release of Nsight Compute."""

Capability = tuple[int, int]
"""Compute capability."""

_LAST_CAPABILITY: Capability = (99, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SometimesRead:
    """Metrics that a section brings in some versions or on some GPUs.

    Attributes:
        metrics: their names.
        since: the first version; None where all do.
        until: the last version; None where all later ones do.
        capabilities: ranges of compute capabilities that have them, first and last; empty where all do.
    """

    metrics: tuple[str, ...]
    since: Version | None = None
    until: Version | None = None
    capabilities: tuple[tuple[Capability, Capability], ...] = ()

    def holds(self, version: Version, capability: Capability) -> bool:
        """Whether a version brings them on a compute capability.

        >>> SometimesRead(metrics=("a.sum",), since=(2024, 1), capabilities=(((7, 0), (9, 0)),)).holds((2025, 1), (8, 6))
        True
        """
        return (
            (self.since is None or version >= self.since)
            and (self.until is None or version <= self.until)
            and (not self.capabilities or any(first <= capability <= last for first, last in self.capabilities))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedSection:
    """A section that is asked for.

    Attributes:
        name: its identifier.
        purpose: what it is for.
        reads: the metrics this package reads of it wherever it is collected.
        sometimes: those it brings only in some versions or on some GPUs; a metric may be in several of them, of which one is enough.
    """

    name: str
    purpose: str
    reads: tuple[str, ...]
    sometimes: tuple[SometimesRead, ...] = ()

    @property
    def metrics(self) -> frozenset[str]:
        """Every metric this package reads of it."""
        return frozenset(self.reads).union(*(one.metrics for one in self.sometimes))


@cache
def read_sections() -> tuple[CollectedSection, ...]:
    """The sections that are asked for unless everything is."""
    return tuple(_build_section(table) for table in _read_file()["section"])


@cache
def read_roofline_sections() -> tuple[CollectedSection, ...]:
    """The sections of ``--roofline``."""
    return tuple(_build_section(table) for table in _read_file()["roofline"])


@cache
def read_metrics() -> tuple[str, ...]:
    """The metrics that are asked for beside sections."""
    return tuple(name for table in _read_file()["metric"] for name in table["names"])


def _build_section(table: Mapping[str, Any]) -> CollectedSection:
    return CollectedSection(
        name=table["name"],
        purpose=table["for"],
        reads=tuple(table["reads"]),
        sometimes=tuple(
            SometimesRead(
                metrics=tuple(one["reads"]),
                since=_read_pair(one["since"]) if "since" in one else None,
                until=_read_pair(one["until"]) if "until" in one else None,
                capabilities=tuple(_read_range(text) for text in one.get("on", ())),
            )
            for one in table.get("sometimes", ())
        ),
    )


def _read_range(text: str) -> tuple[Capability, Capability]:
    first, is_range, last = text.partition("-")
    lowest = _read_pair(first)
    if not is_range:
        return lowest, lowest
    return lowest, _read_pair(last) if last else _LAST_CAPABILITY


def _read_pair(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def _read_file() -> Mapping[str, Any]:
    return tomli.loads(Path(__file__).with_name("recipe.toml").read_text(encoding="utf-8"))
