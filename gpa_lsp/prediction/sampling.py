"""Which blocks of a launch are emulated: all, where that costs little; one wave of the GPU else; fewer, where a wave is too much."""

from dataclasses import dataclass
from math import prod

from gpa_lsp.emulator.model import Emulation, Sampling, SamplingKind
from gpa_lsp.errors import InputError
from gpa_lsp.prediction.settings import PredictionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    """The choice.

    Attributes:
        sampling: for the emulator.
        why: a clause for people.
    """

    sampling: Sampling
    why: str


def plan_sampling(probe: Emulation, settings: PredictionSettings, *, wave_blocks: int, machine: str) -> SamplingPlan:
    """Choose by what a few blocks cost.

    Args:
        probe: some blocks of the launch.
        settings: the limits.
        wave_blocks: blocks the whole GPU holds at once.
        machine: its name.

    Raises:
        InputError: not one of the blocks asked for is in the grid.
    """
    total = prod(probe.grid)
    if settings.blocks:
        chosen = tuple(sorted({block for block in settings.blocks if block < total}))
        if not chosen:
            message = f"there is no block {min(settings.blocks):,} in a grid of {total:,}"
            raise InputError(message, remedy=f"choose among 0 to {total - 1:,}")
        return SamplingPlan(sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=chosen), why="the blocks asked for")
    per_block = max(1.0, probe.warp_instructions / max(1, len(probe.executed_blocks)))
    affordable = max(1, int(settings.traced_warp_instructions / per_block))
    if total <= affordable:
        return SamplingPlan(sampling=Sampling(), why="all blocks")
    if wave_blocks <= affordable:
        why = f"one wave of the {machine}" if machine else "one wave"
        return SamplingPlan(sampling=Sampling(kind=SamplingKind.WAVE, count=wave_blocks), why=why)
    why = f"the first blocks of a wave of {wave_blocks:,}, which would be too many to emulate"
    return SamplingPlan(sampling=Sampling(kind=SamplingKind.WAVE, count=affordable), why=why)
