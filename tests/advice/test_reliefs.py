"""The table of what each optimizer relieves is whole."""

import pytest

from gpa_lsp.advice.advise import list_optimizers
from gpa_lsp.advice.model import MemoryLevel
from gpa_lsp.advice.reliefs import OccupancyUse, Relief, find_reliefs, list_reliefs


def test_every_optimizer_has_its_line_and_every_line_its_optimizer() -> None:
    assert set(list_reliefs()) == set(list_optimizers())


@pytest.mark.parametrize("name", list_reliefs())
def test_a_line_is_whole(name: str) -> None:
    reliefs = find_reliefs(name)
    assert reliefs.relieves
    assert bool(reliefs.levels) == (Relief.BYTES in reliefs.relieves)
    assert MemoryLevel.ANY not in reliefs.levels


def test_nobody_knows_what_an_unknown_optimizer_relieves() -> None:
    assert find_reliefs("flux_capacitor").relieves == frozenset()


def test_few_do_no_more_than_make_warps_resident() -> None:
    found = {name for name, reliefs in list_reliefs().items() if reliefs.occupancy is not OccupancyUse.NEVER}
    assert found == {"thread_increase", "small_grid"}
