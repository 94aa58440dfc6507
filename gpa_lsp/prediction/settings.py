"""How a prediction is made: :class:`PredictionSettings`."""

from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.model import Budget
from gpa_lsp.volumes.model import VolumeMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSettings:
    """What is asked, and how much it may cost.

    Attributes:
        machine: name of the GPU to predict for; None for the first product of the compute capability that is compiled for.
        mode: of the volume model.
        budget: of the emulator, for each launch.
        traced_warp_instructions: a launch with more is sampled, by an estimate from a few blocks.
        blocks: linear indexes of the blocks to execute; empty for a choice by their number.
        checks_races: look for races on shared memory.
        traces_entries: record entries into basic blocks as well, which tells the divergence of each block of code.
        is_paper: count by CUDAAdvisor's own definitions as well; records entries.
        all_seconds: launches that have not begun by then are left out, and said to be; None for no such limit.
    """

    machine: str | None = None
    mode: VolumeMode = VolumeMode.CORRECTED
    budget: Budget = field(default_factory=Budget)
    traced_warp_instructions: int = 20_000_000
    blocks: tuple[int, ...] = ()
    checks_races: bool = True
    traces_entries: bool = False
    is_paper: bool = False
    all_seconds: float | None = None


DEFAULT_PREDICTION = PredictionSettings()

EDITOR_PREDICTION = PredictionSettings(
    budget=Budget(seconds=5.0, memory_bytes=1 << 30, trace_bytes=256 << 20), traced_warp_instructions=2_000_000
)
"""On a save somebody waits."""
