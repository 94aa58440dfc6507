"""``[tool.gpa-lsp.gate]`` of ``pyproject.toml``, or ``[gate]`` of ``.gpa-lsp.toml`` → :class:`~gpa_lsp.report.gate.model.Budgets`.

::

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
from pathlib import Path
from typing import Any

import tomli

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.toml_tables import Place, TomlLines
from gpa_lsp.report.gate.model import Budget, Budgets, Limit, LimitKind, Metric

OWN_FILE = ".gpa-lsp.toml"
PROJECT_FILE = "pyproject.toml"
DEFAULT_BUDGETS = Budgets(
    budgets=(Budget(metric=Metric.TIME, limit=Limit(kind=LimitKind.CHANGE, amount=0.03), text="+3 %"),)
)

_LARGEST_BYTES = 4 << 20
_LIMIT = re.compile(r"\s*([+-]?)\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([^\s0-9]{0,8})\s*", re.ASCII)
_TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {"": 1.0, "B": 1.0, "KiB": 1024.0}
_FACTORS = ("x", "×")
_MISSING = ("say", "fail")


def find_configuration(folder: Path) -> Path | None:
    """The file of a folder that holds the gate's configuration; None where neither does."""
    own = folder / OWN_FILE
    if own.is_file():
        return own
    project = folder / PROJECT_FILE
    return project if project.is_file() else None


def read_budgets(path: Path) -> Budgets:
    """The budgets of a file, or the default where it says nothing of a gate.

    Args:
        path: a file named ``pyproject.toml`` has a table ``[tool.gpa-lsp.gate]``, every other one ``[gate]``.

    Raises:
        InputError: the file cannot be read, or says something that means nothing; with its line.
    """
    try:
        text = read_bounded(path, _LARGEST_BYTES).decode()
        document = tomli.loads(text)
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, remedy="correct the file") from error
    return _Reader(path, text).read(document)


class _Reader:
    """Reads one document.

    Args:
        path: for messages.
        text: for their lines.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def read(self, document: Mapping[str, Any]) -> Budgets:
        keys: tuple[str, ...] = ("tool", "gpa-lsp", "gate") if self._path.name == PROJECT_FILE else ("gate",)
        gate: Any = document
        for number, key in enumerate(keys):
            if number > 1 or keys == ("gate",):  # whatever else stands below ours is a mistake
                self._refuse_others(gate, {key}, keys[:number])
            if key not in gate:
                return DEFAULT_BUDGETS
            gate = gate[key]
            if not isinstance(gate, dict):
                raise self._fail("is no table", keys[: number + 1])
        self._refuse_others(gate, {"missing", "budget"}, keys)
        missing = gate.get("missing", "say")
        if missing not in _MISSING:
            raise self._fail(f"is none of {', '.join(_MISSING)}", (*keys, "missing"))
        rows = gate.get("budget", [])
        if not isinstance(rows, list):
            raise self._fail("is no list of tables: write [[…budget]]", (*keys, "budget"))
        budgets = tuple(self._read_budget(row, (*keys, "budget", number)) for number, row in enumerate(rows))
        return Budgets(
            budgets=budgets or DEFAULT_BUDGETS.budgets, fails_on_missing=missing == "fail", source=str(self._path)
        )

    def _read_budget(self, row: Any, place: Place) -> Budget:
        if not isinstance(row, dict):
            raise self._fail("is no table", place)
        self._refuse_others(row, {"metric", "limit", "kernel"}, place)
        for key in ("metric", "limit"):
            if key not in row:
                raise self._fail(f"lacks {key}", place)
        kernel = row.get("kernel", "*")
        if not isinstance(kernel, str) or not kernel:
            raise self._fail("is no pattern of a kernel's name", (*place, "kernel"))
        if row["metric"] not in list(Metric):
            raise self._fail(f"is none of {', '.join(Metric)}", (*place, "metric"))
        metric = Metric(row["metric"])
        try:
            limit = parse_limit(row["limit"], metric)
        except ValueError as error:
            raise self._fail(str(error), (*place, "limit")) from error
        return Budget(metric=metric, limit=limit, text=str(row["limit"]).strip(), kernel=kernel)

    def _refuse_others(self, table: Mapping[str, Any], known: set[str], place: Place) -> None:
        for key in table:
            if key not in known:
                raise self._fail(f"is not known here: there are {', '.join(sorted(known))}", (*place, key))

    def _fail(self, message: str, place: Place) -> InputError:
        shown = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
        line = TomlLines(self._text).find(place)
        return InputError(f"{shown} {message}", path=self._path, place=f"line {line}", remedy="correct the file")


def parse_limit(value: Any, metric: Metric) -> Limit:
    """A limit as it is written.

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
        raise ValueError(f"has the wrong sign: {metric.words} gets worse the {_name_direction(metric)} it is")
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


def _name_direction(metric: Metric) -> str:
    return "lower" if metric.is_better_high else "higher"


def _show_examples(metric: Metric) -> str:
    if metric is Metric.OCCUPANCY:
        return '"-5 %", "0.9x" or "50 %"'
    if metric is Metric.TIME:
        return '"+3 %", "+2 us", "1.05x" or "1.5 ms"'
    return '"+10 %", "+8", "1.5x" or "64"'
