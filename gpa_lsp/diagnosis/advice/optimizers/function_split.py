"""Inlined functions whose rarely executed parts make the code too long to be fetched in time."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.diagnosis.advice.blamed_stalls import build_region, rank_regions
from gpa_lsp.diagnosis.advice.code_size import (
    InstructionCaches,
    count_executed_bytes,
    find_fetch_edges,
    find_instruction_caches,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.naming import name_line
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import Code, Place, Sentence, count, percent, say, size
from gpa_lsp.kernel.scopes import Scope, ScopeKind

RARE_SHARE = 0.1  # Instructions executed less than this share of their function's most executed one are rare

# Less rare code than one line of the cache (128 bytes) is not worth a function of its own
LEAST_RARE_BYTES = 8 * INSTRUCTION_BYTES


class _Body(Struct):
    """All code of one inlined function, in all places it was inlined into."""

    frame: Frame
    rows: list[int] = field(default_factory=list)
    rare: list[int] = field(default_factory=list)


def match(subject: Subject) -> Found:
    """Instruction fetches that shorter code would not wait for: what is rarely executed leaves the inlined function.

    Matched: samples without an instruction to issue in the code of inlined functions that hold rarely executed instructions (or whose executions
    were not counted), in kernels whose executed code is larger than a sub-partition's instruction cache.
    Approximation: all of them go. A function all of whose code is hot gains nothing from being split, and is left out.

    Source: GPA Table II, Function Split (instruction fetch stalls in inlined code), and section VII-B on functions not worth it.
    """
    edges = find_fetch_edges(subject)
    fetches = float(subject.edges.all_samples[edges].sum())
    if not fetches:
        return say("no warp is stalled on instruction fetch")
    bodies = _find_bodies(subject)
    causes = subject.edges.def_row[edges]
    waiting = {name: edges[np.isin(causes, body.rows)] for name, body in bodies.items()}
    if not any(len(found) for found in waiting.values()):
        samples = count(fetches, "sample")
        return say("{samples} stalled on instruction fetch, but in no inlined function", samples=samples)
    caches = find_instruction_caches(subject.kernel.architecture)
    code_bytes = count_executed_bytes(subject, np.arange(len(subject.rows)))
    if code_bytes <= caches.first_bytes:
        code, first = size(code_bytes), size(caches.first_bytes)
        return say("{code} of code is executed, and the L0 instruction cache holds {first}", code=code, first=first)
    regions = [
        _build_region(subject, body, waiting[name])
        for name, body in bodies.items()
        if len(waiting[name]) and _is_worth_splitting(subject, body)
    ]
    if not regions:
        return say("the inlined functions stalled on instruction fetch have no rarely executed code to move out")
    ranked = rank_regions(regions)
    return EliminationMatch(
        regions=ranked,
        hint=ranked[0].hint,
        caveats=(say("A function that is called instead of inlined costs a call and saved registers."),),
        reasons=(_describe_size(code_bytes, caches),),
    )


def _find_innermost(subject: Subject, row: int) -> Frame | None:
    """The frame of the function that a row was inlined from, a library's as well: it is code that is counted here."""
    return next((frame for frame in subject.rows.chain(row) or () if frame.line), None)


def _find_bodies(subject: Subject) -> dict[str, _Body]:
    """Name of an inlined function, or the file of its body where it has none → its code."""
    bodies: dict[str, _Body] = {}
    for row in range(len(subject.rows)):
        chain = subject.rows.chain(row)
        frame = _find_innermost(subject, row)
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


def _is_worth_splitting(subject: Subject, body: _Body) -> bool:
    return len(body.rare) * INSTRUCTION_BYTES >= LEAST_RARE_BYTES or not subject.executed[body.rows].any()


def _build_region(subject: Subject, body: _Body, edges: npt.NDArray[np.int64]) -> EliminationRegion:
    lines = [
        frame.line for row in body.rows if (frame := _find_innermost(subject, row)) and frame.file == body.frame.file
    ]
    scope = Scope(
        kind=ScopeKind.INLINED,
        function=body.frame.function or body.frame.file,
        row=body.rows[0],
        file=body.frame.file,
        line=min(lines),
        last_line=max(lines),
    )
    return build_region(subject, scope, edges, hint=_advise(subject, body, scope))


def _advise(subject: Subject, body: _Body, scope: Scope) -> Sentence:
    assert scope.line is not None and scope.last_line is not None
    opening = say(
        "The inlined {name} ({span}) is {code} of code.",
        name=Code(text=body.frame.function) if body.frame.function else "function",
        span=_name_span(body.frame.file, scope.line, scope.last_line),
        code=size(len(body.rows) * INSTRUCTION_BYTES),
    )
    noinline = Code(text="__noinline__")
    if not body.rare:
        template = "{opening} Move rarely executed parts (error paths, special cases) to a {noinline} function."
        return say(template, opening=opening, noinline=noinline)
    lines = sorted(
        {frame.line for row in body.rare if (frame := _find_innermost(subject, row)) and frame.file == body.frame.file}
    )
    return say(
        "{opening} {share} of it, at {span}, is executed less than a tenth as often as the rest: move that to a {noinline} function.",
        opening=opening,
        share=percent(len(body.rare) / len(body.rows)),
        span=_name_span(body.frame.file, lines[0], lines[-1]),
        noinline=noinline,
    )


def _name_span(file: str, first: int, last: int) -> Sentence:
    """``line 10 to line 30 of k.cu``."""
    if first == last:
        return name_line(file, last)
    return say("{first} to {last}", first=Place(file=file, line=first), last=name_line(file, last))


def _describe_size(code_bytes: int, caches: InstructionCaches) -> Sentence:
    trust = "measured" if caches.is_measured else "assumed"
    code, first = size(code_bytes), size(caches.first_bytes)
    return say(
        "{code} of executed code, {first} of L0 instruction cache ({trust})", code=code, first=first, trust=trust
    )


OPTIMIZER = Optimizer(
    name="function_split",
    title="Move rare code out of inlined functions",
    group="instruction supply",
    find=match,
)
