"""The default blamer: scoreboard stalls by the counters, ``wait`` by the stall counts, the others by what lies before in control flow.

Source: blame measured on real reports; GPA section IV for the vocabulary of defs, uses and categories.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.control_code import NO_BARRIER
from gpa_lsp.diagnosis.blame.blamers import DependencyGraph, FunctionBlame
from gpa_lsp.diagnosis.blame.edges import join_edges
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency, Unattributed
from gpa_lsp.diagnosis.blame.operands import RegisterUses
from gpa_lsp.diagnosis.blame.scoreboard_stalls import ScoreboardBlame, blame_scoreboards
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.walk_back import find_other_causes
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.foundation.distinct import find_distinct_rows


class ScoreboardBlamer:
    """What the hardware waits for: six counters, stall counts, barriers, branches."""

    name = "scoreboard"
    description = "Scoreboard stalls by the six scoreboards that instructions set and wait on, wait stalls by stall counts, others by control flow."

    def blame(self, view: FunctionView, budget: WorkBudget) -> FunctionBlame:
        """Find the causes of all samples of a function; conservation holds per row and reason, whatever the budget."""
        waits = find_wait_causes(view, budget)
        others, lost = find_other_causes(view, budget)
        scoreboards = blame_scoreboards(view, budget)
        return FunctionBlame(
            edges=join_edges((one, 0) for one in (scoreboards.edges, waits, others)).sort(),
            unattributed=Unattributed.join([scoreboards.unattributed, lost]).sort_by("row", "reason"),
            dependencies=_gather_dependencies(view, scoreboards, waits),
        )


BLAMER = ScoreboardBlamer()


def _gather_dependencies(view: FunctionView, scoreboards: ScoreboardBlame, waits: BlameEdges) -> DependencyGraph:
    """The pairs of execution and memory dependences, as the published coverage counts them.

    Barriers and branches are none, and neither is the issue cost of the instruction before: nothing of it is used.

    Before: all that sampled instructions wait for behind scoreboards, and the instructions of fixed latency their values come from. After:
    the pairs that carry samples of a scoreboard or of ``wait``.
    """
    before = [
        np.array(scoreboards.pending_pairs, dtype=np.int64).reshape(-1, 2),
        np.array(list(find_fixed_latency_defs(view, view.all_samples.sum(axis=1) > 0)), dtype=np.int64).reshape(-1, 2),
    ]
    after = [_list_moved(scoreboards.edges), _list_moved(waits)]
    return DependencyGraph(before=_list_unique([*before, *after]), after=_list_unique(after))


def _list_moved(edges: BlameEdges) -> npt.NDArray[np.int64]:
    """int64[m, 2], (use, def) of the edges between two instructions that depend on each other."""
    chosen: npt.NDArray[np.bool_] = edges.is_moved & np.not_equal(edges.dependency, Dependency.ISSUE)
    return np.stack([edges.use_row, edges.def_row], axis=1).astype(np.int64)[chosen]


def _list_unique(parts: list[npt.NDArray[np.int64]]) -> tuple[tuple[int, int], ...]:
    return tuple((use, source) for use, source in find_distinct_rows(np.concatenate(parts)).tolist())


def find_fixed_latency_defs(view: FunctionView, is_use: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The (use, def) rows of values that come from instructions of fixed latency, in the order of uses.

    A value from before the block is left out: the stall counts since have paid for it, or are too few to matter. So is a value behind a
    scoreboard, which its counter stands for.

    Args:
        is_use: bool[n], the uses that are asked about.
    """
    uses = RegisterUses(view.instructions)
    has_scoreboard = (view.control.write_barrier != NO_BARRIER).tolist()
    first_rows = view.graph.first_instruction[view.graph.block_of_instruction].tolist()
    last_write: dict[int, int] = {}
    for row, wanted in enumerate(is_use.tolist()):
        if wanted:
            sources = {last_write.get(number, -1) for number in uses.reads(row)}
            yield from ((row, source) for source in sorted(sources) if source >= first_rows[row])
        for number in uses.writes(row):
            last_write[number] = -1 if has_scoreboard[row] else row
