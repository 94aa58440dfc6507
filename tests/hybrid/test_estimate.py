"""The time of a launch: Equation 8 around the simulation of a round."""

from math import ceil

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.hybrid.estimate import CompiledKernel, PaperEstimate, estimate_launch
from gpa_lsp.execution.hybrid.operations import EVERY_TERM, PRINTED, Arithmetic, Term, find_costs
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import MemoryFacts

_A100 = find_machine_by_name("A100-SXM4-40GB")
_MEMORY = MemoryFacts(l2_bytes=40 << 20, bus_bits=5120)
_TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 scale_x, .param .u32 scale_n)
{ .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .f32 %f<4>;
ld.param.u64 %rd1, [scale_x]; ld.param.u32 %r1, [scale_n]; cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r5, %r3, %r4, %r2;
setp.ge.s32 %p1, %r5, %r1; @%p1 bra END;
mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd4]; mul.f32 %f2, %f1, 0f40000000; st.global.f32 [%rd4], %f2;
END: ret; }"""


def estimate(blocks: int, *, registers: int = 16, terms: frozenset[Term] = PRINTED) -> PaperEstimate:
    module = parse_ptx(_TEXT, name="scale")
    count = 256 * blocks
    launch = LaunchDescription(
        kernel="scale",
        block=(256, 1, 1),
        grid=(blocks, 1, 1),
        arguments=(
            ArrayArgument(name="x", type=ScalarType.F32, count=count),
            ScalarArgument(name="n", type=ScalarType.U32, value=count),
        ),
    )
    return estimate_launch(
        module,
        module.functions["scale"],
        launch,
        CompiledKernel(registers=registers, shared_bytes=0),
        architecture=find_architecture((8, 0)),
        machine=_A100,
        memory=_MEMORY,
        terms=terms,
    )


def test_equation_8() -> None:
    found = estimate(10_000)
    assert found.blocks_per_sm == 8
    assert found.cycles == found.round_cycles * ceil(10_000 / 108) / 8
    assert found.trace_length == 4  # the index, a load, a product, a store
    assert found.hit_ratio == 0.5  # what is stored was loaded


@pytest.mark.parametrize("terms", [PRINTED, EVERY_TERM])
def test_a_launch_that_moves_much_is_as_fast_as_the_memory(terms: frozenset[Term]) -> None:
    found = estimate(100_000, terms=terms)
    moved = 100_000 * 256 * 4
    assert _A100.clocks.sm_hz is not None
    seconds = found.duration_ns / 1e9
    assert moved / 1555e9 < seconds < 4 * moved / 1555e9


def test_fewer_resident_blocks_make_a_round_shorter() -> None:
    assert estimate(10_000, registers=255).round_cycles < estimate(10_000).round_cycles


def test_a_block_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(InputError, match="holds a block"):
        estimate(10, registers=10_000)


def test_an_unknown_l2_is_refused() -> None:
    with pytest.raises(InputError, match="L2"):
        find_costs(find_architecture((8, 0)), _A100, MemoryFacts(l2_bytes=None, bus_bits=None))


def test_every_class_of_arithmetic_has_a_price_on_every_architecture() -> None:
    for capability in ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)):
        costs = find_costs(find_architecture(capability), _A100, _MEMORY)
        assert all(costs.arithmetic[one].interval_cycles > 0 for one in Arithmetic)
        single, slow = costs.arithmetic[Arithmetic.SINGLE], costs.arithmetic[Arithmetic.SINGLE_DIVIDE]
        assert slow.latency_cycles > single.latency_cycles
        assert costs.global_memory.miss_cycles > costs.global_memory.hit_cycles


@pytest.mark.parametrize("terms", [PRINTED, EVERY_TERM])
def test_more_blocks_never_take_less_time(terms: frozenset[Term]) -> None:
    """An SM has its share of the blocks and no more, below a wave as well."""
    times = [estimate(blocks, terms=terms).cycles for blocks in (1, 8, 108, 109, 216, 864, 865, 5000)]
    assert times == sorted(times)


def test_rounds_that_overlap_take_no_longer_than_those_that_do_not() -> None:
    assert estimate(10_000, terms=frozenset({Term.WAVES})).cycles < estimate(10_000).cycles


_LOOPING = """.version 8.0
.target sm_80
.address_size 64
.func report(.param .b64 report_a) { ret; }
.visible .entry sums(.param .u64 sums_x, .param .u32 sums_n)
{ .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<7>; .reg .f32 %f<5>;
ld.param.u64 %rd1, [sums_x]; ld.param.u32 %r1, [sums_n]; cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r5, %r3, %r4, %r2;
mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd2, %rd3; mov.f32 %f1, 0f00000000; mov.u32 %r6, 0; mov.u64 %rd5, %rd4;
LOOP: ld.global.f32 %f2, [%rd5]; setp.lt.f32 %p1, %f2, 0f00000000; @%p1 bra WRONG;
add.f32 %f1, %f1, %f2; add.s64 %rd5, %rd5, 16384; add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r1; @%p2 bra LOOP;
st.global.f32 [%rd4], %f1; ret;
WRONG: { .param .b64 param0; st.param.b64 [param0+0], %rd1; call.uni report, (param0); } trap; }"""


def _estimate_sums(iterations: int) -> PaperEstimate:
    module = parse_ptx(_LOOPING, name="sums")
    launch = LaunchDescription(
        kernel="sums",
        block=(128, 1, 1),
        grid=(32, 1, 1),
        arguments=(
            ArrayArgument(name="x", type=ScalarType.F32, count=4096 * iterations),
            ScalarArgument(name="n", type=ScalarType.U32, value=iterations),
        ),
        guesses=("x",),
    )
    return estimate_launch(
        module,
        module.functions["sums"],
        launch,
        CompiledKernel(registers=16, shared_bytes=0),
        architecture=find_architecture((8, 0)),
        machine=_A100,
        memory=_MEMORY,
    )


def test_a_call_that_only_an_exception_comes_to_is_no_refusal() -> None:
    """A side that does not come back is not taken where data decides."""
    found = _estimate_sums(5)
    assert (found.trace_length, found.assumed_branches, found.is_executed) == (1 + 5 * 3 + 1, 1, False)
    assert found.turns == (0, 0)


def test_of_a_loop_that_is_too_long_some_iterations_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _estimate_sums(300)
    monkeypatch.setattr("gpa_lsp.execution.hybrid.estimate._MOST_OPERATIONS", 4 * 300)
    found = _estimate_sums(300)
    assert (whole.turns, found.turns) == ((0, 0), (16, 300))
    assert found.trace_length == whole.trace_length == 1 + 300 * 3 + 1, "the store behind the loop is there once"
    assert found.cycles == pytest.approx(whole.cycles, rel=0.03)
    monkeypatch.setattr("gpa_lsp.execution.hybrid.estimate._MOST_OPERATIONS", 4)
    with pytest.raises(InputError, match="operations that are simulated"):
        _estimate_sums(300)
