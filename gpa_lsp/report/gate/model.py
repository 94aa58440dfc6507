"""Records of a gate: :class:`Budgets`, :class:`GateKernel`, :class:`GateRow`, :class:`GateResult`.

Budgets stand in ``[tool.gpa-lsp.gate]`` of ``pyproject.toml``, or ``[gate]`` of ``.gpa-lsp.toml``::

    [tool.gpa-lsp.gate]
    missing = "fail"             # kernels that are new or gone, and unknown figures, fail; "say" (the default) only says so

    [[tool.gpa-lsp.gate.budget]]
    metric = "time"              # time, instructions, registers, occupancy, spills, local_accesses or sectors
    limit = "+3 %"               # or "+2 us", "1.05x", "1.5 ms"; of occupancy "-5 %", "0.9x" or "50 %" at least
    kernel = "relax*"            # shell wildcards; all kernels without it

Of the budgets of one metric the first whose pattern fits decides for a kernel, so exceptions come first.
"""

import math
import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.foundation.toml_tables import Table, read_toml
from gpa_lsp.report.changes import MeasuredWork, TimeChange
from gpa_lsp.report.differences import Trait
from gpa_lsp.report.model import KernelReport


class Metric(StrEnum):
    """Subject of a budget; the value is its name in configurations."""

    TIME = "time"
    INSTRUCTIONS = "instructions"
    REGISTERS = "registers"
    OCCUPANCY = "occupancy"
    SPILLS = "spills"
    LOCAL_ACCESSES = "local_accesses"
    SECTORS = "sectors"

    @property
    def words(self) -> str:
        """Readable name."""
        trait = TRAITS.get(self)
        return trait.value if trait is not None else _WORDS[self]

    @property
    def quantity(self) -> Quantity:
        """Quantity of the values; times are in nanoseconds."""
        return _QUANTITIES.get(self, Quantity.COUNT)

    @property
    def is_better_high(self) -> bool:
        """Whether more is better."""
        return self is Metric.OCCUPANCY


# The metrics that comparisons of reports know as well, by the same names
TRAITS: Mapping[Metric, Trait] = {
    Metric.INSTRUCTIONS: Trait.EXECUTED,
    Metric.REGISTERS: Trait.REGISTERS,
    Metric.OCCUPANCY: Trait.OCCUPANCY,
    Metric.LOCAL_ACCESSES: Trait.LOCAL_ACCESSES,
    Metric.SECTORS: Trait.GLOBAL_SECTORS,
}

_WORDS: Mapping[Metric, str] = {Metric.TIME: "time per launch", Metric.SPILLS: "spilled registers per thread"}
_QUANTITIES: Mapping[Metric, Quantity] = {
    Metric.TIME: Quantity.NS,
    Metric.OCCUPANCY: Quantity.RATIO,
    Metric.SPILLS: Quantity.BYTES,
    Metric.SECTORS: Quantity.NUMBER,
}


