"""Traces execute what the emulator executes, to the last warp and instruction, where no branch depends on data."""

from functools import cache
from math import prod

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.execution.hybrid.estimate import place_arguments
from gpa_lsp.execution.hybrid.executed_trace import trace_executed
from gpa_lsp.execution.hybrid.lane_values import LaneValues
from gpa_lsp.execution.hybrid.operations import Arithmetic, NeedsDataError, list_operations
from gpa_lsp.execution.hybrid.walk import KernelTrace, LoopBound, TracedLaunch, walk_kernel
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument
from gpa_lsp.foundation.errors import InputError
from tests.emulator.kernels.running import Case, find_kernel, load_module, run
from tests.emulator.kernels.test_truth import FIXTURES, OWN
from tests.patience import LIMIT_S

_MOST_THREADS = 200_000
_REASONS = (  # what the paper has no answer for
    "ends where the data says",
    "calls a function",
    "multiplies matrices",
    "texture",
    "surface",
    "jumps by a table",
    "mbarrier",
)


def walk(module: PtxModule, function: PtxFunction, launch: LaunchDescription, **limits: int | None) -> KernelTrace:
    """The traces of all blocks."""
    return walk_kernel(function, replace(make_traced(module, function, launch), **limits))


def make_traced(module: PtxModule, function: PtxFunction, launch: LaunchDescription) -> TracedLaunch:
    """All blocks, of caches of lines."""
    parameters, addresses = place_arguments(module, function, launch)
    return TracedLaunch(
        grid=launch.grid,
        block=launch.block,
        parameters=parameters,
        addresses=addresses,
        chosen=range(prod(launch.grid)),
        transaction_bytes=128,
        tags_per_cycle=None,
        most_visits=200_000,
        most_transactions=5_000_000,
        most_operations=10_000_000,
        seconds=LIMIT_S,
    )


@cache
def walk_case(case: Case) -> tuple[dict[int, int], int, bool] | InputError:
    """Executions of each operation in a case's trace, the lengths of all warps together, and whether ways were assumed; or why there is none."""
    module = load_module(case.source, case.architecture, *case.flags)
    try:
        trace = walk(module, module.functions[find_kernel(module, case.launch.kernel)], case.launch)
    except InputError as error:
        return error.with_traceback(None)
    return count(trace), int(trace.lengths.sum()), bool(trace.assumed)


def count(trace: KernelTrace) -> dict[int, int]:
    """Executions of each operation by warps."""
    found: dict[int, int] = {}
    for step in trace.steps:
        for operation, _ in step.operations:
            found[operation.instruction] = found.get(operation.instruction, 0) + int(step.warps.sum())
    return found


def check_executed(module: PtxModule, function: PtxFunction, launch: LaunchDescription, emulation: Emulation) -> None:
    """Hold a trace that follows the data, through calls as well, against what is executed."""
    try:
        trace = trace_executed(module, function, launch, make_traced(module, function, launch), Budget(seconds=LIMIT_S))
    except InputError as error:
        assert any(reason in str(error) for reason in _REASONS)
        return
    counted = count(trace)
    executed = emulation.counts.warp_executions.tolist()
    assert counted
    assert counted == {index: executed[index] for index in counted}
    assert int(trace.lengths.sum()) == sum(counted.values())


