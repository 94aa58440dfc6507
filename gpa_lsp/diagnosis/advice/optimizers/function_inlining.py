"""Small functions that are called: jumping there and back, and passing arguments and results, takes time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow
from gpa_lsp.diagnosis.advice.blamed_stalls import build_region
from gpa_lsp.diagnosis.advice.code_size import find_fetch_edges
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.model import SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_line, name_code, name_line
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, list_of, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.expansions import CalledRoutine, find_called_routines

_MOST_FETCH_RATIO = 0.3  # Of the latency samples: where instructions come late already, more code makes it worse

_MOST_BYTES = 3000  # Of a function that is worth inlining

_MOST_GROWTH = 1024  # Instructions that copies at all call sites may add

_NEIGHBOURS = 32  # Instructions before and after a call among which its arguments and results are moved

_CROSSING = (Flow.CALL, Flow.RETURN)

_KEPT_OUT = ("__noinline__", "noinline")
_LINES_ABOVE = 4
_MOST_SITES = 3


# What carries arguments and results
_MOVES = ("MOV", "UMOV", "IMAD.MOV")


class _Site(ColumnRecord, frozen=True, kw_only=True):
    """Stalls that inlining one routine removes."""

    routine: CalledRoutine  # the routine
    edges: npt.NDArray[np.int64]  # indices of the blamed pairs that go


def match(subject: Subject) -> Found:
    """Functions called directly that could be part of their callers.

    Matched: what calls themselves cost: the stalls of and behind jumps to a function and back, and behind moves of its arguments and results; and
    instruction fetch where such a jump leads, because it comes out of order. These instructions go. Left out: the compiler's own routines (divisions,
    which other remedies are about), recursive functions, large ones; and everything where other instruction fetch is a large part of the latency.
    Approximation: that the compiler can then mix both sides' instructions, which is what GPA counts, is not; a chain of results has nothing to mix.

    Source: GPA Table II, Function Inlining (device functions and their call sites); the thresholds on fetches and size are those of its code.
    """
    called = find_called_routines(subject.rows)
    own = [routine for routine in called if not routine.is_internal]
    if not own:
        internal = say(" except {routines}", routines=count(len(called), "compiler routine")) if called else NOTHING
        return say(
            "the kernel calls no function of known code{internal}{indirect}",
            internal=internal,
            indirect=_count_pointer_calls(subject),
        )
    routines = [routine for routine in own if _find_refusal(routine) is None]
    if not routines:
        refusals = (_find_refusal(routine) or NOTHING for routine in own[:_MOST_SITES])
        return NotApplicable(SilenceStage.GATED, join(refusals, "; "))
    gone, targets = _mark_calling(subject, routines)
    fetched = _measure_fetch_ratio(subject, targets)
    if fetched > _MOST_FETCH_RATIO:
        return NotApplicable(
            SilenceStage.GATED,
            say(
                "{fetched} of the samples are instruction fetch elsewhere, which inlining would increase",
                fetched=percent(fetched),
            ),
        )
    sites = [site for site in _assign_edges(subject, routines, gone, targets) if len(site.edges)]
    if not sites:
        names = list_of(name_code(routine.name) for routine in routines[:_MOST_SITES])
        return say("no stalls in or around calls of {names}", names=names)
    return EliminationMatch(
        regions=tuple(_build_region(subject, site) for site in sites),
        hint=say("Inline small hot functions, so that their calls cost nothing."),
        caveats=_list_caveats(sites),
        work=count_work_left(subject, executions=gone.astype(np.float64)),
        reasons=(
            say(
                "samples of calls, returns, arguments and results of {functions}",
                functions=count(len(sites), "called function"),
            ),
            say("instruction fetch elsewhere is {fetched} of the samples", fetched=percent(fetched)),
        ),
    )


def _mark_calling(
    subject: Subject, routines: Sequence[CalledRoutine]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """bool[n] each: what calls take (jumps there and back, and moves of arguments and results), and where these jumps lead."""
    rows = subject.rows
    covered, targets = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    for routine in routines:
        covered[routine.rows.start : routine.rows.stop] = True
        targets[routine.rows.start] = True
        for site in routine.sites:
            covered[_list_neighbours(subject, site)] = True
            targets[min(site + 1, len(rows) - 1)] = True
    jumps = rows.mark_by_opcode(lambda one: one.flow in _CROSSING)
    is_move = rows.spread_by_mnemonic(lambda name: int(name.startswith(_MOVES)), unknown=0) > 0
    return covered & (is_move | jumps), targets


def _count_pointer_calls(subject: Subject) -> Sentence:
    """A clause about calls whose callee is unknown; empty where there are none."""
    graphs = [function.graph for function in subject.rows.functions if function.graph is not None]
    indirect = sum(call.is_indirect for graph in graphs for call in graph.calls)
    return say(", but makes {calls}", calls=count(indirect, "indirect call")) if indirect else NOTHING


def _find_refusal(routine: CalledRoutine) -> Sentence | None:
    """Reason why a routine is not to be inlined; None when it may be."""
    name, instructions = Code(text=routine.name), count(routine.instructions, "instruction")
    if routine.is_recursive:
        return say("{name} is recursive", name=name)
    if routine.instructions * INSTRUCTION_BYTES > _MOST_BYTES:
        return say("{name} is too large ({instructions})", name=name, instructions=instructions)
    if routine.instructions * (len(routine.sites) - 1) > _MOST_GROWTH:
        sites = count(len(routine.sites), "call site")
        return say(
            "{name} would add {instructions} at each of {sites}", name=name, instructions=instructions, sites=sites
        )
    return None


def _measure_fetch_ratio(subject: Subject, targets: npt.NDArray[np.bool_]) -> float:
    """Samples of instruction fetch where no call leads, by all samples."""
    edges = find_fetch_edges(subject)
    elsewhere = edges[~targets[subject.edges.use_row[edges]]]
    return float(subject.edges.all_samples[elsewhere].sum()) / max(1, subject.total_samples)


def _assign_edges(
    subject: Subject,
    routines: Sequence[CalledRoutine],
    gone: npt.NDArray[np.bool_],
    targets: npt.NDArray[np.bool_],
) -> list[_Site]:
    """Every blamed pair that goes to one routine: that in which, or next to whose call, its cause is."""
    edges = subject.edges
    owner = np.full(len(subject.rows), -1, dtype=np.int64)
    for number, routine in enumerate(routines):
        for site in routine.sites:
            owner[_list_neighbours(subject, site)] = number
    for number, routine in enumerate(routines):
        owner[routine.rows.start : routine.rows.stop] = number
    matched = gone[edges.def_row]
    fetched = find_fetch_edges(subject)
    matched[fetched] = targets[edges.use_row[fetched]]
    owners = np.where(matched & (edges.all_samples > 0), owner[edges.def_row], -1)
    return [_Site(routine=routine, edges=np.flatnonzero(owners == number)) for number, routine in enumerate(routines)]


def _list_neighbours(subject: Subject, site: int) -> npt.NDArray[np.int64]:
    """int64[k], rows of the call, of its block before it and of the block it returns to, as far as a scheduler would mix."""
    graph = subject.rows.function_of(site).graph
    if graph is None:
        return np.array([site], dtype=np.int64)
    index = subject.rows.index_of(site)
    first_row = site - index
    start = max(int(graph.first_instruction[graph.block_of_instruction[index]]), index - _NEIGHBOURS)
    end = index
    if index + 1 < len(graph.block_of_instruction):
        end = min(int(graph.last_instruction[graph.block_of_instruction[index + 1]]), index + _NEIGHBOURS)
    return np.arange(first_row + start, first_row + end + 1)


def _build_region(subject: Subject, site: _Site) -> EliminationRegion:
    scope = subject.scopes.scopes[site.routine.scope]
    return build_region(subject, scope, site.edges, hint=_write_hint(subject, site.routine))


def _write_hint(subject: Subject, routine: CalledRoutine) -> Sentence:
    sites = list(dict.fromkeys(describe_line(subject, site) for site in routine.sites))
    others = len(sites) - _MOST_SITES
    more = [say("{others} more", others=count(others))] if others > 0 else []
    return say(
        "Inline {name} ({instructions}), called at {sites}: {how}.",
        name=Code(text=routine.name),
        instructions=count(routine.instructions, "instruction"),
        sites=list_of([*sites[:_MOST_SITES], *more]),
        how=_write_remedy(subject, routine),
    )


def _write_remedy(subject: Subject, routine: CalledRoutine) -> Sentence:
    scope = subject.scopes.scopes[routine.scope]
    if scope.file is not None and scope.line is not None:
        for line in range(scope.line, max(scope.line - _LINES_ABOVE, 0), -1):
            text = subject.source_line(scope.file, line) or ""
            word = next((word for word in _KEPT_OUT if word in text), None)
            if word is not None:
                return say("remove {word} at {line}", word=Code(text=word), line=name_line(scope.file, line))
    declare = say("declare it {qualifier}", qualifier=Code(text="__forceinline__"))
    if not routine.is_separate:
        return declare
    return say(
        "define it where its callers see it or link with {option}, and {declare}",
        option=Code(text="-dlto"),
        declare=declare,
    )


def _list_caveats(sites: Sequence[_Site]) -> tuple[Sentence, ...]:
    caveats = [say("Inlining can raise register use, which can lower occupancy.")]
    copies = sum(site.routine.instructions * (len(site.routine.sites) - 1) for site in sites)
    if copies > 0:
        caveats.append(say("Inlining at every call site adds about {copies}.", copies=count(copies, "instruction")))
    return tuple(caveats)


OPTIMIZER = Optimizer(
    name="function_inlining",
    title="Inline a function",
    group="calls",
    find=match,
)
