"""Starlight's suggestions with our own estimates beside them."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.answers import Answer, Table
from gpa_lsp.diagnosis.analyses.starlight.tables import NAMES_BETWEEN, OUR_ADVICE, SUGGESTIONS_TITLE
from gpa_lsp.document.advice_words import show_gain
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.report.model import KernelReport

_NO_COUNTERPART = "no optimizer of ours"


def pair_with_advice(answer: Answer, advice: KernelAdvice | None) -> Table | None:
    """The table of suggestions, with what our optimizers for the same change say in place of their names.

    Args:
        answer: of the analysis ``starlight``.
        advice: of the same kernel; None where nobody was asked, and the names stay.

    Returns:
        None where the answer has no such table.
    """
    table = next((one for one in answer.tables if one.title == SUGGESTIONS_TITLE), None)
    if table is None or advice is None:
        return table
    at = next((number for number, column in enumerate(table.columns) if column.name == OUR_ADVICE), None)
    if at is None:
        return table
    rows = tuple((*row[:at], _describe(row[at], advice), *row[at + 1 :]) for row in table.rows)
    return Table(title=table.title, columns=table.columns, rows=rows, current_row=table.current_row, note=table.note)


def list_answers(kernel: KernelReport) -> tuple[Answer, ...]:
    """A kernel's answers as they are shown: Starlight's suggestions have our estimates beside them. Empty where nobody asked."""
    if kernel.analyses is None:
        return ()
    return tuple(_pair(answer, kernel.advice) for answer in kernel.analyses.answers)


def _pair(answer: Answer, advice: KernelAdvice | None) -> Answer:
    paired = pair_with_advice(answer, advice) if answer.analysis == "starlight" else None
    if paired is None:
        return answer
    tables = tuple(paired if table.title == paired.title else table for table in answer.tables)
    return replace(answer, tables=tables)


def _describe(names: Cell, advice: KernelAdvice) -> str:
    if not isinstance(names, str) or not names:
        return _NO_COUNTERPART
    return "; ".join(_describe_one(name, advice) for name in names.split(NAMES_BETWEEN))


def _describe_one(name: str, advice: KernelAdvice) -> str:
    """An optimizer's estimate with its interval, or why it does not apply."""
    title = name.replace("_", " ")
    spoken = next((one for one in advice.advice if one.optimizer == name), None)
    if spoken is not None:
        return f"{title} {show_gain(spoken.speedup)}"
    silent = next((one for one in advice.silences if one.optimizer == name), None)
    return f"{title}: not run" if silent is None else f"{title}: {silent.message}"
