"""Full queues: samples go to what fills them, by passes, and the stalled instruction keeps its own part."""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.queue_stalls import LEAST_CAUSES, MOST_CAUSES, MOST_EDGES, blame_queue
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.dataflow.queues import QUEUES
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.read import read_profile
from tests.blame.written_views import blame_other_reasons, view_kernel
from tests.conftest import examples
from tests.rows.written import write_kernel


class Blamed(NamedTuple):
    """An edge, as far as most tests look at it."""

    use: int
    cause: int
    samples: float


def blame(text: str, reason: str = "lg_throttle") -> list[Blamed]:
    """The edges of a throttle; each instruction issues as often as it executes."""
    edges = find_edges(write_kernel(text), reason)
    rows = zip(edges.use_row.tolist(), edges.def_row.tolist(), edges.all_samples.tolist(), strict=True)
    return [Blamed(use, cause, round(samples, 6)) for use, cause, samples in rows]


def find_edges(kernel: Kernel, reason: str = "lg_throttle", budget: int = 1_000_000) -> BlameEdges:
    executions = np.maximum(kernel.functions[0].executions, 0)
    view = view_kernel(kernel, executions.astype(np.float64))
    return blame_queue(view, view.reasons.index(reason), executions, WorkBudget(remaining=budget))


BEHIND_MANY_LINES = """
loop:
    LDG.E R0, [R2.64]           # - | lg_throttle=1900/950 | x=100 global_tag_requests=100
    LDG.E R1, [R4.64]           # - | lg_throttle=100      | x=100 global_tag_requests=1900
    ISETP.LT.AND P0, PT, R0, R6, PT # - | selected=3       | x=100
    @P0 BRA loop                # - | selected=3           | x=100
    EXIT                        # - | selected=1           | x=1
"""


def test_a_load_that_queues_behind_one_of_many_lines_keeps_its_own_part_only() -> None:
    assert blame(BEHIND_MANY_LINES) == [Blamed(0, 0, 95), Blamed(0, 1, 1805), Blamed(1, 0, 5), Blamed(1, 1, 95)]


def test_the_own_part_is_an_edge_to_itself_and_all_fill_the_queue_together() -> None:
    edges = find_edges(write_kernel(BEHIND_MANY_LINES))
    assert edges.dependency.tolist() == [Dependency.ITSELF, Dependency.QUEUE, Dependency.QUEUE, Dependency.ITSELF]
    assert set(edges.category.tolist()) == {BlameCategory.MEMORY_THROTTLE}
    assert edges.group.tolist() == [0, 0, 1, 1]
    assert edges.latency_samples is not None
    assert edges.latency_samples.tolist() == pytest.approx([47.5, 902.5, 5, 95])
    assert edges.distance_instructions.tolist() == [0, -1, -1, 0]


def test_without_counters_they_share_by_executions() -> None:
    text = """
        LDG.E R0, [R2.64]   # - | lg_throttle=40 | x=100
        @P0 STG.E [R4.64], R1 # - | selected=1   | x=300
        EXIT                # - | selected=1     | x=100
    """
    assert blame(text) == [Blamed(0, 0, 10), Blamed(0, 1, 30)]


def test_without_executions_samples_stay() -> None:
    view = view_kernel(write_kernel("LDG.E R0, [R2.64]  # lg_throttle=40\nLDG.E R1, [R4.64]  # selected=4\nEXIT"))
    edges, lost = blame_other_reasons(view, WorkBudget.for_function(len(view)))
    assert not lost
    assert [(edge.use_row, edge.def_row, edge.dependency) for edge in edges] == [
        (0, 0, Dependency.ITSELF),
        (1, 1, Dependency.ITSELF),
    ]


def test_what_never_executed_fills_nothing() -> None:
    text = """
        LDG.E R0, [R2.64]   # - | lg_throttle=40 | x=100
        LDG.E R1, [R4.64]   # - | selected=1     | x=0
        EXIT                # - | selected=1     | x=100
    """
    assert blame(text) == [Blamed(0, 0, 40)]


def test_the_queue_of_special_functions_is_that_of_shared_memory_and_not_that_of_loads() -> None:
    text = """
        LDG.E R0, [R2.64]   # - | selected=1      | x=100 global_tag_requests=3200
        LDS R1, [R4]        # - | selected=1      | x=100 shared_wavefronts=300
        MUFU.RCP R5, R6     # - | mio_throttle=40 | x=100
        FADD R5, R5, R6     # - | selected=1      | x=100
        EXIT                # - | selected=1      | x=100
    """
    assert blame(text, "mio_throttle") == [Blamed(2, 1, 30), Blamed(2, 2, 10)]


def test_an_instruction_of_another_kind_was_in_front_of_the_queue_all_the_same() -> None:
    text = """
        LDS R1, [R4]        # - | selected=1      | x=100
        LDG.E.128 R8, [R2.64] # - | mio_throttle=40 | x=300
        EXIT                # - | selected=1      | x=100
    """
    assert blame(text, "mio_throttle") == [Blamed(1, 0, 10), Blamed(1, 1, 30)]
    assert blame(text.replace("LDS R1, [R4]", "FADD R1, R1, R4"), "mio_throttle") == [Blamed(1, 1, 40)]


