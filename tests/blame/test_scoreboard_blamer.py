"""The default blamer: that nothing gets lost whatever the code is, what the parts may be compared with, and real reports."""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.blame import blame_kernel, carry_to_callers, view_functions
from gpa_lsp.diagnosis.blame.blamers import FunctionBlame
from gpa_lsp.diagnosis.blame.blamers.scoreboard import BLAMER, blame_scoreboards, find_fixed_latency_defs
from gpa_lsp.diagnosis.blame.categories import DEPENDENCY_REASONS
from gpa_lsp.diagnosis.blame.edges import blame_themselves
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.issue_counts import count_issues
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency, KernelBlame, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget, view_function
from gpa_lsp.diagnosis.blame.walk_back import LEAST_CAUSES, MOST_CAUSES, MOST_EDGES, blame_queue, find_other_causes
from gpa_lsp.kernel.dataflow.instruction_kinds import QUEUES
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.advice.subjects import list_rows
from tests.blame.listings import sections
from tests.blame.worst_cases import write_diamonds, write_irreducible, write_nest, write_recursion
from tests.blame.written_views import blame_wait, check_conserved, view_kernel, view_text
from tests.conftest import examples
from tests.real_reports import REPORTS, join
from tests.rows.written import write_kernel


def blame(view: FunctionView) -> FunctionBlame:
    return BLAMER.blame(view, WorkBudget.for_function(len(view)))


SAXPY = """
    B-:R-:W-:-:S04  IADD3 R8, R8, 0x1, RZ           # selected=5
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]               # wait=30 selected=5
    B-:R-:W3:-:S02  LDG.E R3, [R6.64]               # lg_throttle=9 selected=5
    B2:R-:W-:-:S04  FADD R2, R2, R8                 # long_scoreboard=60/50 selected=5
    B-:R-:W-:-:S05  BAR.SYNC 0x0                    # selected=5
    B3:R-:W-:-:S04  FADD R3, R2, R3                 # barrier=7 long_scoreboard=20 selected=5
    B-:R-:W-:-:S05  EXIT
"""


def test_edges_are_in_order_and_groups_of_different_reasons_apart() -> None:
    edges = blame(view_text(SAXPY)).edges
    keys = list(zip(edges.use_row, edges.reason, edges.def_row, strict=True))
    assert keys == sorted(keys)
    assert len(set(edges.group.tolist())) == len(edges)


def test_the_dependency_graph_has_dependences_only() -> None:
    """Barrier and issue cost of the first instruction are no edges. Its result, which the first FADD reads, and that of this one are pruned:
    the stall counts between have paid for their latencies.
    """
    found = blame(view_text(SAXPY))
    assert found.after.tolist() == [[3, 1], [5, 2]]
    assert found.before.tolist() == [[3, 0], [3, 1], [5, 2], [5, 3]]


def test_the_producer_of_a_wait_is_a_dependence() -> None:
    found = blame(
        view_text("""
            B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R0, R6, PT
            B-:R-:W-:-:S05  @P0 EXIT                    # wait=12
        """)
    )
    assert found.after.tolist() == found.before.tolist() == [[1, 0]]


def test_the_last_write_in_the_block_that_has_no_scoreboard() -> None:
    view = view_text("""
        B-:R-:W-:-:S04  MOV R2, R9
        B-:R-:W-:-:S04  MOV R2, R8
        B-:R-:W0:-:S02  LDG.E R3, [R4.64]
        B0:R-:W-:-:S04  IMAD.WIDE R6, R2, R3, R6
        B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R6, R7, PT
        B-:R-:W-:-:S05  @P0 BRA next
    next:
        B-:R-:W-:-:S04  IADD3 R2, R2, R6, RZ
    """)
    assert list(find_fixed_latency_defs(view, np.ones(len(view), dtype=np.bool_))) == [(3, 1), (4, 3), (5, 4)]
    assert list(find_fixed_latency_defs(view, np.arange(len(view)) == 4)) == [(4, 3)]


