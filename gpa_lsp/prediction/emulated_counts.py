"""What an emulated launch counts of each access of its PTX: :func:`count_launch`."""

from collections.abc import Iterator

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.emulate import emulate
from gpa_lsp.emulator.model import Counts, Emulation, Sampling, SamplingKind, TraceSettings
from gpa_lsp.prediction.launch_subject import LaunchSubject
from gpa_lsp.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.ptx.model import PtxModule, Space
from gpa_lsp.ptx.reachable import list_reachable
from gpa_lsp.traces.model import AccessGroupKind, find_group_kind
from gpa_lsp.traces.request_counts import RequestCollector, RequestCounts

_COUNTING_SHARE = 4
"""Blocks that are run for counting alone may take this part of what a launch may."""
_IN_PIECES = "wmma."
"""Instructions that the hardware executes as several accesses, as which a trace has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedAccess:
    """An access instruction of the PTX, in one space.

    Attributes:
        text_line: of the PTX text, from 1.
        text: as PTX.
        kind: loads, stores or atomics.
        space: resolved; GENERIC where no lane ever accessed anything.
        bytes_per_lane: that one thread accesses at once.
        executions: by warps, those in which the guard held for no lane included.
        threads: that executed it with their guard true.
        sectors: of its requests; None for shared memory.
        wavefronts: of its requests; None for all but shared memory.
    """

    text_line: int
    text: str
    kind: AccessGroupKind
    space: Space
    bytes_per_lane: int
    executions: int
    threads: int
    sectors: int | None
    wavefronts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedCounts:
    """All accesses of a launch.

    Attributes:
        accesses: in the order of the PTX.
        counted_blocks: that were run, each to its end.
        grid_blocks: of the launch.
    """

    accesses: tuple[EmulatedAccess, ...]
    counted_blocks: int
    grid_blocks: int

    @property
    def is_all(self) -> bool:
        """Every block was run."""
        return self.counted_blocks == self.grid_blocks

    @property
    def factor(self) -> float:
        """What the counts are multiplied with to be those of the launch."""
        return self.grid_blocks / self.counted_blocks


def count_launch(
    subject: LaunchSubject, prediction: KernelPrediction, collector: RequestCollector, settings: PredictionSettings
) -> EmulatedCounts | None:
    """What each access did, of all blocks where the prediction ran them, else of some that are spread over the grid.

    Args:
        subject: the launch.
        prediction: of it.
        collector: that got the prediction's trace.
        settings: that the prediction was made by.

    Returns:
        The counts; None where not every block that was begun ran to its end, or not all of it was traced.
    """
    execution = prediction.execution
    counts, blocks = prediction.counts, execution.executed_blocks
    if counts is None or not (execution.is_complete and collector.is_complete and blocks == execution.grid_blocks):
        per_block = max(1.0, execution.warp_instructions / max(1, blocks))
        most = max(1, int(settings.traced_warp_instructions / _COUNTING_SHARE / per_block))
        for number in dict.fromkeys((min(most, execution.grid_blocks), 1)):  # of blocks that loop long, one is enough
            collector = RequestCollector()
            run = _run_spread(subject, number, collector, settings)
            counts, blocks = run.counts, len(run.executed_blocks)
            if run.is_complete and collector.is_complete and blocks:
                break
        else:
            return None
    return EmulatedCounts(
        accesses=tuple(_list_accesses(subject.module, subject.kernel, counts, collector)),
        counted_blocks=blocks,
        grid_blocks=execution.grid_blocks,
    )


def _run_spread(
    subject: LaunchSubject, blocks: int, collector: RequestCollector, settings: PredictionSettings
) -> Emulation:
    """A wave would not do: blocks at the ends of a grid do other work than those in its middle."""
    return emulate(
        subject.module,
        subject.launch,
        budget=settings.budget,
        sampling=Sampling(kind=SamplingKind.SPREAD, count=blocks),
        trace=TraceSettings(branches=False),
        sink=collector,
        check_races=False,
    )


def _list_accesses(
    module: PtxModule, kernel: str, counts: Counts, collector: RequestCollector
) -> Iterator[EmulatedAccess]:
    every = collector.finish()
    lines = [one.text_line for function in list_reachable(module, kernel) for one in function.instructions]
    for static, text_line in zip(collector.instructions, lines, strict=False):  # behind them, ways to called functions
        if static.kind is None:
            continue
        executions, threads = int(counts.warp_executions[static.index]), int(counts.lane_executions[static.index])
        spaces = every.get(static.index) or {static.space: RequestCounts()}
        is_split = static.text.startswith(_IN_PIECES) or len(spaces) > 1
        for space, one in spaces.items():
            yield EmulatedAccess(
                text_line=text_line,
                text=static.text,
                kind=find_group_kind(static),
                space=space,
                bytes_per_lane=static.bytes_per_lane,
                executions=one.requests if is_split else executions,
                threads=one.lanes if is_split else threads,
                sectors=None if space is Space.SHARED else one.sectors,
                wavefronts=one.wavefronts if space is Space.SHARED else None,
            )
