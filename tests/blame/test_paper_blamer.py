"""The published blamer as a whole: who is blamed for what, and that nothing gets lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.blame import blame_kernel, check_conservation, find_blamer
from gpa_lsp.diagnosis.blame.blamers import FunctionBlame
from gpa_lsp.diagnosis.blame.model import Dependency, KernelBlame, UnattributedCause
from gpa_lsp.diagnosis.blame.view import WorkBudget
from gpa_lsp.kernel.model import Kernel
from tests.blame.listings import sections
from tests.blame.programs import programs
from tests.blame.written_views import check_conserved, view_kernel, view_text
from tests.conftest import examples
from tests.rows.written import write_kernel


def blame_text(text: str) -> tuple[Kernel, KernelBlame]:
    kernel = write_kernel(text)
    return kernel, blame_kernel(kernel, "paper")


LOAD = "B-:R-:W0:-:S02  LDG.E R0, [R2.64]  # selected=4\n"


def blame_function(text: str, work: int = 10**9) -> FunctionBlame:
    return find_blamer("paper").blame(view_text(text), WorkBudget(remaining=work))


def test_the_halves_of_an_address_have_two_places_in_the_graph():
    """GPA section VI-C: they are why the bfs benchmark has few nodes with a single dependency."""
    text = "B-:R-:W-:-:S02 IADD3 R2, P0, R6, R8, RZ\nB-:R-:W-:-:S04 IADD3.X R3, R7, R9, RZ, P0, !PT\nLDG.E R4, [R2.64] # wait=8"
    assert blame_text(text)[1].coverage.after_ratio == pytest.approx(2 / 3)
    found = blame_function(text)
    assert found.before.tolist() == found.after.tolist() == [[2, 0], [2, 1]]


def test_the_graph_holds_unsampled_defs_and_every_sampled_use():
    found = blame_function(LOAD + "B0:R-:W-:-:S04 IADD3 R8, R0, R5, RZ # not_selected=1\nMOV R4, R8 # wait=1")
    assert found.before.tolist() == [[1, 0], [2, 1]]
    assert found.after.tolist() == [[2, 1]]


@examples(80)
@given(programs(with_samples=True), st.sampled_from([0, 50, 500, 10**9]))
def test_nothing_is_lost_or_invented_whatever_the_code_and_the_budget(text: str, work: int):
    kernel = write_kernel(text)
    view = view_kernel(kernel)
    found = find_blamer("paper").blame(view, WorkBudget(remaining=work))
    check_conserved(view, found.edges, found.unattributed)
    assert set(map(tuple, found.after.tolist())) <= set(map(tuple, found.before.tolist()))
    assert np.all(found.edges.all_samples > 0)
    if work == 10**9:
        assert UnattributedCause.WORK_BOUND not in found.unattributed.cause


@examples(80)
@given(sections())
def test_kernels_with_routines_are_blamed_whole(text: str):
    kernel, blame = blame_text(text)
    check_conservation(kernel, blame)
    order = np.lexsort((blame.edges.def_row, blame.edges.reason, blame.edges.use_row))
    assert order.tolist() == list(range(len(blame.edges)))


@examples(80)
@given(programs(with_samples=True))
def test_every_def_is_one_its_use_depends_on(text: str):
    kernel, blame = blame_text(text)
    instructions = kernel.functions[0].instructions
    assert instructions is not None
    edges = blame.edges
    for use, definition, dependency, resource in zip(
        edges.use_row.tolist(), edges.def_row.tolist(), edges.dependency.tolist(), edges.resource.tolist(), strict=True
    ):
        reads, writes = instructions.reads.of(use), instructions.writes.of(definition)
        if dependency == Dependency.READ_AFTER_WRITE:
            assert resource in reads
            assert resource in writes
        elif dependency == Dependency.GUARD:
            assert resource == instructions.guard[use]
            assert resource in writes
        elif dependency == Dependency.WRITE_AFTER_READ:
            assert resource in instructions.writes.of(use)
            assert resource in instructions.reads.of(definition)
        else:
            assert dependency in (
                Dependency.ITSELF,
                Dependency.SCOREBOARD,
                Dependency.WRITE_AFTER_WRITE,
                Dependency.SYNCHRONISATION,
            )