_CASES = [
    *{
        (case.source, case.launch.kernel): case
        for case in (*OWN, *FIXTURES)
        if prod(case.launch.grid) * prod(case.launch.block) <= _MOST_THREADS
    }.values()
]
"""Each kernel with one launch, for one architecture."""


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_traces_execute_what_the_emulator_does(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    function = module.functions[find_kernel(module, case.launch.kernel)]
    emulation = run(case)
    walked = walk_case(case)
    if isinstance(walked, NeedsDataError):
        polls = any("volatile" in one.suffixes or "acquire" in one.suffixes for one in function.instructions)
        if emulation.is_complete and not emulation.faults and not polls:  # how often it polls is up to who runs it
            check_executed(module, function, case.launch, emulation)
        return
    if isinstance(walked, InputError):
        assert any(reason in str(walked) for reason in _REASONS)
        return
    counted, length, is_assumed = walked
    executed = dict(
        zip(
            (one.index for one in emulation.instructions if one.function == function.name),
            emulation.counts.warp_executions.tolist(),
            strict=False,
        )
    )
    if is_assumed:
        assert all(index in counted for index in list_operations(function) if executed[index]), "both ways are taken"
        return
    operations = list_operations(function)
    assert {one: counted.get(one, 0) for one in operations} == {one: executed[one] for one in operations}
    assert length == sum(counted.values())


def test_most_kernels_are_traced_and_most_of_them_without_assumptions() -> None:
    """Enough of the tests' kernels are compared above."""
    walked = [one for one in map(walk_case, _CASES) if not isinstance(one, InputError)]
    assert len([1 for _, _, is_assumed in walked if not is_assumed]) >= 0.55 * len(_CASES)
    assert len(walked) >= 0.7 * len(_CASES)


_TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_out, .param .u32 k_n)
{{ .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .f32 %f<4>;
ld.param.u64 %rd1, [k_out]; ld.param.u32 %r1, [k_n]; cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r5, %r3, %r4, %r2;
mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd2, %rd3; mov.u32 %r6, 0;
{}
ret; }}"""


def trace_text(
    body: str, *, n: int, threads: int = 64, grid: int = 1, **limits: int | None
) -> tuple[PtxFunction, KernelTrace]:
    """The trace of a kernel ``k(out, n)``; %r5 is the thread, %rd4 its element, %r1 n, %r6 zero."""
    module = parse_ptx(_TEXT.format(body), name="k")
    function = module.functions["k"]
    return function, walk(module, function, make_launch(n=n, threads=threads, grid=grid), **limits)


def make_launch(*, n: int, threads: int = 64, grid: int = 1) -> LaunchDescription:
    """A launch of such a kernel."""
    return LaunchDescription(
        kernel="k",
        block=(threads, 1, 1),
        grid=(grid, 1, 1),
        arguments=(
            ArrayArgument(name="out", type=ScalarType.F32, count=threads * grid),
            ScalarArgument(name="n", type=ScalarType.U32, value=n),
        ),
    )


def _count_opcode(function: PtxFunction, trace: KernelTrace, opcode: str) -> int:
    return sum(number for index, number in count(trace).items() if function.instructions[index].opcode == opcode)


def test_a_loop_turns_as_often_as_its_longest_thread() -> None:
    function, trace = trace_text(
        "A: ld.global.f32 %f1, [%rd4]; add.s32 %r6, %r6, 1; setp.le.s32 %p1, %r6, %r5; @%p1 bra A;", n=0
    )
    assert _count_opcode(function, trace, "ld") == 32 + 64
    assert trace.assumed == ()


def test_a_branch_on_data_is_taken_both_ways() -> None:
    body = """ld.global.u32 %r7, [%rd4]; setp.eq.s32 %p1, %r7, 0; @%p1 bra B;
    st.global.u32 [%rd4], %r5; bra C; B: st.global.u32 [%rd4], %r6; C: """
    function, trace = trace_text(body, n=0)
    assert _count_opcode(function, trace, "st") == 4
    assert [function.instructions[index].opcode for index in trace.assumed] == ["bra"]


def test_a_branch_on_the_thread_is_taken_by_its_warps() -> None:
    body = "setp.lt.s32 %p1, %r5, 32; @%p1 bra B; st.global.u32 [%rd4], %r5; bra C; B: st.global.u32 [%rd4], %r6; st.global.u32 [%rd4], %r6; C: "
    function, trace = trace_text(body, n=0)
    assert trace.lengths.tolist() == [2 + 1, 1 + 1]  # and the index
    assert _count_opcode(function, trace, "st") == 3


def test_transactions_are_counted_by_line() -> None:
    _, trace = trace_text(
        "shl.b32 %r8, %r5, 7; cvt.u64.u32 %rd5, %r8; add.s64 %rd6, %rd2, %rd5; ld.global.f32 %f1, [%rd6]; ld.global.f32 %f2, [%rd4];",
        n=0,
    )
    accesses = [access for step in trace.steps for _, access in step.operations if access is not None]
    assert [np.diff(access.starts).tolist() for access in accesses] == [[32, 32], [1, 1]]


def test_an_address_from_data_is_not_known() -> None:
    _, trace = trace_text(
        "ld.global.u32 %r7, [%rd4]; mul.wide.u32 %rd5, %r7, 4; add.s64 %rd6, %rd2, %rd5; ld.global.f32 %f1, [%rd6];",
        n=0,
    )
    assert trace.unknown_ratio == pytest.approx(64 / 66)


def test_a_loop_that_data_ends_is_refused() -> None:
    with pytest.raises(InputError, match="ends where the data says"):
        trace_text("A: ld.global.u32 %r7, [%rd4]; add.s32 %r6, %r6, 1; setp.le.s32 %p1, %r6, %r7; @%p1 bra A;", n=0)


def test_a_loop_that_data_ends_runs_as_often_as_is_given() -> None:
    body = "A: ld.global.u32 %r7, [%rd4]; add.s32 %r6, %r6, 1; setp.le.s32 %p1, %r6, %r7; @%p1 bra A;"
    function, trace = trace_text(body, n=0, loop_bound=7)
    assert _count_opcode(function, trace, "ld") == 2 * 7
    assert trace.loops == (LoopBound(lines=None, least=7, most=7, is_given=True),)
    (branch,) = trace.branches
    assert (branch.visits, branch.is_assumed) == (14, True)


def test_bounds_and_misses_are_told() -> None:
    body = """setp.lt.s32 %p1, %r5, 32; @%p1 bra B;
    A: ld.global.f32 %f1, [%rd4]; add.s32 %r6, %r6, 1; setp.le.s32 %p2, %r6, %r5; @%p2 bra A; B: """
    _, trace = trace_text(body, n=0, threads=96)
    assert trace.loops == (LoopBound(lines=None, least=96, most=96),)
    skips, repeats = trace.branches
    assert (skips.visits, skips.jumping, skips.passing) == (3, 1, 2), "the first warp jumps, the others miss that"
    assert (repeats.visits, repeats.jumping, repeats.passing) == (64 + 96, 63 + 95, 32 + 32)


def test_a_loop_that_turns_for_ever_is_refused() -> None:
    with pytest.raises(InputError, match="runs more than 2000 iterations"):
        trace_text("A: setp.lt.s32 %p1, %r6, %r1; @%p1 bra A;", n=1, most_visits=2_000)


_CHOICE = """ld.global.u32 %r7, [%rd4]; setp.eq.s32 %p1, %r7, 0; mov.u32 %r10, 3; @%p1 bra A;
mov.u32 %r10, 99; {} A: add.s32 %r6, %r6, 1; ld.global.f32 %f1, [%rd4]; setp.lt.s32 %p2, %r6, %r10; @%p2 bra A;"""


@pytest.mark.parametrize("between", ["", "bra B; B: add.s32 %r9, %r9, 1;"])
def test_a_bound_that_one_way_writes_is_not_known_where_ways_meet(between: str) -> None:
    with pytest.raises(InputError, match="ends where the data says"):
        trace_text(_CHOICE.format(between), n=0)


def test_a_way_does_not_see_what_the_other_wrote() -> None:
    body = """ld.global.u32 %r7, [%rd4]; setp.eq.s32 %p1, %r7, 0; mov.u32 %r10, 3; @%p1 bra B;
    mov.u32 %r10, 99; bra C;
    B: add.s32 %r6, %r6, 1; ld.global.f32 %f1, [%rd4]; setp.lt.s32 %p2, %r6, %r10; @%p2 bra B;
    C: """
    function, trace = trace_text(body, n=0)
    assert _count_opcode(function, trace, "ld") == 2 * (1 + 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov.u64 %rd5, -1; mov.u64 %rd6, 256; min.u64 %rd7, %rd5, %rd6;", 256),
        ("mov.u64 %rd5, -1; mov.u64 %rd6, 256; max.u64 %rd7, %rd5, %rd6;", -1),
        ("mov.u64 %rd5, 7; shl.b64 %rd7, %rd5, 64;", 0),
        ("mov.u64 %rd5, -1; mov.u64 %rd6, 10; div.u64 %rd7, %rd5, %rd6;", 0x1999999999999999),
        ("mov.u64 %rd5, -1; shr.u64 %rd7, %rd5, 60;", 15),
        ("mov.u32 %r8, 0xf0; bfe.u32 %r9, %r8, 4, 4; cvt.u64.u32 %rd7, %r9;", 15),
        ("mov.u32 %r8, -7; mov.u32 %r9, 2; div.s32 %r9, %r8, %r9; cvt.s64.s32 %rd7, %r9;", -3),
    ],
)
def test_integers_are_those_of_the_instruction_set(text: str, expected: int) -> None:
    module = parse_ptx(_TEXT.format(text), name="k")
    function = module.functions["k"]
    values = LaneValues(function, bytes(12), {}, {}, 32)
    for instruction in function.instructions:
        values.execute(instruction, np.ones(32, dtype=bool))
    slot = function.register_names.index("%rd7")
    assert values.registers[slot].is_known.all()
    assert values.registers[slot].numbers.tolist() == [expected] * 32


def test_products_of_matrices_are_priced_by_their_size() -> None:
    body = "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%r8, %r9}, {%r5}, {%r6}, {%r7, %r10};"
    module = parse_ptx(_TEXT.format(body), name="k")
    (product,) = [one for one in list_operations(module.functions["k"]).values() if one.amount != 1]
    assert product.arithmetic is Arithmetic.MATRIX_INT8
    assert product.amount == 8 * 8 * 16 / (16 * 8 * 16)


def test_what_waits_for_copies_waits_for_the_groups_that_are_due() -> None:
    copy = "cp.async.ca.shared.global [%r6], [%rd4], 4; cp.async.commit_group;"
    _, trace = trace_text(f"{copy} {copy} {copy} cp.async.wait_group 1; cp.async.wait_all;", n=0)
    ready: dict[int, set[int]] = {}
    waits = []
    for number, part in enumerate(one for body in trace.bodies for one in body):
        held = set().union(*(ready.get(one, set()) for one in part.reads if one < 0))
        if part.operation is not None and part.writes == (-1,):
            ready[-1] = {number}
        elif part.pruned is not None:
            waits.append(len(held))
        elif part.writes and part.writes[0] < 0:
            ready[part.writes[0]] = held
    assert waits == [2, 3], "all groups but the newest, then all"


def test_a_search_ends_in_time() -> None:
    body = "A: add.s32 %r6, %r6, 1; ld.global.f32 %f1, [%rd4]; setp.lt.s32 %p1, %r6, 2000; @%p1 bra A;"
    with pytest.raises(InputError, match="more than the 500 operations"):
        trace_text(body, n=0, most_operations=500)
    with pytest.raises(InputError, match="not found within 0 s"):
        trace_text(body, n=0, most_operations=500, seconds=0)
