"""Small functions that are called: inside them, and around their calls, the compiler cannot fill waits with code from the other side."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_hotspots
from gpa_lsp.advice.code_size import find_fetch_edges
from gpa_lsp.advice.dependency_stalls import EVERY_DEPENDENCE
from gpa_lsp.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import HidingOptimizer
from gpa_lsp.advice.source_words import describe_line
from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.dataflow.called_routines import CalledRoutine, find_called_routines

_MOST_FETCH_RATIO = 0.3
"""Of the latency samples: where instructions come late already, more code makes it worse."""

_MOST_BYTES = 3000
"""Of a function that is worth inlining."""

_MOST_GROWTH = 1024
"""Instructions that copies at all call sites may add."""

_NEIGHBOURS = 32
"""Instructions before and after a call between which and the callee a scheduler would mix."""

_CONTROL = frozenset({BlameCategory.BRANCH, BlameCategory.INDIRECT, BlameCategory.ISSUE})
_CROSSING = (Flow.CALL, Flow.RETURN)

_KEPT_OUT = ("__noinline__", "noinline")
_LINES_ABOVE = 4
_MOST_SITES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """What inlining one routine touches.

    Attributes:
        routine: the routine.
        edges: indices of the blamed pairs that count for it.
        rows: bool[n], its code and the neighbours of its calls.
    """

    routine: CalledRoutine
    edges: npt.NDArray[np.int64]
    rows: npt.NDArray[np.bool_]


class FunctionInlining(HidingOptimizer):
    """Functions called directly that could be part of their callers.

    Matched: latency of dependences inside a called function, of dependences within a few instructions of its calls, and of the jumps to and from
    it. A is that of the function and of the instructions around its calls. Left out: the compiler's own routines (divisions, which other
    remedies are about), recursive functions, large ones; and everything where instruction fetch is a large part of the latency already.

    Source: GPA Table II, Function Inlining (device functions and their call sites); the thresholds on fetches and size are those of its code.
    """

    name: ClassVar[str] = "function_inlining"
    title: ClassVar[str] = "Inline a function"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "calls"

    def match(self, subject: Subject) -> HidingMatch | Silence:
        """Find called functions in which, or around which, warps wait."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        called = find_called_routines(subject.rows)
        own = [routine for routine in called if not routine.is_internal]
        if not own:
            internal = f" but {len(called)} of the compiler's own routines" if called else ""
            message = f"the kernel calls no function of known code{internal}{_count_pointer_calls(subject)}"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        routines = [routine for routine in own if _find_refusal(routine) is None]
        if not routines:
            return self.silent(
                SilenceStage.GATED, "; ".join(_find_refusal(routine) or "" for routine in own[:_MOST_SITES])
            )
        fetched = _measure_fetch_ratio(subject)
        if fetched > _MOST_FETCH_RATIO:
            message = f"{100 * fetched:.0f} % of the latency is instruction fetch, which more inlined code would add to"
            return self.silent(SilenceStage.GATED, message)
        sites = [site for site in _assign_edges(subject, routines) if len(site.edges)]
        if not sites:
            names = ", ".join(f"`{routine.name}`" for routine in routines[:_MOST_SITES])
            return self.silent(SilenceStage.NOT_MATCHED, f"no latency in, or around the calls of, {names}")
        covered = np.logical_or.reduce([site.rows for site in sites])
        return HidingMatch(
            regions=tuple(_build_region(subject, site) for site in sites),
            active_samples=_count_active(subject, covered),
            hint="Inline small functions that hot code calls: without calls the compiler can mix their instructions with those around them.",
            caveats=_list_caveats(sites),
            reasons=(
                f"latency in {len(sites)} called functions and within {_NEIGHBOURS} instructions of their calls",
                f"instruction fetch is {100 * fetched:.0f} % of the latency",
            ),
        )


def _count_pointer_calls(subject: Subject) -> str:
    """A clause about calls whose callee nobody knows; empty where there are none."""
    graphs = [function.graph for function in subject.rows.functions if function.graph is not None]
    count = sum(call.is_indirect for graph in graphs for call in graph.calls)
    if not count:
        return ""
    return f", and {count} call{'' if count == 1 else 's'} {'goes' if count == 1 else 'go'} through a pointer"


def _find_refusal(routine: CalledRoutine) -> str | None:
    """Why a routine is not to be inlined; None when it may be."""
    if routine.is_recursive:
        return f"`{routine.name}` is recursive"
    if routine.instructions * INSTRUCTION_BYTES > _MOST_BYTES:
        return f"`{routine.name}` is large, {routine.instructions} instructions"
    if routine.instructions * (len(routine.sites) - 1) > _MOST_GROWTH:
        return f"`{routine.name}` has {len(routine.sites)} call sites, which would add {routine.instructions} instructions each"
    return None


