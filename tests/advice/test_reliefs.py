"""What each optimizer says that it relieves is whole."""

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, MemoryLevel, Silence
from gpa_lsp.diagnosis.advice.optimizers import EliminationOptimizer, IdleOptimizer
from gpa_lsp.diagnosis.advice.reliefs import OccupancyUse, Relief
from gpa_lsp.diagnosis.analyses.subject import Subject

RELIEFS = {name: one.reliefs for name, one in list_optimizers().items()}


@pytest.mark.parametrize("name", RELIEFS)
def test_every_optimizer_relieves_something_and_bytes_have_a_level(name: str) -> None:
    reliefs = RELIEFS[name]
    assert reliefs.relieves
    assert bool(reliefs.levels) == (Relief.BYTES in reliefs.relieves)
    assert MemoryLevel.ANY not in reliefs.levels


def test_few_do_no_more_than_make_warps_resident() -> None:
    found = {name for name, reliefs in RELIEFS.items() if reliefs.occupancy is not OccupancyUse.NEVER}
    assert found == {"thread_increase", "small_grid"}


class TallBlocks(IdleOptimizer):
    """As another package would write it."""

    name = "tall_blocks"
    title = "Taller blocks"
    category = Category.PARALLEL
    group = "parallelism"

    def match(self, subject: Subject) -> IdleMatch | Silence:
        raise NotImplementedError


def test_an_optimizer_of_another_package_relieves_what_its_kind_does_unless_it_says_otherwise() -> None:
    assert TallBlocks().label.reliefs.relieves == frozenset({Relief.PARALLELISM})
    assert EliminationOptimizer.reliefs.relieves == frozenset({Relief.LATENCY})
