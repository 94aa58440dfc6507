"""Facts from a report that rewriting uses."""

from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Category
from gpa_lsp.diagnosis.advice.optimizers.excessive_unrolling import OPTIMIZER as LESS
from gpa_lsp.diagnosis.advice.optimizers.loop_unrolling import OPTIMIZER as UNROLLING
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.report.fixes.jobs import build_context, list_questions, read_unroll_copies
from gpa_lsp.report.model import DeviceReport, KernelReport
from tests.advice.blamed_by_hand import write_subject
from tests.cases.repeats import expand_repeats
from tests.report_builder import build_kernel

LISTING = """
    k.cu:4              LDG.E R2, [R4.64]        ; long_scoreboard=60/50 selected=4
    m.cuh:7 < k.cu:5    FFMA R2, R2, R3, R6      ; wait=20/10
    -                   EXIT                     ;
"""
ADVICE = """
    loop_unrolling code 1.5x
        hint: Unroll.
        region loop 0 1.4x line=3
            here: Unroll the loop in line 3 of k.cu by 8 (`#pragma unroll 8` before it): it makes 64 turns.
            1 <- 0   long_scoreboard
            0 <- 1   long_scoreboard
    block_increase parallel 1.1x samples=60/50
        hint: Launch more blocks.
"""


def build(**changes: object) -> KernelReport:
    kernel = build_kernel(LISTING, name="void ns::scale<float>(float*, int)", blame="", advice=ADVICE)
    return replace(kernel, **changes)  # type: ignore[arg-type]


def test_a_question_for_each_region_with_its_line_and_its_causes() -> None:
    first, second = list_questions(build())
    assert first.advice.optimizer == "loop_unrolling"
    assert first.lines == tuple(
        SourceLine(file=file, line=line) for file, line in (("k.cu", 3), ("m.cuh", 7), ("k.cu", 4))
    )
    assert first.context.optimizer == "loop_unrolling"
    assert first.context.kernel == "scale"
    assert first.context.unroll_copies == 8
    assert second.region is None
    assert second.lines == ()
    assert second.context.unroll_copies is None


def test_a_kernel_without_advice_asks_nothing() -> None:
    assert list_questions(build(advice=None)) == ()


def test_the_largest_block_counts() -> None:
    kernel = build()
    (launch,) = kernel.launches
    larger = replace(launch, configuration=replace(launch.configuration, block=(32, 16, 2)))
    question = list_questions(replace(kernel, launches=(launch, larger)))[0]
    assert question.context.threads_per_block == 1024
    assert list_questions(kernel)[0].context.threads_per_block == 256


def build_crowded(**device: object) -> KernelReport:
    """A kernel whose registers keep warps out: 256 threads of 72 registers."""
    kernel = build_kernel(
        LISTING, name="k", blame="", advice="thread_increase parallel 1.2x samples=10/5\n    hint: More.\n"
    )
    configuration = replace(kernel.configuration, registers_per_thread=72)
    return replace(kernel, configuration=configuration, device=replace(kernel.device, **device))


def test_the_step_of_registers_that_lets_more_blocks_in() -> None:
    # 65,536 registers of an SM: 3 blocks of 256 threads at 72 registers, 4 at 64; the SM would hold 6.
    (question,) = list_questions(build_crowded())
    assert (question.context.min_blocks, question.context.max_registers) == (4, 64)


@pytest.mark.parametrize("capability", [None, (99, 9)])
def test_no_step_without_a_table_of_the_architecture(capability: tuple[int, int] | None) -> None:
    (question,) = list_questions(build_crowded(compute_capability=capability))
    assert (question.context.min_blocks, question.context.max_registers) == (None, None)


def test_no_step_where_the_report_does_not_say_enough_or_registers_are_no_limit() -> None:
    crowded = build_crowded()
    for changes in (
        {"registers_per_thread": None},
        {"registers_per_thread": 16},
        {"shared_static_bytes": None},
        {"shared_dynamic_bytes": None},
        {"block": (0, 0, 0)},
        {"shared_dynamic_bytes": 90_000},
    ):
        kernel = replace(crowded, configuration=replace(crowded.configuration, **changes))
        assert list_questions(kernel)[0].context.min_blocks is None, changes


