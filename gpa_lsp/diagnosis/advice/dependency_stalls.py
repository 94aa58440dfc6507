"""Stalls that wait for a result of another instruction: what rearranged code could hide."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.advice.blamed_stalls import build_hotspots
from gpa_lsp.diagnosis.advice.matches import HidingRegion
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.kernel.dataflow.staged_copies import mark_async_copies
from gpa_lsp.kernel.scopes import ScopeTree

# Results behind a scoreboard. Spills are left out: other instructions in between do not make registers.
VARIABLE_LATENCY = frozenset(
    {
        BlameCategory.MEMORY_GLOBAL,
        BlameCategory.MEMORY_CONSTANT,
        BlameCategory.MEMORY_TEXTURE,
        BlameCategory.EXECUTION_SHARED,
        BlameCategory.EXECUTION_CONSTANT,
        BlameCategory.EXECUTION_SPECIAL,
        BlameCategory.EXECUTION_WARP,
        BlameCategory.EXECUTION_SYSTEM,
    }
)

# GPA's memory and execution dependences: with results of fixed latency and registers that are still being read
EVERY_DEPENDENCE = VARIABLE_LATENCY | {BlameCategory.EXECUTION_ARITHMETIC, BlameCategory.WRITE_AFTER_READ}


def find_dependency_edges(subject: Subject, categories: Collection[BlameCategory]) -> npt.NDArray[np.int64]:
    """The blamed pairs of two instructions with latency samples in some categories; waits for asynchronous copies are left out.

    Returns int64[m], indices into ``subject.edges``, ascending.
    """
    edges = subject.edges
    is_wanted = np.array([category in categories for category in BlameCategory], dtype=np.bool_)
    wanted = is_wanted[edges.category]
    is_copy = mark_async_copies(subject.rows)[edges.def_row]
    return np.flatnonzero(edges.is_moved & wanted & ~is_copy & (subject.known_edge_latency_samples > 0))


def find_loops(scopes: ScopeTree, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """int32[k], the innermost loop around each row; -1 outside loops."""
    found = scopes.innermost[rows]
    return np.where(scopes.is_loop[found], found, np.int32(-1)).astype(np.int32)


def sum_active(scopes: ScopeTree, chosen: Sequence[int]) -> float:
    """Samples in issuing cycles of some scopes and all inside them; a scope inside another chosen one counts once."""
    members = set(chosen)
    outermost = [scope for scope in members if members.isdisjoint(scopes.around(scope)[1:])]
    return float(sum(scopes.active_samples[scope] for scope in outermost))


def build_hiding_region(
    subject: Subject, scope: int, edges: npt.NDArray[np.int64], hint: Sentence = NOTHING, *, part: float = 1.0
) -> HidingRegion:
    """A region of some pairs in a scope, whose A is that of the scope and all inside it; ``part``: of the latency that can be hidden."""
    return HidingRegion(
        scope=subject.scopes.scopes[scope],
        samples=float(subject.edges.all_samples[edges].sum()),
        latency_samples=float(subject.known_edge_latency_samples[edges].sum()) * part,
        active_samples=float(subject.scopes.active_samples[scope]),
        hotspots=build_hotspots(subject, edges),
        hint=hint,
    )
