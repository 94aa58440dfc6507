"""Which line of a kernel calls the library function that its samples lie in, where the line table does not say.

Triton compiles functions of its library into the kernel and keeps only their own lines. What such code yields is used by the line that calls it, so
the line whose instructions most often follow it is taken for the caller; or, where that line comes after one that calls something and has no
instruction of its own, that one. It is an estimate and is shown as one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.editor.snapshot import MeasuredKernel
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.report.model import KernelReport, LineRow

Place = tuple[str, int]  # File as compiled, and line

_LEAST_RATIO = 0.005  # Of the kernel's samples; less is not worth guessing for

_CALL = re.compile(r"(?<!def )\b[A-Za-z_][\w.]*\(")
_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s")


def credit_callers(measured: MeasuredKernel, files: Mapping[str, MeasuredFile]) -> MeasuredKernel:
    """The same kernel with what lies in such functions estimated on the lines that call them; the kernel itself where it has none."""
    if measured.body is None:
        return measured
    home, own_lines = measured.body
    chains = measured.report.instructions.chains
    if all(chain[-1].file == home or chain[-1].line <= 0 for chain in chains):
        return measured  # as nearly every kernel is
    sums, followers = _follow(measured.report, home)
    total = measured.report.total_samples
    called: dict[int, dict[Place, float]] = {}
    for place, samples in sums.items():
        if total and samples >= _LEAST_RATIO * total and followers[place]:
            line = max(followers[place], key=lambda line: (followers[place][line], -line))
            caller = _find_call(line, own_lines, files.get(home))
            called.setdefault(caller, {})[place] = samples
    if not called:
        return measured
    callees = {(home, line): max(places, key=lambda place: places[place]) for line, places in called.items()}
    rows = _credit(measured.report, home, {line: sum(places.values()) for line, places in called.items()})
    return replace(measured, report=replace(measured.report, lines=rows), callees={**measured.callees, **callees})


def _follow(kernel: "KernelReport", home: str) -> tuple[dict[Place, float], dict[Place, Counter[int]]]:
    """Samples of each line of the kernel's own instructions that nothing ties to its file, and which lines of that file follow it how often."""
    columns = kernel.instructions
    own = columns.functions.index(kernel.mangled_name) if kernel.mangled_name in columns.functions else -1
    samples = columns.all_samples.sum(axis=1).tolist()
    sums: dict[Place, float] = {}
    followers: dict[Place, Counter[int]] = {}
    waiting: Place | None = None
    for row, (function, chain) in enumerate(
        zip(columns.function_index.tolist(), columns.chain_index.tolist(), strict=True)
    ):
        if function != own or chain < 0:
            continue
        outermost = columns.chains[chain][-1]
        if outermost.line <= 0:
            continue
        if outermost.file == home:
            if waiting is not None:
                followers[waiting][outermost.line] += 1
            waiting = None
            continue
        waiting = (outermost.file, outermost.line)
        followers.setdefault(waiting, Counter())
        sums[waiting] = sums.get(waiting, 0.0) + samples[row]
    return sums, followers


def _find_call(follower: int, own_lines: Sequence[int], file: MeasuredFile | None) -> int:
    """The caller, given the line that follows."""
    if file is None or file.lines is None or not (file.is_verified or file.fits):
        return follower
    before = max((line for line in own_lines if line < follower), default=follower)
    for line in range(min(follower - 1, len(file.lines)), before, -1):
        text = file.lines[line - 1].partition("#")[0]
        if _CALL.search(text) and not _DEFINITION.match(text):
            return line
    return follower


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
