"""The published blamer as a whole: who is blamed for what, and that nothing gets lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.blame import blame_kernel, find_blamer
from gpa_lsp.diagnosis.blame.blamers import FunctionBlame
from gpa_lsp.diagnosis.blame.conservation import check_conservation
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency, KernelBlame, UnattributedCause
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.model import Kernel
from tests.blame.listings import sections
from tests.blame.programs import programs
from tests.blame.written_views import view_kernel, view_text
from tests.rows.written import write_kernel

Moved = dict[tuple[int, int, str], float]


def blame_text(text: str) -> tuple[Kernel, KernelBlame]:
    kernel = write_kernel(text)
    return kernel, blame_kernel(kernel, "paper")


def list_edges(kernel: Kernel, blame: KernelBlame) -> Moved:
    """(use, def, reason) → samples, for stalls that others can cause."""
    edges = blame.edges
    rows = zip(edges.use_row.tolist(), edges.def_row.tolist(), edges.reason.tolist(), strict=True)
    return {
        (use, definition, kernel.reasons[reason]): samples
        for (use, definition, reason), samples in zip(rows, edges.all_samples.tolist(), strict=True)
        if kernel.reasons[reason] != "selected"
    }


def list_lost(kernel: Kernel, blame: KernelBlame) -> dict[tuple[int, str], str]:
    lost = blame.unattributed
    return {
        (row, kernel.reasons[reason]): UnattributedCause(cause).name
        for row, reason, cause in zip(lost.row.tolist(), lost.reason.tolist(), lost.cause.tolist(), strict=True)
    }


LOAD = "B-:R-:W0:-:S02  LDG.E R0, [R2.64]  # selected=4\n"


def test_memory_stalls_go_to_the_load_and_execution_stalls_to_arithmetic():
    kernel, blame = blame_text(
        LOAD
        + "B-:R-:W-:-:S04  IADD3 R5, R6, R7, RZ  # selected=4\n"
        + "B0:R-:W-:-:S04  IADD3 R8, R0, R5, RZ  # long_scoreboard=10 wait=3"
    )
    assert list_edges(kernel, blame) == {(2, 0, "long_scoreboard"): 10.0, (2, 1, "wait"): 3.0}


def test_memory_stalls_without_a_load_are_shown_as_such_and_execution_stalls_stay():
    kernel, blame = blame_text(
        "B-:R-:W-:-:S04 IADD3 R5, R6, R7, RZ\nB-:R-:W-:-:S04 IADD3 R8, R9, R9, RZ # long_scoreboard=10 wait=3/2"
    )
    assert list_edges(kernel, blame) == {(1, 1, "wait"): 3.0}
    assert blame.edges.category.tolist() == [BlameCategory.ISSUE]
    assert blame.edges.dependency.tolist() == [Dependency.ITSELF]
    assert blame.edges.latency_samples.tolist() == [2.0]
    assert list_lost(kernel, blame) == {(1, "long_scoreboard"): "NO_PRODUCER"}


def test_reasons_that_name_their_own_cause_stay():
    kernel, blame = blame_text(LOAD + "B0:R-:W-:-:S04 MOV R8, R0 # lg_throttle=5 math_pipe_throttle=4 not_selected=3")
    assert list_edges(kernel, blame) == {
        (1, 1, "lg_throttle"): 5.0,
        (1, 1, "math_pipe_throttle"): 4.0,
        (1, 1, "not_selected"): 3.0,
    }
    assert blame.edges.category[blame.edges.use_row == 1].tolist() == [
        BlameCategory.MEMORY_THROTTLE,
        BlameCategory.PIPE_THROTTLE,
        BlameCategory.NOT_SELECTED,
    ]


def test_synchronisation_stalls_go_to_the_last_barrier_in_flow_or_stay_with_a_barrier():
    kernel, blame = blame_text("""
        BAR.SYNC 0x0                   # barrier=2
        @P0 BRA other
        BAR.SYNC 0x0
        other:
        MEMBAR.SC.GPU
        MOV R2, R3                     # barrier=6 membar=5
    """)
    edges = list_edges(kernel, blame)
    assert edges.pop((0, 0, "barrier")) == 2
    assert edges.pop((4, 3, "membar")) == 5
    assert set(edges) == {(4, 0, "barrier"), (4, 2, "barrier")}
    assert edges[4, 0, "barrier"] / edges[4, 2, "barrier"] == pytest.approx(2 / 4)  # the longest path of the first is 4
    is_sync = blame.edges.reason == kernel.reasons.index("barrier")
    assert set(blame.edges.category[is_sync].tolist()) == {BlameCategory.SYNCHRONISATION}


def test_synchronisation_stalls_without_a_barrier_are_shown_as_such():
    kernel, blame = blame_text("BAR.ARV 0x0, 0x20\nMOV R2, R3  # barrier=6 membar=2")
    assert list_lost(kernel, blame) == {(1, "barrier"): "NO_PRODUCER", (1, "membar"): "NO_PRODUCER"}


def test_reading_the_operands_of_a_store_is_write_after_read():
    kernel, blame = blame_text(
        "B-:R1:W-:-:S02 STS [R2], R4  # selected=2\nB1:R-:W-:-:S04 MOV R4, R9  # short_scoreboard=8"
    )
    moved = blame.edges.is_moved
    assert list_edges(kernel, blame) == {(1, 0, "short_scoreboard"): 8.0}
    assert blame.edges.category[moved].tolist() == [BlameCategory.WRITE_AFTER_READ]
    assert blame.edges.dependency[moved].tolist() == [Dependency.WRITE_AFTER_READ]
    assert blame.edges.resource[moved].tolist() == [4]


def test_a_use_of_its_own_result_round_a_loop_is_a_dependency_on_itself():
    kernel, blame = blame_text("top:\nB-:R-:W-:-:S02 IADD3 R0, R0, R5, RZ # wait=6\nB-:R-:W-:-:S05 @P0 BRA top\nEXIT")
    assert list_edges(kernel, blame) == {(0, 0, "wait"): 6.0}
    assert blame.edges.dependency.tolist() == [Dependency.READ_AFTER_WRITE]
    assert blame.edges.distance_instructions.tolist() == [2]
    assert blame.edges.distance_cycles.tolist() == [7]


def test_the_halves_of_an_address_share_a_group_and_one_place_in_the_graph():
    text = """
        B-:R-:W-:-:S02  IADD3 R2, P0, R6, R8, RZ
        B-:R-:W-:-:S04  IADD3.X R3, R7, R9, RZ, P0, !PT
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]       # wait=8
    """
    _, blame = blame_text(text)
    assert blame.edges.def_row.tolist() == [0, 1]
    assert len(set(blame.edges.group.tolist())) == 1
    assert blame.coverage.group_ratio == 1
    graph = blame_function(text).dependencies
    assert graph.before == graph.after == ((2, 1),)


def blame_function(text: str, work: int = 10**9) -> FunctionBlame:
    return find_blamer("paper").blame(view_text(text), WorkBudget(remaining=work))


def test_the_graph_holds_unsampled_defs_and_every_sampled_use():
    graph = blame_function(
        LOAD + "B0:R-:W-:-:S04 IADD3 R8, R0, R5, RZ # not_selected=1\nMOV R4, R8 # wait=1"
    ).dependencies
    assert graph.before == ((1, 0), (2, 1))
    assert graph.after == ((2, 1),)


def test_without_work_nothing_is_lost_and_what_is_simple_is_still_found():
    text = """
        MOV R0, RZ
        MOV R1, RZ
        top:
        IADD3 R0, R0, R1, RZ     # wait=6/5
        IADD3 R4, R0, R0, RZ     # wait=3 barrier=2
        @P0 BRA top
        EXIT
    """
    kernel = write_kernel(text)
    view = view_kernel(kernel)
    found = find_blamer("paper").blame(view, WorkBudget(remaining=0))
    lost = {
        (row, UnattributedCause(cause).name)
        for row, cause in zip(found.unattributed.row, found.unattributed.cause, strict=True)
    }
    assert lost == {(2, "WORK_BOUND"), (3, "NO_PRODUCER")}
    assert found.edges.def_row.tolist() == [2]
    total = found.edges.all_samples.sum() + found.unattributed.all_samples.sum()
    assert total == view.all_samples.sum()


@given(programs(with_samples=True), st.sampled_from([0, 50, 500, 10**9]))
def test_nothing_is_lost_or_invented_whatever_the_code_and_the_budget(text: str, work: int):
    kernel = write_kernel(text)
    view = view_kernel(kernel)
    found = find_blamer("paper").blame(view, WorkBudget(remaining=work))
    for kind in ("all_samples", "latency_samples"):
        cells = np.zeros(view.all_samples.shape)
        np.add.at(cells, (found.edges.use_row, found.edges.reason), getattr(found.edges, kind))
        np.add.at(cells, (found.unattributed.row, found.unattributed.reason), getattr(found.unattributed, kind))
        assert cells == pytest.approx(getattr(view, kind).astype(float))
    assert set(found.dependencies.after) <= set(found.dependencies.before)
    assert np.all(found.edges.all_samples > 0)
    if work == 10**9:
        assert UnattributedCause.WORK_BOUND not in found.unattributed.cause


@given(sections())
def test_kernels_with_routines_are_blamed_whole(text: str):
    kernel, blame = blame_text(text)
    check_conservation(kernel, blame)
    order = np.lexsort((blame.edges.def_row, blame.edges.reason, blame.edges.use_row))
    assert order.tolist() == list(range(len(blame.edges)))


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
