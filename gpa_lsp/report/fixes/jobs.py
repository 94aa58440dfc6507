"""From a fix that is offered to the job of trying it."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

from gpa_lsp.diagnosis.rewrites.model import TextEdit, apply_edits
from gpa_lsp.report.fixes.results import FixJob
from gpa_lsp.report.model import KernelReport


def make_fix_job(
    report: KernelReport,
    edits: Sequence[TextEdit],
    *,
    path: str,
    text: str,
    lines: Sequence[int],
    roots: tuple[Path, ...],
    architecture: tuple[int, int] | None,
    limit_s: float,
) -> FixJob:
    """The job of a fix.

    Args:
        report: of the kernel that the fix is for.
        edits: of the text.
        lines: of the text, 1-based, where the code is that the advice is about, the place itself first.
        architecture: to compile for where the report names no device; None for that of the compile command.
    """
    shape = report.configuration
    lines = tuple(dict.fromkeys((*(edit.start.line for edit in edits), *lines)))
    return FixJob(
        path=Path(path),
        text=text,
        edited=apply_edits(text, edits),
        kernel=report.mangled_name,
        lines=lines,
        edited_lines=tuple(move_line(line, edits) for line in lines),
        threads=None if shape.block is None else prod(shape.block),
        dynamic_shared_bytes=shape.shared_dynamic_bytes,
        roots=roots,
        architecture=report.device.compute_capability or architecture,
        limit_s=limit_s,
        measured_on=report.device.name,
    )


def move_line(line: int, edits: Sequence[TextEdit]) -> int:
    r"""Where a line is when edits are made; what is put before its first character moves it.

    >>> from gpa_lsp.diagnosis.rewrites.model import TextPlace
    >>> place = TextPlace(line=3, column=0)
    >>> pragma = TextEdit(start=place, end=place, text="#pragma unroll 4\n")
    >>> [move_line(line, [pragma]) for line in (2, 3, 4)]
    [2, 4, 5]
    """
    moved = line
    for edit in edits:
        is_above = edit.end.line < line or (edit.end.line == line and edit.end.column == 0)
        if is_above:
            moved += edit.text.count("\n") - (edit.end.line - edit.start.line)
    return moved