class Origin(StrEnum):
    """Origin of a figure, most reliable first; the value is a word for people. Figures of different origins are never compared."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    EMULATED = "emulated"
    STATIC = "in the code"


class Figure(Struct, frozen=True, kw_only=True):
    """One value of one kernel."""

    value: float  # in the unit of its metric
    line: SourceLine | None = None  # as compiled, that has most part in it; None where no line has


class GateKernel(Struct, frozen=True, kw_only=True):
    """One side of a kernel."""

    mangled_name: str  # linkage name
    name: str  # readable name
    figures: Mapping[tuple[Metric, Origin], Figure]  # what is known, but for times
    work: MeasuredWork | None  # its times, and what they were measured on; None where nothing was measured
    body: SourceLine | None = None  # the first line of its own body; None for code without lines
    report: KernelReport | None = None  # None for one that is remembered only

    @property
    def time_origin(self) -> Origin:
        """Origin of its times: a measurement, or a model."""
        return Origin.SIMULATED if self.report is not None and self.report.is_simulated else Origin.MEASURED


class LimitKind(Enum):
    """Meaning of a limit."""

    CHANGE = "change"  # A share of what there was before: ``+3 %``
    DIFFERENCE = "difference"  # So much more than before: ``+8``
    FACTOR = "factor"  # So many times what there was before: ``1.05x``
    VALUE = "value"  # So much, whatever there was before: ``64``


class Limit(Struct, frozen=True, kw_only=True):
    """Limit of a metric."""

    kind: LimitKind  # how it is meant
    amount: float  # a ratio for changes and factors, else in the unit of the metric

    def find_bound(self, before: float | None) -> float | None:
        """The last value within the limit; None where it depends on an unknown value before."""
        if self.kind is LimitKind.VALUE:
            return self.amount
        if before is None:
            return None
        if self.kind is LimitKind.DIFFERENCE:
            return before + self.amount
        return before * (1 + self.amount if self.kind is LimitKind.CHANGE else self.amount)


class Budget(Struct, frozen=True, kw_only=True):
    """Limit of one metric for some kernels."""

    metric: Metric  # what is limited
    limit: Limit  # how far it may go
    text: str  # the limit as it was written
    kernel: str = "*"  # pattern of shell wildcards for the kernel's readable, short or linkage name


class Budgets(Struct, frozen=True, kw_only=True):
    """A gate's configuration."""

    budgets: tuple[Budget, ...]  # of those of one metric the first that names a kernel decides for it
    fails_on_missing: bool = False  # kernels that are new or gone, and figures that are unknown, fail the gate
    source: str = ""  # the file it was read from; empty for the default


class Outcome(Enum):
    """Outcome of a budget; the value is a word for people."""

    KEPT = "kept"
    EXCEEDED = "exceeded"
    WITHIN_NOISE = "within the noise"  # Beyond the limit, and not more than the measurement can tell
    SAME_CODE = "same code"  # A time beyond the limit, of the same instructions launched the same way
    UNKNOWN = "unknown"  # One of the figures it needs is not known, or the two were measured on other work


class GateRow(Struct, frozen=True, kw_only=True):
    """One budget of one kernel."""

    kernel: GateKernel  # after the change
    base: GateKernel  # before it
    budget: Budget  # that decides
    outcome: Outcome  # what became of it
    origin: Origin | None = None  # of both figures; None where one is unknown
    before: float | None = None  # None where unknown
    after: float | None = None  # None where unknown
    bound: float | None = None  # the last value within the limit; None where unknown
    time: TimeChange | None = None  # of a time, with its range; None for others, and where one of the two has none
    # why the two are not compared, or what may differ besides the code; empty where nothing is known to
    note: Sentence = NOTHING
    line: SourceLine | None = None  # to look at, as compiled after the change; None where no line is known


class GateResult(Struct, frozen=True, kw_only=True):
    """Result of a gate."""

    rows: tuple[GateRow, ...]  # kernel by kernel, longest time before first; budgets in the order of :class:`Metric`
    new: tuple[GateKernel, ...]  # kernels that are after the change only
    gone: tuple[GateKernel, ...]  # kernels that were before it only
    budgets: Budgets  # that were asked

    @property
    def exceeded(self) -> tuple[GateRow, ...]:
        """Rows whose budget is exceeded."""
        return tuple(row for row in self.rows if row.outcome is Outcome.EXCEEDED)

    @property
    def is_judged(self) -> bool:
        """Whether at least one budget could be judged."""
        return any(row.outcome is not Outcome.UNKNOWN for row in self.rows)

    @property
    def has_missing(self) -> bool:
        """Whether a kernel has no partner, or a figure is unknown."""
        return bool(self.new or self.gone) or any(row.outcome is Outcome.UNKNOWN for row in self.rows)

    @property
    def has_failed(self) -> bool:
        """Whether the gate fails."""
        return bool(self.exceeded) or (self.budgets.fails_on_missing and self.has_missing)


OWN_FILE = ".gpa-lsp.toml"
PROJECT_FILE = "pyproject.toml"
DEFAULT_BUDGETS = Budgets(
    budgets=(Budget(metric=Metric.TIME, limit=Limit(kind=LimitKind.CHANGE, amount=0.03), text="+3 %"),)
)