def test_the_loop_around_the_stall_counts_with_the_loops_inside_and_nothing_outside() -> None:
    text = """
        LDG.E R0, [R2.64]   # - | selected=1     | x=1
    outer:
        LDG.E R1, [R4.64]   # - | lg_throttle=40 | x=10
    inner:
        LDG.E R5, [R6.64]   # - | lg_throttle=60 | x=30
        @P0 BRA inner       # - | selected=1     | x=30
        @P1 BRA outer       # - | selected=1     | x=10
        EXIT                # - | selected=1     | x=1
    """
    assert blame(text) == [Blamed(1, 1, 10), Blamed(1, 2, 30), Blamed(2, 2, 60)]


def test_outside_loops_it_is_the_routine() -> None:
    text = """
    $kernel$main:
        LDG.E R0, [R2.64]           # - | lg_throttle=40 | x=10
        LDG.E R1, [R4.64]           # - | selected=1     | x=10
        CALL.REL.NOINC `($kernel$helper) # - | selected=1 | x=10
        EXIT                        # - | selected=1     | x=10
    $kernel$helper:
        LDG.E R5, [R6.64]           # - | lg_throttle=7  | x=30
        RET.REL.NODEC R20 0x0       # - | selected=1     | x=30
    """
    assert blame(text) == [Blamed(0, 0, 20), Blamed(0, 1, 20), Blamed(4, 4, 7)]


def write_loads(count: int, samples: int, *, heavy: tuple[int, ...] = ()) -> Kernel:
    lines = [
        f"LDG.E R0, [R2.64]  # - | lg_throttle={samples} | x=10 global_tag_requests={100 if row in heavy else 10}"
        for row in range(count)
    ]
    return write_kernel("\n".join([*lines, "EXIT  # - | selected=1 | x=10"]))


def test_a_stall_names_the_heaviest_and_of_equal_ones_the_nearest() -> None:
    edges = find_edges(write_loads(200, 1000, heavy=(7, 190)))
    for use in (0, 100, 199):
        named = edges.def_row[(edges.use_row == use) & edges.is_moved].tolist()
        assert {7, 190} <= set(named)
        assert len(named) <= MOST_CAUSES
        near = [row for row in named if row not in (7, 190)]
        assert max(abs(row - use) for row in near) <= MOST_CAUSES
    own = edges.all_samples[~edges.is_moved & (edges.use_row == 100)]
    assert own.tolist() == pytest.approx([1000 * 10 / (198 * 10 + 2 * 100)])


def test_a_stall_names_no_more_causes_than_it_has_samples() -> None:
    edges = find_edges(write_loads(50, 2))
    assert np.bincount(edges.use_row[edges.is_moved]).max() <= 2
    assert np.bincount(edges.use_row, weights=edges.all_samples).tolist() == pytest.approx([2.0] * 50)


def test_edges_are_bounded_in_the_largest_functions() -> None:
    count = 6000
    edges = find_edges(write_loads(count, 50))
    assert len(edges) <= max(MOST_EDGES, LEAST_CAUSES * count) + count


def test_without_work_left_samples_stay() -> None:
    edges = find_edges(write_kernel(BEHIND_MANY_LINES), budget=0)
    assert (edges.use_row == edges.def_row).all()
    assert edges.all_samples.tolist() == [1900, 100]


OPCODES = (
    "LDG.E R0, [R2.64]",
    "STG.E [R2.64], R0",
    "LDS R0, [R2]",
    "MUFU.RCP R0, R2",
    "FADD R0, R0, R2",
    "TEX R0, R2, 0x0, 2D",
)
LINES = st.tuples(
    st.sampled_from(OPCODES),
    st.sampled_from(tuple(QUEUES)),
    st.integers(0, 30),
    st.integers(0, 5),
    st.integers(0, 90),
)


@given(lines=st.lists(LINES, min_size=1, max_size=40), back=st.integers(0, 40))
@examples(60)
def test_no_sample_is_lost_or_made(lines: list[tuple[str, str, int, int, int]], back: int) -> None:
    written = [
        f"{opcode}  # - | {reason}={samples} | x={executions} global_tag_requests={passes} shared_wavefronts={passes}"
        for opcode, reason, samples, executions, passes in lines
    ]
    written.insert(min(back, len(written)), "loop:")
    kernel = write_kernel("\n".join([*written, "@P0 BRA loop  # - | selected=1 | x=9", "EXIT  # - | selected=1 | x=1"]))
    edges = blame_kernel(kernel).edges  # which checks conservation, row by row
    sampled = sum(samples for _, _, samples, _, _ in lines)
    throttles = [number for number, name in enumerate(kernel.reasons) if name in QUEUES]
    assert edges.all_samples[np.isin(edges.reason, throttles)].sum() == pytest.approx(sampled)


@pytest.mark.corpus
def test_a_convolution_is_stalled_on_the_load_of_many_lines_and_not_on_the_one_behind_it(corpus: Path) -> None:
    kernels, _ = join_profile(read_profile(corpus / "pairs" / "a100_conv2d_naive.ncu-rep"))
    (kernel,) = kernels
    edges = blame_kernel(kernel).edges
    throttled = edges.reason == kernel.reasons.index("lg_throttle")
    total = float(edges.all_samples[throttled].sum())
    sampled, blamed = defaultdict(float), defaultdict(float)
    for rows, shares in ((edges.use_row, sampled), (edges.def_row, blamed)):
        for row, samples in zip(rows[throttled].tolist(), edges.all_samples[throttled].tolist(), strict=True):
            place = kernel.rows.place(row)
            assert place is not None
            shares[place.line] += samples / total
    assert sampled[44] < 0.3
    assert blamed[44] > 0.9
