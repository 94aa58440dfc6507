"""Where the time of long-scoreboard stalls goes: legs of the way to memory, queueing, and operands that had still to be read."""

from gpa_lsp.analyses.decomposition.load_waits import UseWaits
from gpa_lsp.analyses.decomposition.unloaded_latency import UnloadedLatency
from gpa_lsp.basis.lazy_dataclass import dataclass

QUEUEING = "queueing"
OPERANDS = "operands not yet read"
UNKNOWN = "no cause found"


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPart:
    """A part of the long-scoreboard time.

    Attributes:
        name: a leg of the way, :data:`QUEUEING`, :data:`OPERANDS` or :data:`UNKNOWN`.
        share_ratio: of the long-scoreboard time, 0..1.
        cycles: of the mean wait for a result; None for what is no such wait.
    """

    name: str
    share_ratio: float
    cycles: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySplit:
    """Where the time goes.

    Attributes:
        parts: their shares add up to 1; in the order of the way, then queueing, operands and what is unknown.
        wait_cycles: mean wait for a result.
        passed_cycles: mean time since the load's issue when the wait began.
        unloaded_cycles: mean latency without queues.
        exposed_cycles: what of it had to be waited for.
    """

    parts: tuple[StallPart, ...]
    wait_cycles: float
    passed_cycles: float
    unloaded_cycles: float
    exposed_cycles: float

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

    Args:
        uses: the waits for results.
        unloaded: mean latency, by legs.
        operand_ratio: part of the time in which operands were still to be read.
        unknown_ratio: part of the time without a cause.

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
