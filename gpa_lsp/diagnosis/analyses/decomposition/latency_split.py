"""Where the time of long-scoreboard stalls goes: legs of the way to memory, queueing, and operands that had still to be read."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import UseWaits
from gpa_lsp.diagnosis.analyses.decomposition.unloaded_latency import UnloadedLatency

QUEUEING = "queueing"
OPERANDS = "operands not yet read"
UNKNOWN = "no cause found"


class StallPart(Struct, frozen=True, kw_only=True):
    """A part of the long-scoreboard time."""

    name: str  # a leg of the way, :data:`QUEUEING`, :data:`OPERANDS` or :data:`UNKNOWN`
    share_ratio: float  # of the long-scoreboard time, 0..1
    cycles: float | None  # of the mean wait for a result; None for what is no such wait


class LatencySplit(Struct, frozen=True, kw_only=True):
    """Where the time goes."""

    # their shares add up to 1; in the order of the way, then queueing, operands and what is unknown
    parts: tuple[StallPart, ...]
    wait_cycles: float  # mean wait for a result
    passed_cycles: float  # mean time since the load's issue when the wait began
    unloaded_cycles: float  # mean latency without queues
    exposed_cycles: float  # what of it had to be waited for

    @property
    def queueing_ratio(self) -> float:
        """The part of waits for results that unloaded latencies do not explain, 0..1."""
        return 1 - self.exposed_cycles / self.wait_cycles if self.wait_cycles > 0 else 0.0


def split_latency(
    uses: UseWaits, unloaded: UnloadedLatency, operand_ratio: float = 0.0, unknown_ratio: float = 0.0
) -> LatencySplit:
    """Share the long-scoreboard time out.

    A wait for a result begins when the warp arrives at the instruction that needs it, a while after the load's issue. Of the unloaded latency,
    what had not passed by then has to be waited for in any case: the exposed latency. What is waited beyond that is queueing (misses of the
    TLB, for which there is no counter, included). Nobody can say which leg of the way the exposed part is; it is taken to consist of the same
    legs as the whole.

    Source: after DrGPU (Hao et al., ICPE 2023), which sets latency against throughput by level; exposure and queueing as defined here.
    """
    wait, exposed = uses.mean_wait_cycles, uses.expose(unloaded.cycles)
    results = 1 - operand_ratio - unknown_ratio
    legs = [(leg.name, exposed * leg.cycles / unloaded.cycles) for leg in unloaded.parts]
    cycles = [*legs, (QUEUEING, wait - exposed)]
    parts = [
        StallPart(name=name, share_ratio=results * value / wait if wait > 0 else 0.0, cycles=value)
        for name, value in cycles
        if value > 0
    ]
    others = ((OPERANDS, operand_ratio), (UNKNOWN, unknown_ratio))
    parts += [StallPart(name=name, share_ratio=ratio, cycles=None) for name, ratio in others if ratio > 0]
    return LatencySplit(
        parts=tuple(parts),
        wait_cycles=wait,
        passed_cycles=uses.mean_passed_cycles,
        unloaded_cycles=unloaded.cycles,
        exposed_cycles=exposed,
    )