def _measure_fetch_ratio(subject: Subject) -> float:
    """Latency samples of instruction fetch by all latency samples."""
    latency = float(subject.known_latency_samples.sum())
    fetched = float(subject.known_edge_latency_samples[find_fetch_edges(subject)].sum())
    return fetched / latency if latency else 0.0


def _assign_edges(subject: Subject, routines: Sequence[CalledRoutine]) -> list[_Site]:
    """Every blamed pair to at most one routine: where it was sampled, else where its cause is, else next to whose call."""
    edges = subject.blame.edges
    inside = np.full(len(subject.rows), -1, dtype=np.int64)
    nearby = np.full(len(subject.rows), -1, dtype=np.int64)
    for number, routine in enumerate(routines):
        inside[routine.rows.start : routine.rows.stop] = number
        for site in routine.sites:
            nearby[_list_neighbours(subject, site)] = number
    owner = inside[edges.use_row]
    for candidate in (inside[edges.def_row], nearby[edges.use_row]):
        owner = np.where(owner >= 0, owner, candidate)
    owner[~_is_matched(subject)] = -1
    found = []
    for number, routine in enumerate(routines):
        rows = inside == number
        for site in routine.sites:
            rows[_list_neighbours(subject, site)] = True
        found.append(_Site(routine=routine, edges=np.flatnonzero(owner == number), rows=rows))
    return found


def _is_matched(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[e]: dependences, and the cost of jumping to a function and back."""
    edges = subject.blame.edges
    dependence = np.isin(edges.category, [int(category) for category in EVERY_DEPENDENCE])
    crosses = np.array([subject.rows.opcode(row).flow in _CROSSING for row in range(len(subject.rows))], dtype=np.bool_)
    control = np.isin(edges.category, [int(category) for category in _CONTROL]) & crosses[edges.def_row]
    return edges.is_moved & (dependence | control) & (subject.known_edge_latency_samples > 0)


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


def _build_region(subject: Subject, site: _Site) -> HidingRegion:
    edges = subject.blame.edges
    return HidingRegion(
        scope=subject.scopes.scopes[site.routine.scope],
        samples=float(edges.all_samples[site.edges].sum()),
        latency_samples=float(subject.known_edge_latency_samples[site.edges].sum()),
        active_samples=_count_active(subject, site.rows),
        hotspots=build_hotspots(subject, site.edges, np.ones(len(site.edges))),
        hint=_write_hint(subject, site.routine),
    )


def _count_active(subject: Subject, rows: npt.NDArray[np.bool_]) -> float:
    return float((subject.rows.all_samples[rows] - subject.known_latency_samples[rows]).sum())


def _write_hint(subject: Subject, routine: CalledRoutine) -> str:
    sites = list(dict.fromkeys(describe_line(subject, site) for site in routine.sites))
    more = f" and {len(sites) - _MOST_SITES} more places" if len(sites) > _MOST_SITES else ""
    where = ", ".join(sites[:_MOST_SITES]) + more
    size = f"{routine.instructions} instruction{'' if routine.instructions == 1 else 's'}"
    return f"Inline `{routine.name}` ({size}), which is called in {where}: {_write_remedy(subject, routine)}."


def _write_remedy(subject: Subject, routine: CalledRoutine) -> str:
    scope = subject.scopes.scopes[routine.scope]
    if scope.file is not None and scope.line is not None:
        for line in range(scope.line, max(scope.line - _LINES_ABOVE, 0), -1):
            text = subject.source_line(scope.file, line) or ""
            word = next((word for word in _KEPT_OUT if word in text), None)
            if word is not None:
                return f"take away the `{word}` in line {line}"
    if routine.is_separate:
        return "put its definition where its callers see it, or link with -dlto, and declare it `__forceinline__`"
    return "declare it `__forceinline__`"


def _list_caveats(sites: Sequence[_Site]) -> tuple[str, ...]:
    caveats = [
        "Inlined code takes registers where it is inlined, and a call saves none; fewer warps may fit on a multiprocessor."
    ]
    copies = sum(site.routine.instructions * (len(site.routine.sites) - 1) for site in sites)
    if copies > 0:
        caveats.append(f"Copies at every call site add about {copies} instructions of code.")
    return tuple(caveats)


OPTIMIZER = FunctionInlining()
