"""Estimated cost of library code without a call chain, on the lines that call it; see :mod:`gpa_lsp.report.callers`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.editor.snapshot import MeasuredKernel
from gpa_lsp.report.callers import Place, find_callers
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.report.model import KernelReport, LineRow


def credit_callers(measured: MeasuredKernel, files: Mapping[str, MeasuredFile]) -> MeasuredKernel:
    """The same kernel with what lies in such functions estimated on the lines that call them; the kernel itself where it has none."""
    home = "" if measured.body is None else measured.body[0]
    file = files.get(home)
    lines = file.lines if file is not None and (file.is_verified or file.fits) else None
    found = find_callers(
        measured.report, measured.body, lambda line: lines[line - 1] if lines and line <= len(lines) else None
    )
    called: dict[int, dict[Place, float]] = {}
    for place, (caller, samples) in found.items():
        called.setdefault(caller, {})[place] = samples
    if not called:
        return measured
    callees = {(home, line): max(places, key=lambda place: places[place]) for line, places in called.items()}
    rows = _credit(measured.report, home, {line: sum(places.values()) for line, places in called.items()})
    return replace(measured, report=replace(measured.report, lines=rows), callees={**measured.callees, **callees})


def _credit(kernel: "KernelReport", home: str, called: Mapping[int, float]) -> "tuple[LineRow, ...]":
    from gpa_lsp.report.model import LineRow

    rows = [
        replace(row, called_samples=row.called_samples + called[row.line])
        if row.file == home and row.line is not None and row.line in called
        else row
        for row in kernel.lines
    ]
    known = {row.line for row in rows if row.file == home}
    rows.extend(
        LineRow(
            file=home,
            line=line,
            function=kernel.mangled_name,
            samples=0,
            latency_samples=None if kernel.latency_samples is None else 0,
            inclusive_samples=0,
            inclusive_latency_samples=None if kernel.latency_samples is None else 0,
            called_samples=samples,
            by_reason={},
            inclusive_by_reason={},
        )
        for line, samples in called.items()
        if line not in known
    )
    return tuple(rows)
