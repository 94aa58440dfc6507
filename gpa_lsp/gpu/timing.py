"""How long a described launch takes on a GPU: :func:`time_launch`. It needs no permission to read counters."""

from collections.abc import Callable, Sequence
from math import ceil, floor, sqrt
from statistics import median

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.gpu.local_gpu import LocalGpu
from gpa_lsp.gpu.placed_launch import PlacedLaunch

_CONFIDENCE = 1.96
"""Standard deviations: 95 % of a normal distribution."""
_FLUSH_TIMES = 2
"""Of the size of L2 that is written to empty it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """How a launch is timed.

    Attributes:
        warm_ups: launches before those that count.
        repetitions: launches that count, at most.
        seconds: of all launches together; fewer are made when they take longer, but one.
        launch_seconds: that one launch may take.
        is_cold: L2 is emptied before each launch, as Nsight Compute does; else it holds what the launch before left, and its inputs.
    """

    warm_ups: int = 5
    repetitions: int = 30
    seconds: float = 5.0
    launch_seconds: float = 60.0
    is_cold: bool = True


DEFAULT_TIMING = TimingSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTiming:
    """The times of a launch.

    Attributes:
        times_ns: of each launch that counts, in order.
        gpu: name of the product.
        compute_capability: of the GPU.
        sm_count: of the GPU; None where the driver does not say.
        sm_hz: the highest clock of its SMs; the one that they ran at is not known.
        is_cold: L2 was emptied before each.
    """

    times_ns: tuple[float, ...]
    gpu: str
    compute_capability: tuple[int, int]
    sm_count: int | None
    sm_hz: float | None
    is_cold: bool

    @property
    def median_ns(self) -> float:
        """The time that half of them do not reach."""
        return float(median(self.times_ns))

    @property
    def error_ns(self) -> float | None:
        """Half of the interval that holds the median of endlessly many with 95 % probability; None where there are too few to say.

        Source: order statistics, by the normal approximation of the binomial distribution of how many lie below the median.
        """
        count = len(self.times_ns)
        reach = _CONFIDENCE * sqrt(count) / 2
        low, high = floor(count / 2 - reach), ceil(count / 2 + reach)
        if low < 1 or high > count:
            return None
        ordered = sorted(self.times_ns)
        return (ordered[high - 1] - ordered[low - 1]) / 2


def time_launch(gpu: LocalGpu, placed: PlacedLaunch, settings: TimingSettings, *, keeps_inputs: bool) -> LaunchTiming:
    """Launch again and again, and take the time of each.

    Args:
        gpu: where.
        placed: the launch, in its memory.
        settings: how.
        keeps_inputs: the kernel writes to nothing it is given, so that its arrays need not be filled again between launches.

    Raises:
        ToolError: the kernel ended with an error, or did not end. The GPU can be used no more by this process then.
    """
    flush = _find_flush(gpu) if settings.is_cold else None
    times: list[float] = []
    spent_s = 0.0
    for number in range(settings.warm_ups + settings.repetitions):
        if number and not keeps_inputs:
            placed.fill()
        if flush is not None:
            flush()
        time_ns = gpu.time_ns(placed.start, settings.launch_seconds)
        spent_s += time_ns / 1e9
        is_last = spent_s > settings.seconds
        if number >= settings.warm_ups or is_last:
            times.append(time_ns)
        if is_last:
            break
    facts = gpu.facts
    return LaunchTiming(
        times_ns=tuple(times),
        gpu=facts.name,
        compute_capability=facts.compute_capability,
        sm_count=gpu.read_attribute("multiprocessor_count"),
        sm_hz=_to_hz(gpu.read_attribute("clock_rate")),
        is_cold=flush is not None,
    )


def _find_flush(gpu: LocalGpu) -> Callable[[], None] | None:
    """Writes more than L2 holds; None where its size is not known."""
    l2_bytes = gpu.read_attribute("l2_cache_size")
    if not l2_bytes:
        return None
    size = _FLUSH_TIMES * l2_bytes
    address = gpu.allocate(size)
    return lambda: gpu.clear(address, size)


def _to_hz(kilohertz: int | None) -> float | None:
    return kilohertz * 1e3 if kilohertz else None


def describe_change(before_ns: Sequence[float], after_ns: Sequence[float]) -> float | None:
    """How many times as long the median after takes as that before; None where either is missing.

    >>> describe_change((10.0, 12.0, 11.0), (5.0, 5.5, 6.0))
    0.5
    """
    if not before_ns or not after_ns or median(before_ns) <= 0:
        return None
    return float(median(after_ns) / median(before_ns))
