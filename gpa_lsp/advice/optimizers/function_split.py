"""Inlined functions whose rarely executed parts make the code too long to be fetched in time."""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_hotspots
from gpa_lsp.advice.code_size import count_executed_bytes, find_fetch_edges
from gpa_lsp.advice.instruction_caches import InstructionCaches, find_instruction_caches
from gpa_lsp.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.source_words import find_own_frame, shorten_file
from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.figures import sum_known
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import Frame
from gpa_lsp.binary.model import INSTRUCTION_BYTES
from gpa_lsp.rows.scopes import Scope, ScopeKind

_KIB = 1024

RARE_SHARE = 0.1
"""Instructions executed less than this share of their function's most executed one are rare."""

LEAST_RARE_BYTES = 8 * INSTRUCTION_BYTES
"""Less rare code than one line of the cache (128 bytes) is not worth a function of its own."""


@dataclass(slots=True)
class _Body:
    """All code of one inlined function, in all places it was inlined into."""

    frame: Frame
    rows: list[int] = field(default_factory=list)
    rare: list[int] = field(default_factory=list)


class FunctionSplit(EliminationOptimizer):
    """Instruction fetches that shorter code would not wait for: what is rarely executed leaves the inlined function.

    Matched: samples without an instruction to issue in the code of inlined functions that hold rarely executed instructions (or whose executions
    were not counted), in kernels whose executed code is larger than a sub-partition's instruction cache.
    Approximation: all of them go. A function all of whose code is hot gains nothing from being split, and is left out.

    Source: GPA Table II, Function Split (instruction fetch stalls in inlined code), and section VII-B on functions not worth it.
    """

    name: ClassVar[str] = "function_split"
    title: ClassVar[str] = "Rare code out of inlined functions"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "instruction supply"

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find inlined functions that wait for instructions."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        edges = find_fetch_edges(subject)
        fetches = float(subject.blame.edges.all_samples[edges].sum())
        if not fetches:
            return self.silent(SilenceStage.NOT_MATCHED, "no sample waited for instructions")
        bodies = _find_bodies(subject)
        causes = subject.blame.edges.def_row[edges]
        waiting = {name: edges[np.isin(causes, body.rows)] for name, body in bodies.items()}
        if not any(len(found) for found in waiting.values()):
            message = f"the {fetches:,.0f} samples that waited for instructions are in no inlined function"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        caches = find_instruction_caches(subject.kernel.architecture)
        size = count_executed_bytes(subject, np.arange(len(subject.rows)))
        if size <= caches.first_bytes:
            message = f"the executed code has {size / _KIB:.1f} KiB, and the first instruction cache holds {caches.first_bytes / _KIB:.0f} KiB"
            return self.silent(SilenceStage.GATED, message)
        regions = [
            _build_region(subject, body, waiting[name])
            for name, body in bodies.items()
            if len(waiting[name]) and _is_worth_splitting(subject, body)
        ]
        if not regions:
            message = "the inlined functions that waited for instructions have no rarely executed code to take out"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        regions.sort(key=lambda region: (-region.samples, region.scope.row))
        return EliminationMatch(
            regions=tuple(regions),
            hint=regions[0].hint,
            caveats=("A function that is called instead of inlined costs a call, and registers are saved for it.",),
            reasons=(_describe_size(size, caches),),
        )


def _find_bodies(subject: Subject) -> dict[str, _Body]:
    """Name of an inlined function, or the file of its body where it has none → its code."""
    bodies: dict[str, _Body] = {}
    for row in range(len(subject.rows)):
        chain = subject.rows.chain(row)
        frame = find_own_frame(subject, row)
        if chain is None or len(chain) < 2 or frame is None or frame is chain[-1]:
            continue
        bodies.setdefault(frame.function or frame.file, _Body(frame=frame)).rows.append(row)
    for body in bodies.values():
        executions = subject.rows.executions[body.rows]
        most = int(executions.max())
        if most > 0:
            is_rare = (executions >= 0) & (executions < RARE_SHARE * most)
            body.rare.extend(np.array(body.rows)[is_rare].tolist())
    return bodies


def _is_counted(subject: Subject, rows: Sequence[int]) -> bool:
    return bool((subject.rows.executions[list(rows)] > 0).any())


def _is_worth_splitting(subject: Subject, body: _Body) -> bool:
    return len(body.rare) * INSTRUCTION_BYTES >= LEAST_RARE_BYTES or not _is_counted(subject, body.rows)


def _build_region(subject: Subject, body: _Body, edges: npt.NDArray[np.int64]) -> EliminationRegion:
    hotspots = build_hotspots(subject, edges, np.ones(len(edges)))
    lines = [
        frame.line for row in body.rows if (frame := find_own_frame(subject, row)) and frame.file == body.frame.file
    ]
    scope = Scope(
        kind=ScopeKind.INLINED,
        function=body.frame.function or body.frame.file,
        row=body.rows[0],
        file=body.frame.file,
        line=min(lines),
        last_line=max(lines),
    )
    return EliminationRegion(
        scope=scope,
        samples=sum(hotspot.samples for hotspot in hotspots),
        latency_samples=sum_known(hotspot.latency_samples for hotspot in hotspots),
        hotspots=hotspots,
        hint=_advise(subject, body, scope),
    )


def _advise(subject: Subject, body: _Body, scope: Scope) -> str:
    name = f"`{body.frame.function}`" if body.frame.function else f"the function at line {scope.line}"
    where = f"{name} of {shorten_file(body.frame.file)}, lines {scope.line} to {scope.last_line},"
    size = len(body.rows) * INSTRUCTION_BYTES / _KIB
    opening = (
        f"The inlined {where} is {size:.1f} KiB of code."
        if body.frame.function
        else f"{where[0].upper()}{where[1:]} is {size:.1f} KiB of code."
    )
    if not body.rare:
        return f"{opening} Put what is rarely executed (error paths, special cases) into a `__noinline__` function of its own."
    lines = sorted(
        {frame.line for row in body.rare if (frame := find_own_frame(subject, row)) and frame.file == body.frame.file}
    )
    span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    share = 100 * len(body.rare) / len(body.rows)
    return (
        f"{opening} {share:.0f} % of it, in {span}, is executed less than a tenth as often as the rest: put that into a `__noinline__` function "
        "of its own."
    )


def _describe_size(size: int, caches: InstructionCaches) -> str:
    trust = "as measured" if caches.is_measured else "assumed"
    return f"{size / _KIB:.1f} KiB of executed code, {caches.first_bytes / _KIB:.0f} KiB in the first instruction cache ({trust})"


OPTIMIZER = FunctionSplit()
