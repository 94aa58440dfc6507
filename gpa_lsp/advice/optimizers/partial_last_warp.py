"""Blocks whose number of threads is no multiple of a warp."""

from typing import ClassVar

from gpa_lsp.advice.matches import IdleMatch
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import IdleOptimizer
from gpa_lsp.advice.residency import bound_issue_rate, count_waves, say_count
from gpa_lsp.advice.subject import Subject

_LANES = 32


class PartialLastWarp(IdleOptimizer):
    """The last warp of each block issues for lanes that have no thread.

    The same threads in full warps need ⌈threads / 32⌉ warps of the whole grid instead of ⌈threads of a block / 32⌉ of each block; for many blocks
    that saves (1 / w) · (1 − l / 32) of w warps per block whose last has l threads. It saves as much time where warps queue for the SMs; where all
    of them are resident at once, only the cycles in which they issue.

    Source: Nsight Compute's launch configuration rule.
    """

    name: ClassVar[str] = "partial_last_warp"
    title: ClassVar[str] = "Full warps"
    category: ClassVar[Category] = Category.PARALLEL
    group: ClassVar[str] = "idle"
    needs_grid: ClassVar[bool] = True

    def match(self, subject: Subject) -> IdleMatch | Silence:
        """Look at the rest of the block size by a warp's."""
        launch = subject.launch
        if launch is None or launch.blocks < 1 or launch.threads_per_block < 1:
            return self.silent(SilenceStage.NO_METRICS, "the profile does not say how many threads there are")
        threads, warps = launch.threads_per_block, launch.warps_per_block
        last = threads - _LANES * (warps - 1)
        if last == _LANES:
            return self.silent(SilenceStage.NOT_MATCHED, f"blocks of {threads} threads are whole warps")
        needed = -(-launch.blocks * threads // _LANES)
        if needed >= launch.blocks * warps:
            return self.silent(SilenceStage.NOT_MATCHED, "the threads of the grid fill no fewer warps")
        saved = 1 - needed / (launch.blocks * warps)
        waves = count_waves(subject)
        rate, most_issued = bound_issue_rate(subject)
        is_queued = waves is None or waves >= 1
        if rate != most_issued and not is_queued:
            message = "all warps are resident at once, so only their issue cycles count, and the profile does not tell how many there are"
            return self.silent(SilenceStage.NOT_KNOWN, message)
        issuing = saved * min(1.0, rate)
        return IdleMatch(
            scope=subject.scopes.scopes[0],
            saved_ratio=saved if is_queued else issuing,
            saved_ratio_low=issuing,
            saved_ratio_high=saved,
            bound=1 / (1 - saved),
            bound_reason=f"{needed:,} full warps do the work of {launch.blocks * warps:,}",
            hint=(
                f"Blocks of {threads} threads have {say_count(warps, 'warp')}, the last with {last} of {_LANES} lanes in use. "
                f"{_suggest(threads)} use all lanes."
            ),
            caveats=("the index arithmetic must follow the block size, and threads beyond the end be guarded",),
            reasons=(
                f"{100 * saved:.1f} % of the warps could go"
                + ("" if is_queued else "; all of them are resident at once, so only their issue cycles count"),
            ),
        )


def _suggest(threads: int) -> str:
    """The multiples of a warp around a block size.

    >>> _suggest(250), _suggest(20)
    ('Blocks of 256 or 224 threads', 'Blocks of 32 threads, each doing the work of several of these blocks,')
    """
    above = -(-threads // _LANES) * _LANES
    if above == _LANES:
        return f"Blocks of {_LANES} threads, each doing the work of several of these blocks,"
    return f"Blocks of {above} or {above - _LANES} threads"


OPTIMIZER = PartialLastWarp()