@examples(80)
@given(sections())
def test_samples_are_conserved_and_what_is_left_was_there_before(text: str) -> None:
    view = view_text(text)
    for budget in (WorkBudget.for_function(len(view)), WorkBudget(remaining=50)):
        found = BLAMER.blame(view, budget)
        check_conserved(view, found.edges, found.unattributed)
        before = set(map(tuple, found.before.tolist()))
        assert set(map(tuple, found.after.tolist())) <= before
        assert len(before) == len(found.before)
        triples = [(edge.use_row, edge.def_row, edge.reason) for edge in list_rows(found.edges)]
        assert len(triples) == len(set(triples))
        assert (found.edges.all_samples > 0).all()
        edges, _, pending_pairs = blame_scoreboards(view, budget)
        assert {(edge.use_row, edge.def_row) for edge in list_rows(edges)} <= set(pending_pairs)
        assert len(pending_pairs) == len(set(pending_pairs))


def test_who_is_ruled_out_was_pending_all_the_same() -> None:
    view = view_text(
        """
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W1:-:S02  LDS R3, [R6]
        B-:R-:W1:-:S02  DMUL R8, R8, R10
        B01:R-:W-:-:S04 FFMA R3, R2, R3, R8     # long_scoreboard=10 short_scoreboard=20
        """,
        (8, 0),
    )
    assert blame_scoreboards(view, WorkBudget.for_function(len(view)))[2] == [(3, 0), (3, 1), (3, 2)]


def test_only_waits_without_a_producer_are_carried_to_callers() -> None:
    kernel = write_kernel("""
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)
    [callee]
        B0:R-:W-:-:S04  FADD R5, R4, R4              # selected=1 long_scoreboard=8
    """)
    for edges, lost in (
        (BlameEdges.from_rows(), Unattributed.from_rows([(2, 0, UnattributedCause.WORK_BOUND, 8, 8)])),
        (blame_themselves(view_kernel(kernel), [kernel.reasons.index("selected")]), Unattributed.from_rows()),
    ):
        assert carry_to_callers(kernel, view_functions(kernel, count_issues(kernel)), edges, lost) == (edges, lost)


MEASURED_LOOP = """
    B-:R-:W0:-:S02  LDS R2, [R6]                # - | selected=1 | x=10
    B-:R-:W1:-:S02  LDS R3, [R6+0x100]          # - | selected=1 | x=10
loop:
    B012:R-:W-:-:S04 FFMA R8, R2, R3, R8        # - | short_scoreboard=528/300 selected=64 | x=640
    B-:R-:W2:-:S02  LDS R2, [R7]                # - | selected=64 | x=640
    B-:R-:W-:-:S05  @P0 BRA loop                # - | selected=64 | x=640
    EXIT                                        # - | selected=1 | x=10
"""


def list_blamed(text: str, *, truncated: bool = False) -> tuple[KernelBlame, list[float]]:
    found = blame_kernel(write_kernel(text, truncated=truncated))
    waits = found.edges.use_row == 2
    is_scoreboard = found.edges.reason == write_kernel(text).reasons.index("short_scoreboard")
    return found, found.edges.all_samples[waits & is_scoreboard].tolist()


def test_executions_of_the_report_divide_a_kernels_waits() -> None:
    found, shares = list_blamed(MEASURED_LOOP)
    assert found.issue_counts.is_exact
    assert shares == pytest.approx([8, 8, 512])
    assert sum(shares) == pytest.approx(528, abs=1e-9)
    assert found.coverage.group_ratio == pytest.approx(496 / 528)


@pytest.mark.parametrize("truncated", [True, False])
def test_without_executions_of_the_same_run_the_samples_divide_them(truncated: bool) -> None:
    """A full buffer saw other executions than were counted; without counters there are none. Blame says what it went by."""
    text = MEASURED_LOOP if truncated else re.sub(r" \| x=\d+", "", MEASURED_LOOP)
    found, shares = list_blamed(text, truncated=truncated)
    assert not found.issue_counts.is_exact
    assert ("buffer was full" if truncated else "executions were not counted") in found.issue_counts.why
    assert shares[:2] == [shares[0]] * 2
    assert shares[0] < shares[2] / 50
    assert sum(shares) == pytest.approx(528, abs=1e-9)


