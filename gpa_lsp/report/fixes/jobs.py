"""Questions for rewrites from a report's advice, and jobs that try the offered fixes."""

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import Advice, Category, Region
from gpa_lsp.diagnosis.rewrites.model import RewriteContext, TextEdit, apply_edits
from gpa_lsp.foundation.errors import UnknownArchitectureError
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, OccupancyLimit
from gpa_lsp.gpu.arch.occupancy_steps import OccupancyStep, find_next_steps
from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.report.fixes.results import FixJob
from gpa_lsp.report.model import KernelReport

_OCCUPANCY = "thread_increase"
_DIRECTIVE = "`#pragma unroll "


class Question(Struct, frozen=True, kw_only=True):
    """One place of one piece of advice, for :func:`~gpa_lsp.diagnosis.rewrites.find.find_rewrites`."""

    advice: Advice  # what to do
    region: Region | None  # where; None for the kernel as a whole
    lines: tuple[SourceLine, ...]  # as they were compiled: the region's own first, then those of its causes; each once
    context: RewriteContext  # what is known besides


def list_questions(kernel: KernelReport) -> tuple[Question, ...]:
    """Questions about a kernel's advice, best first: one per region, one for advice without regions."""
    found = []
    for advice in kernel.advice.advice if kernel.advice is not None else ():
        regions: tuple[Region | None, ...] = advice.regions or (None,)
        for region in regions:
            lines = () if region is None else list_lines(kernel, region)
            context = build_context(kernel, advice, region)
            found.append(Question(advice=advice, region=region, lines=lines, context=context))
    return tuple(found)


def build_context(kernel: KernelReport, advice: Advice, region: Region | None = None) -> RewriteContext:
    """Facts for rewriting one region of advice; None for the whole kernel."""
    step = _find_register_step(kernel) if advice.optimizer == _OCCUPANCY else None
    # A bound lets a kernel that spills have more registers only where a bound, or a flag, keeps it from them.
    is_bounded = advice.optimizer != "register_reuse" or advice.category is Category.BINARY
    return RewriteContext(
        optimizer=advice.optimizer,
        kernel=find_plain_name(kernel.name),
        unroll_copies=read_unroll_copies(region.hint or advice.hint if region is not None else advice.hint),
        threads_per_block=_find_most_threads(kernel) if is_bounded else None,
        min_blocks=None if step is None else step.occupancy.blocks_per_sm,
        max_registers=None if step is None else step.block.registers_per_thread,
    )


def list_lines(kernel: KernelReport, region: Region) -> tuple[SourceLine, ...]:
    """Lines of a region of advice, as compiled: its own first, then those of its causes; each once."""
    return tuple(dict.fromkeys(_list_places(kernel, region)))


def _list_places(kernel: KernelReport, region: Region) -> Iterator[SourceLine]:
    if region.scope.file is not None and region.scope.line:
        yield SourceLine(file=region.scope.file, line=region.scope.line)
    columns = kernel.instructions
    for hotspot in region.hotspots:
        chain = int(columns.chain_index[hotspot.def_row])
        frames = columns.chains[chain] if chain >= 0 else ()
        yield from (frame.source_line for frame in frames[:1] if frame.line)


def read_unroll_copies(hint: str) -> int | None:
    """Unroll factor named by a hint; None without one.

    >>> read_unroll_copies("Unroll the loop at line 3 of k.cu by 8 (`#pragma unroll 8`): it runs 64 iterations per entry.")
    8
    >>> read_unroll_copies("Unroll the loop at line 3 of k.py by 4: it runs 64 iterations per entry."), read_unroll_copies("Load earlier.")
    (4, None)
    """
    factor = hint.partition(_DIRECTIVE)[2].partition("`")[0]
    if not factor:
        opening = hint.partition(":")[0]
        factor = opening.rpartition(" by ")[2] if opening.startswith("Unroll ") else ""
    return int(factor) if factor.isdecimal() else None


def _find_most_threads(kernel: KernelReport) -> int | None:
    """Threads of the largest block launched; None without launches, and where a block size is unknown."""
    blocks = [launch.configuration.block for launch in kernel.launches] or [kernel.configuration.block]
    known = [prod(block) for block in blocks if block is not None]
    return max(known) or None if len(known) == len(blocks) else None


def _find_register_step(kernel: KernelReport) -> OccupancyStep | None:
    """Least register reduction that admits more resident warps; None where registers alone do not help, or facts are missing."""
    shape, capability = kernel.configuration, kernel.device.compute_capability
    threads = 0 if shape.block is None else prod(shape.block)
    if capability is None or threads < 1 or shape.registers_per_thread is None:
        return None
    if shape.shared_static_bytes is None or shape.shared_dynamic_bytes is None:
        return None
    block = BlockShape(
        threads=threads,
        registers_per_thread=shape.registers_per_thread,
        shared_bytes=shape.shared_static_bytes + shape.shared_dynamic_bytes,
    )
    try:
        steps = find_next_steps(find_architecture(capability), block)
    except (UnknownArchitectureError, ValueError):
        return None
    return next((step for step in steps if step.resources == (OccupancyLimit.REGISTERS,)), None)


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
    """The job of trying a fix.

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
    r"""Number of a line after edits; text inserted before its first character moves it.

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
