"""The analyses say the same in the compiled core and in numpy."""

import numpy as np
import pytest

from gpa_lsp.native.shared_library import VARIABLE
from gpa_lsp.symbolic_accesses.wavefronts import count_wavefronts
from gpa_lsp.traces.distance_counting import find_previous, measure_distances
from gpa_lsp.traces.keyed_sums import sum_columns
from gpa_lsp.traces.ordering import order_rows
from gpa_lsp.traces.reuse_distance import bin_distances
from gpa_lsp.traces.segments import Intervals, list_segments, measure_intervals
from tests.emulator.compiled.comparing import require_core


@pytest.fixture(autouse=True)
def core() -> None:
    """Where there is one."""
    require_core()


def _compute(seed: int) -> dict[str, list[object]]:
    """Everything that is computed in two ways, of random columns."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 3000))
    units = random.integers(0, max(2, count // int(random.integers(1, 20))), count)
    groups = np.sort(random.integers(0, int(random.integers(1, 9)), count))
    erases = random.random(count) < 0.2
    found = {}
    for name, marks in (("all", None), ("erasing", erases)):
        distances = measure_distances(units, groups, marks)
        found[f"{name} distances"] = [distances.distance.tolist(), distances.is_streaming.tolist()]
        found[f"{name} bins"] = [bin_distances(distances.distance).tolist()]
    found["previous"] = [find_previous(units, groups).tolist()]
    found["order"] = [order_rows(groups, units - 5).tolist()]
    columns = random.integers(-9, 1 << 40, (count, 3))
    found["sums"] = [sum_columns(groups, columns, 9).tolist()]
    width = random.choice([1, 4, 8, 16], (count, 1)).astype(np.uint64)
    starts = np.sort(random.integers(0, 4096, (count, 32)), axis=1).astype(np.uint64) * width
    intervals = Intervals(starts=starts, bytes=width)
    touched = measure_intervals(intervals)
    found["touched"] = [getattr(touched, name).tolist() for name in touched.__slots__]
    found["segments"] = [[column.tolist() for column in list_segments(intervals, shift)] for shift in (2, 5, 7)]
    for size in (1, 4, 8, 16):
        addresses = random.integers(0, int(random.integers(1, 200)), (200, 32)).astype(np.uint64) * np.uint64(size)
        active = random.random((200, 32)) < random.random()
        kinds = random.integers(0, 4, 200).astype(np.int8)
        found[f"passes of {size}"] = [column.tolist() for column in count_wavefronts(addresses, active, size, kinds)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_columns_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    expected = _compute(seed)
    monkeypatch.delenv(VARIABLE)
    assert _compute(seed) == expected