@given(text=sections())
@examples(80)
def test_every_sampled_instruction_has_one_cause_with_all_its_samples(text: str) -> None:
    function = view_text(text.replace("long_scoreboard=7/3 short_scoreboard=2", "wait=7/3"))
    edges = find_wait_causes(function, WorkBudget.for_function(len(function)))
    reason = function.reason_index("wait")
    sampled = [] if reason is None else np.flatnonzero(function.all_samples[:, reason]).tolist()
    assert edges.use_row.tolist() == sampled
    assert edges.all_samples.tolist() == function.all_samples[sampled, reason].tolist()
    assert edges.latency_samples.tolist() == function.latency_samples[sampled, reason].tolist()
    assert sorted(edges.group.tolist()) == list(range(len(edges)))
    for use, cause, dependency, resource, cycles in zip(
        edges.use_row.tolist(),
        edges.def_row.tolist(),
        edges.dependency.tolist(),
        edges.resource.tolist(),
        edges.distance_cycles.tolist(),
        strict=True,
    ):
        if dependency in (Dependency.READ_AFTER_WRITE, Dependency.GUARD):
            assert resource in function.instructions.writes.of(cause)
            assert resource in function.instructions.reads.of(use)
            assert cycles >= function.stall_cycles[use - 1]
        elif dependency == Dependency.ISSUE:
            assert (cause, cycles) == (use - 1, function.stall_cycles[use - 1])
        else:
            assert (dependency, cause, cycles) == (Dependency.ITSELF, use, 0)


@st.composite
def straight_lines(draw: st.DrawFn) -> str:
    """Integer and float arithmetic on four registers, every instruction sampled."""
    lines = []
    for _ in range(draw(st.integers(2, 12))):
        opcode = draw(st.sampled_from(["IADD3 R{}, R{}, R{}, RZ", "FMUL R{}, R{}, R{}", "HADD2 R{}, R{}, R{}"]))
        registers = draw(st.tuples(*[st.integers(0, 3)] * 3))
        lines.append(f"B-:R-:W-:-:S{draw(st.integers(1, 6)):02}  {opcode.format(*registers)}  # wait=1")
    return "\n".join(lines)


@given(text=straight_lines())
@examples(80)
def test_in_straight_code_the_cause_is_the_def_that_asks_for_the_most(text: str) -> None:
    """Comparison with the definition, pair by pair."""
    function = view_text(text)
    architecture = function.architecture
    assert architecture is not None
    for found in blame_wait(function, WorkBudget.for_function(len(function)))[1:]:
        issuer, stall = found.use_row - 1, int(function.stall_cycles[found.use_row - 1])
        asked = {}
        for register in function.instructions.reads.of(found.use_row):
            defs = [row for row in range(found.use_row) if register in function.instructions.writes.of(row)]
            if not defs:
                continue
            bounds = architecture.find_register_latency(function.mnemonic(defs[-1]), function.mnemonic(found.use_row))
            asked[defs[-1]] = bounds.high_cycles - int(function.stall_cycles[defs[-1] : issuer].sum())
        most = max([min(cycles, stall) for cycles in asked.values()], default=0)
        if most > 1 and 2 * (most - 1) >= stall - 1:
            assert min(asked[found.def_row], stall) == most
            assert found.dependency is Dependency.READ_AFTER_WRITE
        else:
            assert (found.def_row, found.dependency) == (issuer, Dependency.ISSUE)


def sample_everywhere(function: FunctionView, seed: int) -> FunctionView:
    """The same function with samples of every reason, and of an unknown one, on many instructions."""
    reasons = (*sorted(STALL_REASONS), "unheard_of")
    random = np.random.default_rng(seed)
    every = random.integers(0, 4, (len(function), len(reasons)))
    latency = np.minimum(every, random.integers(0, 4, every.shape))
    counts = random.integers(0, 5, len(function)).astype(np.float64)
    return replace(function, reasons=reasons, all_samples=every, latency_samples=latency, issue_counts=counts)


