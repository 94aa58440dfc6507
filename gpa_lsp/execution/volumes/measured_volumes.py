"""Volumes that were measured beside those that are predicted, and the time the model gives for each: :func:`compare_volumes`.

The model is asked twice: an error of the first answer alone comes from the volumes, an error of both from the model.

Source: Ernst et al. (2022), section 5.8, which calls the second a phenomenological prediction; sections 4.2 and 4.3 name the counters.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.diagnosis.analyses.answers import Answer, Chart, ChartKind, Series, Table, list_columns
from gpa_lsp.diagnosis.analyses.roofline.counts import read_span
from gpa_lsp.execution.volumes.model import Bound, Limiter, VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import CORRECTED_FITS, PAPER_FITS, combine_bounds
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Amount, Sentence, duration, percent, say
from gpa_lsp.gpu.device.find import find_launch_clocks
from gpa_lsp.profile.model import Launch

# The counters of each volume, of which the first collected one is taken, with the bytes of one count
_COUNTERS = {
    "l2_load": (("lts__t_sectors_srcunit_tex_op_read.sum", SECTOR_BYTES), ("lts__t_sectors_op_read.sum", SECTOR_BYTES)),
    "l2_store": (
        ("lts__t_sectors_srcunit_tex_op_write.sum", SECTOR_BYTES),
        ("lts__t_sectors_op_write.sum", SECTOR_BYTES),
    ),
    "dram_load": (
        ("dram__bytes_read.sum", 1),
        ("dram__bytes_op_read.sum", 1),
        ("dram__sectors_read.sum", SECTOR_BYTES),
        ("dram__sectors_op_read.sum", SECTOR_BYTES),
    ),
    "dram_store": (
        ("dram__bytes_write.sum", 1),
        ("dram__bytes_op_write.sum", 1),
        ("dram__sectors_write.sum", SECTOR_BYTES),
        ("dram__sectors_op_write.sum", SECTOR_BYTES),
    ),
}
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"


class MovedBytes(Struct, frozen=True, kw_only=True):
    """One volume of the launch."""

    name: str  # as :class:`~gpa_lsp.execution.volumes.model.Volumes` names it
    measured_bytes: float | None  # None where no counter of it was collected
    predicted_bytes: float


class VolumeComparison(Struct, frozen=True, kw_only=True):
    """A launch by the model and by the GPU."""

    moved: tuple[MovedBytes, ...]  # each volume
    # that the launch ran at, and both times are for; None for the clock of the prediction, where the launch's own is not known
    sm_hz: float | None
    limiter: Limiter  # with the measured volumes
    measured_ns: float  # the launch took
    predicted_ns: float  # with the predicted volumes
    from_measured_ns: float  # with the measured volumes


def compare_volumes(prediction: VolumePrediction, launch: Launch) -> VolumeComparison | None:
    """Compare a launch with its prediction; None where it has no time, no volume was measured, or nothing was predicted.

    Args:
        prediction: of this launch, for the GPU that it ran on.
    """
    span = read_span(launch)
    measured = {name: _read(launch, counters) for name, counters in _COUNTERS.items()}
    if span is None or not prediction.bounds or all(value is None for value in measured.values()):
        return None
    clocks = find_launch_clocks(launch)
    sm_hz = None if clocks is None else clocks.sm_hz
    clock_ratio = 1.0 if sm_hz is None else sm_hz / prediction.device.sm_hz
    bounds = [_set_clock(one, clock_ratio) for one in prediction.bounds]
    loads = {
        Limiter.L2: _add(measured["l2_load"], measured["l2_store"]),
        Limiter.DRAM: _add(measured["dram_load"], measured["dram_store"]),
    }
    if prediction.mode is VolumeMode.PAPER:  # the other mode's cycles hold those of tags, which no counter of a sum has
        loads[Limiter.L1] = launch.read_number(_WAVEFRONTS)
    updates = prediction.update_count
    replaced = [_set_load(one, loads.get(one.limiter), updates) for one in bounds]
    fits = PAPER_FITS if prediction.mode is VolumeMode.PAPER else CORRECTED_FITS
    times = [updates / combine_bounds(_order(found), fits) * 1e9 for found in (bounds, replaced)]
    return VolumeComparison(
        moved=tuple(
            MovedBytes(
                name=name,
                measured_bytes=value,
                predicted_bytes=prediction.scale_to_launch(getattr(prediction.volumes, name)),
            )
            for name, value in measured.items()
        ),
        sm_hz=sm_hz,
        limiter=_order(replaced)[0].limiter,
        measured_ns=span.duration_s * 1e9,
        predicted_ns=times[0],
        from_measured_ns=times[1],
    )


def _read(launch: Launch, counters: tuple[tuple[str, int], ...]) -> float | None:
    found = ((launch.read_number(name), unit) for name, unit in counters)
    return next((value * unit for value, unit in found if value is not None and value >= 0), None)


def _add(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def _set_clock(bound: Bound, ratio: float) -> Bound:
    """The bound at another clock of the SMs, which all limiters but DRAM follow."""
    return bound if bound.limiter is Limiter.DRAM else replace(bound, updates_per_s=bound.updates_per_s * ratio)


def _set_load(bound: Bound, load: float | None, updates: int) -> Bound:
    if not load:
        return bound
    asked = load / updates
    return replace(bound, load=asked, updates_per_s=bound.updates_per_s * bound.load / asked)


def _order(bounds: list[Bound]) -> tuple[Bound, ...]:
    return tuple(sorted(bounds, key=lambda one: one.updates_per_s))


_NAMES = {
    "l2_load": ("L2 → L1", "loads"),
    "l2_store": ("L1 → L2", "stores"),
    "dram_load": ("DRAM → L2", "loads"),
    "dram_store": ("L2 → DRAM", "stores"),
}


def answer_compared(compared: VolumeComparison) -> Answer:
    """Three times in a sentence, and the volumes in a table."""
    return Answer(
        analysis="measured_volumes",
        title="Measured beside predicted volumes",
        summary=_summarize(compared),
        tables=(
            Table(
                title="Volumes of the launch",
                columns=list_columns(
                    "between | what | measured [bytes] | predicted [bytes] | predicted of measured [ratio]"
                ),
                rows=tuple(
                    (
                        *_NAMES[one.name],
                        one.measured_bytes,
                        one.predicted_bytes,
                        one.predicted_bytes / one.measured_bytes if one.measured_bytes else None,
                    )
                    for one in compared.moved
                ),
            ),
        ),
    )


def _summarize(compared: VolumeComparison) -> Sentence:
    times = say(
        "Measured: {measured}. The model gives {own} with the volumes it predicts ({own_ratio}), and {other} with the measured ones ({other_ratio}), "
        "limited by {limiter}",
        measured=duration(compared.measured_ns),
        own=duration(compared.predicted_ns),
        own_ratio=percent(compared.predicted_ns / compared.measured_ns),
        other=duration(compared.from_measured_ns),
        other_ratio=percent(compared.from_measured_ns / compared.measured_ns),
        limiter=compared.limiter.value,
    )
    if compared.sm_hz is None:
        return say("{times}.", times=times)
    return say(
        "{times}; both at the launch's {clock}.", times=times, clock=Amount(value=compared.sm_hz, quantity=Quantity.HZ)
    )


def scatter_volumes(compared: Sequence[VolumeComparison]) -> Chart | None:
    """Each volume of each launch as predicted over as measured; None where fewer than two launches have one.

    Source: Ernst et al. (2022), figures 13, 14, 20 and 21.
    """
    if len(compared) < 2:
        return None
    points: dict[str, list[tuple[float, float]]] = {}
    for one in (moved for launch in compared for moved in launch.moved):
        if one.measured_bytes:
            points.setdefault(" ".join(_NAMES[one.name]), []).append((one.measured_bytes, one.predicted_bytes))
    return Chart(
        title="Predicted over measured volumes",
        kind=ChartKind.SCATTER,
        x_label="measured bytes",
        y_label="predicted bytes",
        y_quantity=Quantity.BYTES,
        series=tuple(
            Series(label=label, xs=tuple(x for x, _ in found), ys=tuple(y for _, y in found))
            for label, found in ((label, sorted(pairs)) for label, pairs in points.items())
        ),
    )
