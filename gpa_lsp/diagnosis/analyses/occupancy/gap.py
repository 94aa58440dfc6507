"""Between the warps that fit and those that were resident: how many a small grid, the last wave and the rest cost.

``sm__warps_active`` counts only cycles in which the SM has a warp, so that SMs without any work do not count here (the analysis of the load
does). Expected are, for a grid of B blocks of w warps on S SMs with room for b blocks each, if all blocks take equally long:

* where not even one wave is there (B < S·b): w · B / min(B, S), the warps of the SMs that have any;
* else, with n whole waves and a rest of t blocks, which lie on min(t, S) SMs: w · B / (n·S + min(t, S)).

What is missing beyond that is time in which places stand empty: between the end of a block and the start of the next one, at the launch, and
behind warps that end before their block does. By Little's law a block is resident for (resident blocks · cycles · S) / B cycles, which turns the
rest into cycles per block.
"""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight
from gpa_lsp.diagnosis.analyses.occupancy.launch import LaunchShape
from gpa_lsp.foundation.prose import Sentence, count, join, number, say
from gpa_lsp.gpu.arch.occupancy import Occupancy

# A gap of less than this part of what fits is not worth a word; Nsight Compute's rule takes ten points, too
SMALL_GAP_RATIO = 0.1

# Ours: starting a block takes some hundred cycles (in published reports 300 to 700 where nothing else is missing), a tenth of this
SHORT_BLOCK_CYCLES = 5_000


class OccupancyGap(Struct, frozen=True, kw_only=True):
    """Warps of an SM on average while it is active, from what fits down to what was measured."""

    fitting_warps: int  # by the rules
    offered_warps: float  # with this many blocks in the grid; at most ``fitting_warps``
    expected_warps: float  # with the last wave; at most ``offered_warps``
    resident_warps: float  # as measured
    block_cycles: float | None  # how long a block is resident; None where the active cycles were not collected
    # how long its slot stays empty, per block; None where the active cycles were not collected
    empty_cycles: float | None

    @property
    def ratio(self) -> float:
        """Missing of what fits, 0..1."""
        return max(0.0, 1 - self.resident_warps / self.fitting_warps)

    @property
    def grid_warps(self) -> float:
        """Missing because the grid has no more blocks."""
        return self.fitting_warps - self.offered_warps

    @property
    def tail_warps(self) -> float:
        """Missing because of the last wave."""
        return self.offered_warps - self.expected_warps

    @property
    def other_warps(self) -> float:
        """Missing beyond that."""
        return max(0.0, self.expected_warps - self.resident_warps)


def measure_gap(
    shape: LaunchShape, occupancy: Occupancy, resident_warps: float, active_cycles: float | None
) -> OccupancyGap | None:
    """The gap and its parts.

    Args:
        active_cycles: of an SM, on average over all SMs; None when not collected.

    Returns:
        None where the grid or the number of SMs is unknown, or nothing fits.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
    >>> block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    >>> fitting = find_occupancy(find_architecture((8, 0)), block)
    >>> gap = measure_gap(LaunchShape(block=block, grid_blocks=1000, sm_count=100), fitting, 50.0, 5000.0)
    >>> gap.fitting_warps, gap.offered_warps, gap.expected_warps, gap.block_cycles, gap.empty_cycles
    (64, 64.0, 40.0, 3125.0, 0.0)
    """
    capacity = shape.find_capacity(occupancy)
    blocks, sms = shape.grid_blocks, shape.sm_count
    if capacity is None or not blocks or sms is None or resident_warps <= 0:
        return None
    warps = occupancy.warps_per_block
    held = capacity / sms
    offered = warps * min(held, blocks / min(blocks, sms))
    whole, rest = divmod(blocks, capacity)
    expected = min(offered, warps * blocks / (whole * sms + min(rest, sms)))
    block_cycles = empty_cycles = None
    if active_cycles is not None:
        block_cycles = resident_warps / warps * active_cycles * sms / blocks
        empty_cycles = max(0.0, block_cycles * (expected / resident_warps - 1))
    return OccupancyGap(
        fitting_warps=occupancy.warps_per_sm,
        offered_warps=offered,
        expected_warps=expected,
        resident_warps=resident_warps,
        block_cycles=block_cycles,
        empty_cycles=empty_cycles,
    )


def describe_gap(gap: OccupancyGap) -> Finding:
    """The gap for people, with its largest part first."""
    resident, fitting = number(gap.resident_warps), count(gap.fitting_warps, "warp")
    if gap.resident_warps >= gap.fitting_warps:
        return Finding(text=say("All {fitting} that fit are resident on average.", fitting=fitting), weight=Weight.GOOD)
    if gap.ratio < SMALL_GAP_RATIO:
        text = say(
            "{resident} of the {fitting} that fit are resident on average: nearly all.",
            resident=resident,
            fitting=fitting,
        )
        return Finding(text=text, weight=Weight.GOOD)
    parts = sorted(
        (
            (gap.grid_warps, say("because the grid has no more blocks"), "More blocks, each with less to do."),
            (
                gap.tail_warps,
                say("because of the tail, which does not fill the SMs"),
                "A grid of whole waves, or smaller blocks.",
            ),
            (gap.other_warps, _explain_rest(gap), _remedy_rest(gap)),
        ),
        key=lambda part: -part[0],
    )
    told = [
        say("{warps} are missing {why}", warps=number(warps), why=why)
        for warps, why, _ in parts
        if warps >= 0.05 * gap.fitting_warps
    ]
    text = say(
        "{resident} of the {fitting} that fit are resident on average. {missing}.",
        resident=resident,
        fitting=fitting,
        missing=join(told, "; "),
    )
    return Finding(text=text, remedy=say(parts[0][2]))


def _explain_rest(gap: OccupancyGap) -> Sentence:
    if gap.block_cycles is None or gap.empty_cycles is None:
        return say("because blocks start and end, or warps end before their block")
    measured = say(
        "a block runs for {run}, and its slot is empty for {empty}",
        run=count(gap.block_cycles, "cycle"),
        empty=count(gap.empty_cycles),
    )
    if gap.block_cycles < SHORT_BLOCK_CYCLES:
        return say("because blocks are short ({measured})", measured=measured)
    return say("because blocks or their warps take unequally long, or start late ({measured})", measured=measured)


def _remedy_rest(gap: OccupancyGap) -> str:
    if gap.block_cycles is not None and gap.block_cycles < SHORT_BLOCK_CYCLES:
        return "Fewer blocks with more work each (a grid-stride loop), so that starting them matters less."
    return "Even out the work of blocks and of the warps within them."