def test_only_occupancy_advice_asks_for_fewer_registers() -> None:
    kernel = build_crowded()
    other = replace(kernel.advice.advice[0], optimizer="code_reordering")
    assert build_context(kernel, other).min_blocks is None


def test_a_bound_helps_a_kernel_that_spills_only_where_a_bound_keeps_it_from_registers() -> None:
    kernel = build()
    spilling = replace(kernel.advice.advice[0], optimizer="register_reuse", category=Category.BINARY)
    assert build_context(kernel, spilling).threads_per_block == 256
    assert build_context(kernel, replace(spilling, category=Category.CODE)).threads_per_block is None


def test_a_kernel_that_was_never_launched_has_no_block() -> None:
    kernel = build()
    empty = replace(kernel, launches=(), configuration=replace(kernel.configuration, block=(0, 0, 0)), device=NOTHING)
    assert list_questions(empty)[0].context.threads_per_block is None


NOTHING = DeviceReport(name=None, compute_capability=None, sm_count=None, sm_clock_hz=None)


@pytest.mark.parametrize(("file", "source"), [("k.cu", "\n\n#pragma unroll 1\n"), ("k.cu", ""), ("k.py", "")])
def test_the_factor_is_read_from_what_the_optimizers_really_say(file: str, source: str) -> None:
    loop = f"""
        MOV R8, RZ                        # {file}:4 | selected=1 | x=10
    loop:
        LDG.E.CONSTANT R0, [R4.64]        # {file}:5 | selected=20 | x=640
        IADD3 R8, R8, 0x1, RZ             # {file}:4 | selected=20 | x=640
        IADD3 R4, R4, 0x4, RZ             # {file}:4 | selected=20 | x=640
        FMUL R2, R0, R0                   # {file}:6 | long_scoreboard=300/290 selected=20 | x=640
        FADD R3, R3, R2                   # {file}:6 | wait=60 selected=20 | x=640
        ISETP.GE.AND P0, PT, R8, R9, PT   # {file}:4 | selected=20 | x=640
        @!P0 BRA loop                     # {file}:4 | wait=12 selected=20 | x=640
        EXIT                              # {file}:9
    """
    found: Any = UNROLLING.match(write_subject(loop, {(4, "long_scoreboard"): (1,)}, sources={file: source}))
    assert read_unroll_copies(found.regions[0].hint) == 4


def test_the_smaller_factor_is_read_too() -> None:
    text = """
    loop:
    repeat 1024
        LDS R2, [R20+{4n}]                # k.cu:6 | no_instructions=2
        FFMA R3{n%4}, R2, R3, R3{n%4}     # k.cu:7 | selected=1
    end
        IADD3 R5, R5, 0x400, RZ           # k.cu:5 | selected=1
        @P0 BRA loop                      # k.cu:5 | selected=1
        EXIT                              # k.cu:9
    """
    excessive = LESS.match(write_subject(expand_repeats(text), {}))
    assert read_unroll_copies(excessive.hint) == 256  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("hint", "copies"),
    [
        ("", None),
        ("Load earlier by 3: it helps.", None),
        ("Unroll the loop at 0x1e0 by 16: it makes.", 16),
        ("Unroll it by hand: it makes.", None),
        ("Unroll less, `#pragma unroll N`, so", None),
    ],
)
def test_other_hints(hint: str, copies: int | None) -> None:
    assert read_unroll_copies(hint) == copies


@pytest.mark.parametrize(
    ("readable", "own"),
    [
        ("saxpy", "saxpy"),
        ("ns::scale(float*, int)", "scale"),
        ("void (anonymous namespace)::f<(int)3, std::pair<int, int>>(T1*)", "f"),
        ("__main__::kernel[abi:v1](Array<float, 1>)", "kernel"),
    ],
)
def test_a_kernels_own_name(readable: str, own: str) -> None:
    assert find_plain_name(readable) == own