def check_nothing_is_lost(function: FunctionView) -> None:
    budget = WorkBudget.for_function(len(function))
    whole = budget.remaining
    edges, losses = find_other_causes(function, budget)
    check_conserved(function, edges, losses, left_out=DEPENDENCY_REASONS)
    assert (edges.latency_samples <= edges.all_samples).all()
    triples = list(zip(edges.use_row.tolist(), edges.reason.tolist(), edges.def_row.tolist(), strict=True))
    assert len(set(triples)) == len(triples)
    assert len(set(edges.group.tolist())) == len(edges)
    assert whole - budget.remaining < 100 * len(function)


@given(text=sections(), seed=st.integers(0, 1000))
@examples(80)
def test_nothing_is_lost_whatever_the_code_is(text: str, seed: int) -> None:
    check_nothing_is_lost(sample_everywhere(view_text(text), seed))


@pytest.mark.parametrize("write", [write_diamonds, write_irreducible, write_recursion, write_nest])
def test_work_grows_with_the_function_and_not_with_its_paths(write: Callable[[int], Kernel]) -> None:
    function = view_kernel(write(400))
    check_nothing_is_lost(sample_everywhere(function, 0))
    budget = WorkBudget.for_function(len(function))
    whole = budget.remaining
    assert len(find_wait_causes(function, budget)) > 400
    assert whole - budget.remaining < 60 * len(function)


@given(text=sections())
@examples(80)
def test_no_other_barrier_lies_on_the_shortest_way_from_the_one_that_is_blamed(text: str) -> None:
    """Comparison with a search from each sampled instruction backwards, one instruction at a time."""
    text = text.replace("MUFU.RCP", "BAR.SYNC 0x0 //")
    function = view_text(text)
    marked = [row for row in range(len(function)) if function.opcode(row).name == "BAR"]
    function = replace(
        function,
        reasons=("barrier",),
        all_samples=np.ones((len(function), 1), dtype=np.int64),
        latency_samples=np.ones((len(function), 1), dtype=np.int64),
    )
    entered_from: dict[int, list[int]] = {}
    for call in function.graph.calls:
        if call.callee_procedure is not None:
            first = function.graph.procedures[call.callee_procedure].start_offset // 16
            entered_from.setdefault(first, []).append(call.instruction)
    nearest: dict[int, int] = {}
    for row in range(len(function)):
        front, seen, steps = {row}, {row}, 0
        while front:
            steps += 1
            front = {
                one
                for place in front
                for one in (*function.graph.previous_instructions(place), *entered_from.get(place, ()))
            }
            if front & set(marked):
                nearest[row] = steps
                break
            front -= seen
            seen |= front
    edges, lost = find_other_causes(function, WorkBudget.for_function(len(function)))
    nearest = {**dict.fromkeys(marked, 0), **nearest}  # where none leads to a barrier, it is waited at
    assert set(lost.row.tolist()) == set(range(len(function))) - set(nearest)
    found: dict[int, int] = {}
    for use, cause, steps in zip(
        edges.use_row.tolist(), edges.def_row.tolist(), edges.distance_instructions.tolist(), strict=True
    ):
        assert cause in marked
        found[use] = min(found.get(use, steps), steps)
    assert found == nearest


def find_edges(kernel: Kernel, reason: str = "lg_throttle", budget: int = 1_000_000) -> BlameEdges:
    executions = np.maximum(kernel.functions[0].executions, 0)
    view = view_kernel(kernel, executions.astype(np.float64))
    return blame_queue(view, view.reasons.index(reason), executions, WorkBudget(remaining=budget))


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
    assert (edges.distance_instructions[edges.dependency == Dependency.QUEUE] == -1).all()
    sampled = sum(samples for _, _, samples, _, _ in lines)
    throttles = [number for number, name in enumerate(kernel.reasons) if name in QUEUES]
    assert edges.all_samples[np.isin(edges.reason, throttles)].sum() == pytest.approx(sampled)


