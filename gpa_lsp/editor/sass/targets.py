"""Where branches and calls go, and who goes there."""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.editor.sass.model import SassDocument
from gpa_lsp.editor.sass.operand_spans import SpanKind
from gpa_lsp.editor.sass.operand_values import OperandValue

_QUOTES = ("`(", ")")


def find_target(document: SassDocument, row: int, value: OperandValue) -> int | None:
    """The instruction that a branch, a call or a reconvergence point names; None where it is elsewhere, or the operand is no target."""
    if value.kind is not SpanKind.TARGET:
        return None
    report = document.shown.kernel.report
    target = -1 if report.code is None else int(report.code.target_row[row])
    if target >= 0:
        return target
    columns = report.instructions
    name = columns.texts[row][value.start : value.end].removeprefix(_QUOTES[0]).removesuffix(_QUOTES[1])
    if name not in columns.functions:
        return None
    rows = np.flatnonzero(columns.function_index == columns.functions.index(name))
    return int(rows[0]) if len(rows) else None


def list_origins(document: SassDocument, target: int) -> Sequence[int]:
    """The instructions that name an instruction of their own function as their target, ascending."""
    code = document.shown.kernel.report.code
    return [] if code is None else np.flatnonzero(code.target_row == target).tolist()
