"""The corrected model against a V100's counters: 40 block shapes of the 3D star of range 4. The last test says what was fitted to what."""

import numpy as np
import numpy.typing as npt
import pytest

from gpa_lsp.execution.volumes import predict as deriving
from gpa_lsp.execution.volumes.devices import find_device, find_paper_device
from gpa_lsp.execution.volumes.expressions import cover_updates
from gpa_lsp.execution.volumes.model import VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import CORRECTED_FITS, predict_volumes
from tests.volumes.written_kernels import DATA, read_json, write_star

Numbers = npt.NDArray[np.float64]
_INTERIOR = (632, 504, 504)


@pytest.fixture(scope="module")
def rows() -> list[list[object]]:
    document = read_json(DATA / "measured_v100_star3d.json")
    assert len(document["rows"]) == 40
    return list(document["rows"])


def predict_all(rows: list[list[object]], mode: VolumeMode) -> list[VolumePrediction]:
    kernel = write_star(4, (640, 512, 512))
    device = find_paper_device("V100") if mode is VolumeMode.PAPER else find_device("V100 PCIe")
    launches = [cover_updates(_INTERIOR, tuple(row[0])) for row in rows]  # type: ignore[arg-type]
    return [predict_volumes(kernel, launch, device, registers=32, mode=mode) for launch in launches]


def measure_errors(rows: list[list[object]], predictions: list[VolumePrediction]) -> tuple[float, float, float, float]:
    """Mean absolute errors in percent: DRAM load and store, L2 load and store."""
    volumes = [found.volumes for found in predictions]
    ours = np.array([[v.dram_load, v.dram_store, v.l2_load, v.l2_store] for v in volumes])
    theirs = np.array([row[1:5] for row in rows], dtype=np.float64)
    a, b, c, d = (100 * np.abs(ours / theirs - 1)).mean(axis=0).tolist()
    return a, b, c, d


def rank_correlation(first: Numbers, second: Numbers) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def list_rates(rows: list[list[object]], predictions: list[VolumePrediction]) -> tuple[Numbers, Numbers]:
    measured = np.array([row[5] for row in rows], dtype=np.float64)
    return np.array([found.updates_per_s / 1e9 for found in predictions]), measured


def test_volumes(rows: list[list[object]]) -> None:
    dram_load, dram_store, l2_load, l2_store = measure_errors(rows, predict_all(rows, VolumeMode.CORRECTED))
    assert l2_load <= 6.0
    assert dram_load <= 4.0
    assert dram_store <= 3.0
    assert l2_store <= 3.0


def test_performance(rows: list[list[object]]) -> None:
    predicted, measured = list_rates(rows, predict_all(rows, VolumeMode.CORRECTED))
    assert rank_correlation(predicted, measured) > 0.9
    assert measured[int(np.argmax(predicted))] > 0.95 * measured.max()
    assert float(np.abs(predicted / measured - 1).mean()) < 0.1


def test_slowest_limiter_alone_ranks_as_well(rows: list[list[object]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "combine_bounds", lambda bounds, fits: bounds[0].updates_per_s)
    predictions = predict_all(rows, VolumeMode.CORRECTED)
    _, measured = list_rates(rows, predictions)
    lowest = np.array([found.bounds[0].updates_per_s for found in predictions])
    assert rank_correlation(lowest, measured) > 0.9


def test_corrections_are_better_than_the_published_model(rows: list[list[object]]) -> None:
    paper, corrected = (predict_all(rows, mode) for mode in VolumeMode)
    before, after = measure_errors(rows, paper), measure_errors(rows, corrected)
    assert before == pytest.approx((4.69, 3.04, 6.03, 2.28), abs=0.01)
    assert all(now <= then + 1e-9 for now, then in zip(after, before, strict=True))
    assert rank_correlation(*list_rates(rows, corrected)) > rank_correlation(*list_rates(rows, paper))


def test_shapes_without_partial_sectors_were_fitted_to_nothing_here(rows: list[list[object]]) -> None:
    """Blocks four or more wide: their DRAM volumes come from published fits alone."""
    wide = [row for row in rows if row[0][0] >= 4]  # type: ignore[index]
    assert len(wide) == 35
    dram_load, dram_store, _, l2_store = measure_errors(wide, predict_all(wide, VolumeMode.CORRECTED))
    assert dram_load <= 3.5
    assert max(dram_store, l2_store) <= 0.2


def test_overlap_exponent_holds_for_shapes_it_was_not_fitted_to(rows: list[list[object]]) -> None:
    """Fitted to every other shape, it is near the one in use, and serves the others."""
    predictions = predict_all(rows, VolumeMode.CORRECTED)
    _, measured = list_rates(rows, predictions)
    times = np.array(
        [[1e9 / bound.updates_per_s for bound in sorted(p.bounds, key=lambda b: b.limiter)] for p in predictions]
    )

    def measure(exponent: float, which: slice) -> float:
        rates = 1 / (times[which] ** exponent).sum(axis=1) ** (1 / exponent)
        return float(np.abs(rates / measured[which] - 1).mean())

    candidates = np.arange(1.0, 6.0, 0.05)
    for fitted, held_out in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        best = candidates[int(np.argmin([measure(exponent, fitted) for exponent in candidates]))]
        assert CORRECTED_FITS.overlap_exponent == pytest.approx(best, abs=0.3)
        assert measure(best, held_out) < 0.12