@pytest.mark.corpus
def test_a_convolution_is_stalled_on_the_load_of_many_lines_and_not_on_the_one_behind_it() -> None:
    (kernel,) = join("pairs/a100_conv2d_naive.ncu-rep")
    edges = blame_kernel(kernel).edges
    throttled = edges.reason == kernel.reasons.index("lg_throttle")
    total = float(edges.all_samples[throttled].sum())
    sampled, blamed = defaultdict(float), defaultdict(float)
    for rows, shares in ((edges.use_row, sampled), (edges.def_row, blamed)):
        for row, samples in zip(rows[throttled].tolist(), edges.all_samples[throttled].tolist(), strict=True):
            place = kernel.rows.place(row)
            shares[place.line] += samples / total
    assert sampled[44] < 0.3
    assert blamed[44] > 0.9


# ------------------------------------------------------------------------------------------------------------------ real reports

MEASURED = {
    ((7, 0), "long_scoreboard"): (830_607, 0.075, 0.834),
    ((7, 0), "short_scoreboard"): (23_168, 0.966, 0.034),
    ((8, 0), "long_scoreboard"): (2_471_198, 0.954, 0.005),
    ((8, 0), "short_scoreboard"): (1_571, 0.973, 0.002),
    ((8, 6), "long_scoreboard"): (661_012, 0.118, 0.833),
    ((8, 6), "short_scoreboard"): (66_406, 0.931, 0.064),
    ((9, 0), "long_scoreboard"): (87_738, 0.965, 0.035),
    ((9, 0), "short_scoreboard"): (2_874, 0.936, 0.054),
    ((12, 0), "long_scoreboard"): (3_612, 0.008, 0.850),
    ((12, 0), "short_scoreboard"): (16, 1.0, 0.0),
}
"""Compute capability, reason → samples, and the shares of samples with one and with two causes.

Source: an independent prototype on the same reports; the samples at two places whose reason fits nobody count with those who stay.
"""


@cache
def blame_corpus() -> tuple[tuple[tuple[int, int], FunctionView, BlameEdges], ...]:
    found = []
    for name in REPORTS:
        for kernel in join(name):
            for index, function in enumerate(kernel.functions):
                view = view_function(kernel, index, np.ones(len(function.pc_offsets)))
                if view is not None:
                    assert kernel.device.compute_capability is not None
                    found.append((kernel.device.compute_capability, view, blame(view).edges))
    return tuple(found)


@pytest.mark.corpus
def test_real_scoreboard_samples_have_as_many_causes_as_were_measured() -> None:
    samples: dict[tuple[tuple[int, int], str], int] = defaultdict(int)
    by_count: dict[tuple[tuple[int, int], str, int], float] = defaultdict(float)
    for capability, view, edges in blame_corpus():
        for reason in ("long_scoreboard", "short_scoreboard"):
            column = view.reason_index(reason)
            if column is None:
                continue
            samples[capability, reason] += int(view.all_samples[:, column].sum())
            chosen = edges.reason == column
            for row in np.unique(edges.use_row[chosen]).tolist():
                shares = edges.all_samples[chosen & (edges.use_row == row)]
                by_count[capability, reason, len(shares)] += float(shares.sum())
    for (capability, reason), (total, one, two) in MEASURED.items():
        assert samples[capability, reason] == total
        assert by_count[capability, reason, 1] / total == pytest.approx(one, abs=0.002)
        assert by_count[capability, reason, 2] / total == pytest.approx(two, abs=0.002)
    assert sum(by_count.values()) / sum(samples.values()) >= 0.99999


@pytest.mark.corpus
def test_most_real_scoreboard_causes_are_values_that_are_read() -> None:
    by_dependency: dict[Dependency, float] = defaultdict(float)
    for _, view, edges in blame_corpus():
        wanted = [column for column, name in enumerate(view.reasons) if name.endswith("_scoreboard")]
        for dependency in Dependency:
            chosen = np.isin(edges.reason, wanted) & (edges.dependency == dependency)
            by_dependency[dependency] += float(edges.all_samples[chosen].sum())
    total = sum(by_dependency.values())
    assert by_dependency[Dependency.READ_AFTER_WRITE] / total > 0.9