_LIMIT = re.compile(r"\s*([+-]?)\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([^\s0-9]{0,8})\s*", re.ASCII)
_TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {"": 1.0, "B": 1.0, "KiB": 1024.0}
_FACTORS = ("x", "×")


def find_configuration(folder: Path) -> Path | None:
    """Configuration file of a folder; None without one."""
    own = folder / OWN_FILE
    if own.is_file():
        return own
    project = folder / PROJECT_FILE
    return project if project.is_file() else None


def read_budgets(path: Path) -> Budgets:
    """Budgets of a file, or the default where it has no gate.

    Args:
        path: a file named ``pyproject.toml`` has a table ``[tool.gpa-lsp.gate]``, every other one ``[gate]``.

    Raises:
        InputError: the file cannot be read, or says something that means nothing; with its line.
    """
    ours, what = read_toml(path), "the configuration"
    if path.name == PROJECT_FILE:
        ours, what = ours.read_table("tool").read_table("gpa-lsp"), "tool.gpa-lsp"
    ours.check_keys({"gate"}, what)
    if "gate" not in ours.content:
        return DEFAULT_BUDGETS
    gate = ours.read_table("gate")
    gate.check_keys({"missing", "budget"}, "the gate")
    fails_on_missing = gate.read_choice("missing", ("say", "fail"), "say") == "fail"
    budgets = tuple(map(_read_budget, gate.read_tables("budget", "budgets")))
    return Budgets(budgets=budgets or DEFAULT_BUDGETS.budgets, fails_on_missing=fails_on_missing, source=str(path))


def _read_budget(table: Table) -> Budget:
    table.check_keys({"metric", "limit", "kernel"}, "a budget")
    table.read_text("metric")
    metric = Metric(table.read_choice("metric", list(Metric), ""))
    try:
        limit = parse_limit(table.content.get("limit"), metric)
    except ValueError as error:
        raise table.refuse(f"limit {error}", remedy="correct it", key="limit") from error
    return Budget(
        metric=metric,
        limit=limit,
        text=str(table.content["limit"]).strip(),
        kernel=table.read_text("kernel", "*"),
    )


def parse_limit(value: Any, metric: Metric) -> Limit:
    """Parse a limit.

    Raises:
        ValueError: it means nothing for this metric; a clause that says why.

    >>> parse_limit("+3 %", Metric.TIME).amount, parse_limit("1.5 ms", Metric.TIME).amount, parse_limit(64, Metric.REGISTERS).kind.value
    (0.03, 1500000.0, 'value')
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    found = _LIMIT.fullmatch(value if isinstance(value, str) else str(value) if is_number else "")
    if found is None:
        raise ValueError(f"is no limit: write {_show_examples(metric)}")
    sign, digits, unit = found.groups()
    amount = float(digits)
    if unit in _FACTORS and not sign:
        return Limit(kind=LimitKind.FACTOR, amount=amount)
    if sign and (sign == "-") is not metric.is_better_high and amount:
        direction = "lower" if metric.is_better_high else "higher"
        raise ValueError(f"has the wrong sign: {metric.words} gets worse the {direction} it is")
    signed = -amount if sign == "-" else amount
    if unit == "%":
        if sign:
            return Limit(kind=LimitKind.CHANGE, amount=signed / 100)
        if metric is Metric.OCCUPANCY:
            return Limit(kind=LimitKind.VALUE, amount=amount / 100)
    units = {Metric.TIME: _TIMES_NS, Metric.SPILLS: _SIZES, Metric.OCCUPANCY: {}}.get(metric, {"": 1.0})
    if unit not in units:
        raise ValueError(f"is no limit: write {_show_examples(metric)}")
    return Limit(kind=LimitKind.DIFFERENCE if sign else LimitKind.VALUE, amount=signed * units[unit])


def _show_examples(metric: Metric) -> str:
    if metric is Metric.OCCUPANCY:
        return '"-5 %", "0.9x" or "50 %"'
    if metric is Metric.TIME:
        return '"+3 %", "+2 us", "1.05x" or "1.5 ms"'
    return '"+10 %", "+8", "1.5x" or "64"'
