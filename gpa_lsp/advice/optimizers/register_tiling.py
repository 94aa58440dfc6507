"""Products whose multiply-adds each load their operands from shared memory."""

from typing import ClassVar

import numpy as np

from gpa_lsp.advice.blamed_stalls import build_counted_regions, build_regions, find_edges
from gpa_lsp.advice.loop_work import LoopWork, list_loop_work
from gpa_lsp.advice.model import Category, MemoryLevel, Silence, SilenceStage
from gpa_lsp.advice.naming import describe_scope
from gpa_lsp.advice.optimizers import UnitOptimizer
from gpa_lsp.advice.reliefs import Relief, Reliefs
from gpa_lsp.advice.subject import Subject
from gpa_lsp.advice.unit_pricing import TILING_REACH, UnitMatch
from gpa_lsp.basis.prose import Code, number, say

MOST_WAVEFRONTS = 0.25
"""Shared-memory wavefronts per multiply-add from which on operands are not reused enough: a tile of 8 × 8 results takes 1/8 + 1/8."""

_SHARED_UNITS = frozenset({"l1", "shared", "mio"})

_QUEUE_REASONS = ("mio_throttle", "short_scoreboard")
_QUEUE_SHARE = 0.2
"""Of all samples, in front of shared memory: where no counter says which unit is busy."""

_TILES = ((8, 128), (4, 64))
"""Edge of a tile, and registers a thread needs for it: its results, a row and a column of operands, and addresses."""


class RegisterTiling(UnitOptimizer):
    """A thread that computes a tile of T × T results loads each operand once for T of them.

    Matched: the loop with most multiply-adds, where shared memory takes more than a quarter of a wavefront for each, and L1, shared memory or
    the queue before them limits the kernel. The multiply-adds stay; loads, and the loop's own instructions, go.
    """

    name: ClassVar[str] = "register_tiling"
    title: ClassVar[str] = "Tile in registers"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "data reuse"
    reliefs: ClassVar[Reliefs] = Reliefs(
        relieves=frozenset({Relief.BYTES, Relief.ISSUES}), levels=frozenset({MemoryLevel.L1, MemoryLevel.SHARED})
    )
    """Operands are loaded once for a row or column of results."""
    needs_samples: ClassVar[bool] = False

    def match(self, subject: Subject) -> UnitMatch | Silence:
        """Compare a loop's loads with its multiply-adds."""
        works = list_loop_work(subject)
        if not works:
            return self.silent(SilenceStage.NOT_MATCHED, say("no loop does floating-point multiply-adds"))
        work = works[0]
        per_result = work.shared_wavefronts / work.multiply_adds
        if per_result <= MOST_WAVEFRONTS:
            return self.silent(
                SilenceStage.NOT_MATCHED,
                say("shared memory takes {each} wavefronts per multiply-add", each=number(per_result)),
            )
        queued = sum(subject.rows.count_reason(reason) for reason in _QUEUE_REASONS) / max(subject.total_samples, 1)
        if subject.limiter.unit not in _SHARED_UNITS and queued < _QUEUE_SHARE:
            return self.silent(
                SilenceStage.GATED, say("shared memory does not limit the kernel: {why}", why=subject.limiter.sentence)
            )
        return self._describe(subject, work, per_result)

    def _describe(self, subject: Subject, work: LoopWork, per_result: float) -> UnitMatch:
        edge = _choose_edge(subject)
        left = min(1.0, 2 / edge / per_result)
        share = work.executions / max(1, int(np.maximum(subject.rows.executions, 0).sum()))
        lean = (1 + 2 / edge) * work.multiply_adds / work.executions
        loads = np.zeros(len(subject.rows), dtype=np.bool_)
        loads[work.rows] = True
        edges = find_edges(subject, loads, (*_QUEUE_REASONS, "lg_throttle", "long_scoreboard"))
        return UnitMatch(
            leaves={"l1": left, "shared": left, "issue": 1 - share * max(0.0, 1 - lean), "alu": 1 - share * (1 - left)},
            reach=TILING_REACH,
            regions=build_regions(subject, edges, np.ones(len(edges)))
            if subject.total_samples
            else build_counted_regions(subject, np.where(loads, np.maximum(subject.rows.executions, 0), 0)),
            hint=say(
                "Let each thread compute {edge} × {edge} results in {where}: load a column and a row of the shared tiles into registers, then "
                "do their outer product.",
                edge=number(edge),
                where=describe_scope(subject, work.scope),
            ),
            caveats=(
                say(
                    "{edge} × {edge} results need about {registers} registers; the block has that many times fewer threads or covers a larger "
                    "tile.",
                    edge=number(edge),
                    registers=number(edge * edge + 4 * edge),
                ),
                say(
                    "Load the shared tiles with {wide} where they are contiguous, or they become the next limit.",
                    wide=Code(text="float4"),
                ),
            ),
            reasons=(
                say(
                    "shared memory takes {now} wavefronts per multiply-add, {then} with the tile",
                    now=number(per_result),
                    then=number(2 / edge),
                ),
            ),
        )


def _choose_edge(subject: Subject) -> int:
    """The largest tile whose registers a thread may have."""
    architecture = subject.kernel.architecture
    most = 255 if architecture is None else architecture.occupancy.max_registers_per_thread.value
    return next((edge for edge, registers in _TILES if registers <= most), _TILES[-1][0])


OPTIMIZER = RegisterTiling()
