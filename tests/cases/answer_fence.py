"""Fences ``answer``: what one analysis says about the kernel, without a roofline::

    occupancy ~ words of the summary
        finding high ~ words of its text
            remedy ~ words of what to do
        missing ~ words of what is unknown
        bar achieved 0.25 of 0.5
        table Occupancy over the size
            > 256 | 5 | 40 | 0.625 | registers
            512 | 2 | * | 0.50

* The first line names the analysis. ``unknown occupancy ~ words`` demands that nothing could be said.
* A **finding** has a weight and words of its text; only those named are looked at, in their order, and a ``remedy`` belongs to the one before.
* ``no finding ~ words`` demands that no finding has these words.
* A **bar** is found by its label; ``of`` gives its ceiling where that is not 1.
* A **table** is found by the beginning of its title. Its lines are rows, in their order, from the first cell on; ``>`` marks the current row,
  ``*`` is any cell, ``–`` an unknown one. Rows between may be left out.

Whole numbers are exact; a number with decimals is compared to as many.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpa_lsp.diagnosis.analyses.analyse_kernel import list_analyses
from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Table
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.kernel.model import Kernel

_NUMBER = re.compile(r"-?[\d,]*\.?\d+")
_ANY, _UNKNOWN = "*", "–"


@dataclass
class _Expectation:
    """One line, and those that belong to it."""

    words: str
    below: list["_Expectation"] = field(default_factory=list)


def check_answer(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare what the analysis says with what a fence expects."""
    (head,) = _read_tree(text)
    name, _, words = head.words.partition(" ~ ")
    is_known = not name.startswith("unknown ")
    answer = list_analyses()[name.removeprefix("unknown ").strip()].ask(Subject(kernel, blame, None))
    assert answer.is_known == is_known, answer.summary
    assert words.strip() in answer.summary, answer.summary
    findings = iter(answer.findings)
    for expectation in head.below:
        kind, _, rest = expectation.words.partition(" ")
        if kind == "finding":
            _check_finding(findings, rest, expectation.below, answer)
        elif kind == "no":
            forbidden = rest.partition("~")[2].strip()
            assert not any(forbidden in finding.text for finding in answer.findings), forbidden
        elif kind == "missing":
            wanted = rest.removeprefix("~ ")
            assert any(wanted in missing.what or wanted in missing.why for missing in answer.missing), answer.missing
        elif kind == "bar":
            _check_bar(answer.bars, rest)
        elif kind == "table":
            _check_table(answer.tables, rest, expectation.below)
        else:
            raise AssertionError(f"not an expectation: {expectation.words}")


def _read_tree(text: str) -> list[_Expectation]:
    """Lines by their indentation, in steps of four."""
    top = _Expectation("")
    open_ones = [top]
    for line in filter(str.strip, text.splitlines()):
        level = (len(line) - len(line.lstrip())) // 4
        expectation = _Expectation(line.strip())
        open_ones = open_ones[: level + 1]
        open_ones[-1].below.append(expectation)
        open_ones.append(expectation)
    return top.below


def _check_finding(findings: Iterator[Finding], rest: str, below: list[_Expectation], answer: Answer) -> None:
    weight, _, words = rest.partition(" ~ ")
    said = "\n".join(f"{finding.weight.value} ~ {finding.text}" for finding in answer.findings)
    found = next((one for one in findings if one.weight.value == weight.strip() and words in one.text), None)
    assert found is not None, f"no finding {rest!r} at its place in:\n{said}"
    for expectation in below:
        wanted = expectation.words.removeprefix("remedy ~ ")
        assert wanted in found.remedy, found.remedy


def _check_bar(bars: tuple[Bar, ...], rest: str) -> None:
    shape = re.fullmatch(r"(?P<label>.+?) (?P<ratio>[\d.]+)(?: of (?P<ceiling>[\d.]+))?", rest)
    assert shape is not None, rest
    found = next((bar for bar in bars if bar.label == shape["label"]), None)
    assert found is not None, [bar.label for bar in bars]
    assert _matches(shape["ratio"], found.ratio), found
    assert _matches(shape["ceiling"] or "1", found.ceiling_ratio), found


def _check_table(tables: tuple[Table, ...], title: str, below: list[_Expectation]) -> None:
    found = next((table for table in tables if table.title.startswith(title)), None)
    assert found is not None, [table.title for table in tables]
    rows = iter(enumerate(found.rows))
    for expectation in below:
        is_current = expectation.words.startswith(">")
        cells = [cell.strip() for cell in expectation.words.removeprefix(">").split("|")]
        number = next((number for number, row in rows if _has_cells(row, cells)), None)
        listed = "\n".join(" | ".join(str(cell) for cell in row) for row in found.rows)
        assert number is not None, f"no row {expectation.words!r} at its place in:\n{listed}"
        assert (number == found.current_row) == is_current, f"the current row of {title!r} is {found.current_row}"


def _has_cells(row: tuple[Cell, ...], cells: list[str]) -> bool:
    return len(cells) <= len(row) and all(_matches(wanted, cell) for wanted, cell in zip(cells, row, strict=False))


def _matches(wanted: str, cell: Cell) -> bool:
    if wanted == _ANY:
        return True
    if cell is None:
        return wanted == _UNKNOWN
    if isinstance(cell, str) or not _NUMBER.fullmatch(wanted):
        return str(cell) == wanted
    decimals = len(wanted.partition(".")[2])
    return f"{cell:.{decimals}f}" == wanted.replace(",", "")
