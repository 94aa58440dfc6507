"""Comparison of two reports, kernel by kernel."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import KernelComparison, compare_kernels, compare_reports, digest_code
from gpa_lsp.report.differences import Trait
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.taken import AdviceFate, pair_lines
from tests.report_builder import build_kernel, build_report

BEFORE = """
    k.cu:4  LDG.E R2, [R4.64]        ; selected=10
    k.cu:5  FFMA R2, R2, R3, R6      ; long_scoreboard=70/60 selected=10
    k.cu:6  MUFU.RCP R7, R2          ; wait=10
"""
AFTER = """
    k.cu:4  LDG.E R2, [R4.64]        ; selected=10
    k.cu:5  FFMA R2, R2, R3, R6      ; long_scoreboard=20/10 selected=10
    k.cu:6  FMUL R7, R2, R8          ; wait=10
"""
ADVICE = """
    code_reordering code 1.8x samples=70/60
        region kernel 0
            1 <- 0   long_scoreboard
    strength_reduction code 1.1x samples=10/10
        region kernel 0
            2   wait
"""


def measured(kernel: KernelReport, *times: float, unit: str = "cycles") -> KernelReport:
    """The same kernel with one launch per time."""
    field = "elapsed_cycles" if unit == "cycles" else "duration_ns"
    blank = replace(kernel.launches[0], elapsed_cycles=None, duration_ns=None)
    launches = tuple(replace(blank, index=index, **{field: time}) for index, time in enumerate(times))
    return replace(kernel, launches=launches, duration_ns=sum(times) / len(times) if times else None)


def compare_times(before: list[float], after: list[float], unit: str = "cycles") -> KernelComparison:
    return compare_kernels(
        measured(build_kernel(BEFORE), *before, unit=unit), measured(build_kernel(AFTER), *after, unit=unit)
    )


def test_a_kernel_with_half_the_cycles_is_twice_as_fast() -> None:
    found = compare_times([200_000], [100_000])
    assert found.verdict is Verdict.FASTER and found.time is not None
    assert found.time.speedup == 2.0
    assert found.time.low < 2.0 < found.time.high


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (100_000, 130_000, Verdict.SLOWER),
        (100_000, 98_000, Verdict.NO_CHANGE),  # within the assumed noise
        (8_900, 8_100, Verdict.NO_CHANGE),  # launching takes that long
    ],
)
def test_a_verdict_is_beyond_the_noise(before: float, after: float, verdict: Verdict) -> None:
    assert compare_times([before], [after]).verdict is verdict


def test_the_same_instructions_and_launch_are_no_change_whatever_the_times() -> None:
    kernel = build_kernel(BEFORE)
    found = compare_kernels(measured(kernel, 100_000), measured(kernel, 120_000))
    assert found.verdict is Verdict.SAME_CODE


def test_another_launch_of_the_same_code_is_a_change() -> None:
    kernel = measured(build_kernel(BEFORE), 100_000)
    other = replace(kernel, configuration=replace(kernel.configuration, grid=(7, 1, 1)))
    found = compare_kernels(kernel, measured(other, 50_000))
    assert (found.verdict, found.note) == (Verdict.FASTER, "work may differ: grid 128 → 7")


def test_other_sizes_of_the_same_code_are_not_compared() -> None:
    kernel = measured(build_kernel(BEFORE, advice=ADVICE), 100_000)
    small, large = (
        count(replace(kernel, configuration=replace(kernel.configuration, grid=grid)), executions)
        for grid, executions in (((7, 1, 1), 100), ((2000, 1, 1), 28_200))
    )
    found = compare_kernels(small, measured(large, 9e9))
    assert (found.verdict, found.time, found.outcomes, found.lines) == (Verdict.OTHER_WORK, None, (), ())
    assert found.note == "other size: grid 7 → 2,000, 282× the instructions"


def test_many_launches_show_their_own_noise() -> None:
    steady = compare_times([1000, 1001, 999, 1000], [990, 991, 989, 990]).time
    assert steady is not None and steady.low > 1.0
    noisy = compare_times([900, 1100, 1000], [850, 1150, 970]).time
    assert noisy is not None and noisy.low < 1.0 < noisy.high


def test_nanoseconds_serve_where_cycles_are_missing_on_one_side() -> None:
    time = compare_times([4e6], [2e6], "ns").time
    assert time is not None and (time.unit, time.speedup) == ("ns", 2.0)
    assert compare_times([4e6], [], "ns").time is None


def test_without_times_nothing_is_claimed() -> None:
    found = compare_times([], [])
    assert (found.verdict, found.time) == (Verdict.UNKNOWN, None)


def test_advice_was_taken_where_the_code_changed_as_it_says() -> None:
    before = measured(build_kernel(BEFORE, advice=ADVICE), 200_000)
    after = measured(
        build_kernel(
            AFTER, advice="code_reordering code 1.2x samples=20/10\n  region kernel 0\n    1 <- 0   long_scoreboard"
        ),
        100_000,
    )
    open_one, taken = compare_kernels(before, after).outcomes
    assert taken.advice.optimizer == "strength_reduction"
    assert taken.fate is AdviceFate.TAKEN
    assert (taken.advice.speedup.estimate, taken.achieved) == (1.1, 2.0)
    assert [(sign.trait, sign.before, sign.after) for sign in taken.signs] == [(Trait.SPECIAL, 1, 0)]
    # Its stalls are fewer, and the load is still right before its use.
    assert open_one.fate is AdviceFate.OPEN
    assert open_one.achieved is None
    assert (open_one.before_ratio, open_one.after_ratio) == (pytest.approx(0.7), pytest.approx(0.4))


def count(kernel: KernelReport, executions: int) -> KernelReport:
    columns = kernel.instructions
    return replace(kernel, instructions=replace(columns, executions=np.full(len(columns), executions)))


def test_other_instructions_elsewhere_are_no_sign_of_advice_about_a_place() -> None:
    rows = """
        k.cu:4  I2F.RP R2, R3            ; wait=10
        k.cu:4  MUFU.RCP R4, R2          ; wait=60
        k.cu:9  DFMA R6, R6, R8, R10     ; wait=10
        k.cu:9  DFMA R6, R6, R8, R12     ; wait=10
    """
    division = "strength_reduction code 1.5x samples=60/60\n  region kernel 0\n    1   wait"
    before = measured(build_kernel(rows, advice=division), 200_000)
    single = rows.replace("DFMA", "FFMA")
    (outcome,) = compare_kernels(before, measured(build_kernel(single), 100_000)).outcomes
    assert (outcome.fate, outcome.achieved) == (AdviceFate.OPEN, None)  # the doubles went, the division did not
    shifted = single.replace("I2F.RP R2, R3 ", "SHF.R.U32 R2, R3, 2 ").replace("MUFU.RCP R4, R2", "MOV R4, R2")
    (outcome,) = compare_kernels(before, measured(build_kernel(shifted), 100_000)).outcomes
    assert outcome.fate is AdviceFate.TAKEN
    assert [sign.trait for sign in outcome.signs] == [Trait.SPECIAL, Trait.CONVERSIONS]


LOAD = "k.cu:4  LDG.E R2, [R4.64]  ; selected=10\n"
LOOP = f"{LOAD}k.cu:5  FFMA R2, R2, R3, R6  ; long_scoreboard=70/60\nk.cu:6  BRA 0x0  ; wait=5"
UNROLL = "loop_unrolling code 1.5x samples=70/60\n  region kernel 0\n    1 <- 0   long_scoreboard"


@pytest.mark.parametrize(
    ("rows", "executions", "fate"),
    [
        (LOOP.replace("LDG.E", "LDG.E.128"), 250, AdviceFate.OPEN),  # four elements a thread, as many fewer turns
        (LOAD * 3 + LOOP, 250, AdviceFate.TAKEN),
        (LOAD.replace("LDG.E", "LDG.E.128") + LOOP, 100, AdviceFate.UNKNOWN),
        (LOOP.replace("k.cu:4", "k.cu:14").replace("k.cu:5  FFMA", "k.cu:15  FADD"), 1000, AdviceFate.UNKNOWN),
    ],
)
def test_a_loop_is_unrolled_where_its_instructions_are_repeated(rows: str, executions: int, fate: AdviceFate) -> None:
    before = measured(count(build_kernel(LOOP, advice=UNROLL), 1000), 200_000)
    after = measured(count(build_kernel(rows), executions), 100_000)
    (outcome,) = compare_kernels(before, after).outcomes
    assert outcome.fate is fate, outcome.signs


def test_twice_the_speed_alone_takes_no_advice() -> None:
    kernel = build_kernel(BEFORE, advice=ADVICE)
    before = measured(kernel, 200_000)
    registers = replace(kernel.configuration, registers_per_thread=(kernel.configuration.registers_per_thread or 0) + 8)
    after = measured(replace(kernel, configuration=registers), 100_000)
    found = compare_kernels(before, after)
    assert found.verdict is Verdict.FASTER
    assert [outcome.fate for outcome in found.outcomes] == [AdviceFate.OPEN, AdviceFate.OPEN]
    assert [difference.trait for difference in found.differences] == [Trait.REGISTERS]


@pytest.mark.parametrize(("stage", "share"), [("gated", None), ("not_matched", 0.0), ("too_small", None)])
def test_stalls_that_nobody_counted_are_not_gone(stage: str, share: float | None) -> None:
    before = measured(build_kernel(BEFORE, advice=ADVICE), 200_000)
    silent = f"silence code_reordering {stage}: DRAM already runs at 90 % of its peak."
    outcome = compare_kernels(before, measured(build_kernel(AFTER, advice=silent), 100_000)).outcomes[0]
    assert (outcome.fate, outcome.after_ratio, outcome.achieved) == (AdviceFate.OPEN, share, None)


def without_samples(kernel: KernelReport) -> KernelReport:
    return replace(kernel, total_samples=0, by_reason={}, lines=(), advice=None)


def test_without_samples_nothing_is_said_of_stalls() -> None:
    sampled = measured(build_kernel(BEFORE, advice=ADVICE), 200_000)
    other = measured(without_samples(build_kernel(AFTER)), 100_000)
    after_lacks, before_lacks, both_lack = (
        compare_kernels(sampled, other),
        compare_kernels(other, sampled),
        compare_kernels(without_samples(sampled), other),
    )
    assert [found.no_stalls for found in (after_lacks, before_lacks, both_lack)] == [
        "stalls unknown: the report after has no samples",
        "stalls unknown: the report before has no samples",
        "stalls unknown: neither report has samples",
    ]
    assert {(found.reasons, found.lines) for found in (after_lacks, before_lacks, both_lack)} == {((), ())}
    assert [outcome.after_ratio for outcome in after_lacks.outcomes] == [None, None]
    assert [outcome.fate for outcome in after_lacks.outcomes] == [AdviceFate.OPEN, AdviceFate.TAKEN]
    assert compare_kernels(sampled, sampled).no_stalls == ""


def test_what_promises_nothing_is_no_advice_to_take() -> None:
    remark = "at_the_limit code 1.0x samples=0/0"
    before = measured(build_kernel(BEFORE, advice=remark), 200_000)
    found = compare_kernels(before, measured(build_kernel(AFTER, advice=remark), 100_000))
    assert (found.outcomes, found.new_advice) == ((), ())


def test_advice_is_open_where_the_code_is_the_same() -> None:
    kernel = measured(build_kernel(BEFORE, advice=ADVICE), 100_000)
    after = measured(replace(build_kernel(BEFORE), advice=None), 100_000)
    assert {outcome.fate for outcome in compare_kernels(kernel, after).outcomes} == {AdviceFate.OPEN}


def test_new_advice_is_listed() -> None:
    found = compare_kernels(build_kernel(AFTER), build_kernel(BEFORE, advice=ADVICE))
    assert [advice.optimizer for advice in found.new_advice] == ["code_reordering", "strength_reduction"]


def test_parts_are_in_time_and_ordered_by_their_change() -> None:
    before = measured(build_kernel(BEFORE), 1000.0, unit="ns")
    after = measured(build_kernel(AFTER), 500.0, unit="ns")
    found = compare_kernels(before, after)
    first = found.reasons[0]
    assert first.name == "long_scoreboard"
    assert (first.before_ns, first.after_ns) == (pytest.approx(700), pytest.approx(200))
    assert sum(change.after_ns or 0 for change in found.reasons) == pytest.approx(500)
    assert (found.lines[0].name, found.lines[0].before_line) == ("k.cu", 5)


def test_lines_are_followed_through_an_edit() -> None:
    old = replace(build_kernel(BEFORE), embedded_sources={"k.cu": "a\nb\nc\nload\nmul\nrcp\n"})
    new = replace(build_kernel(AFTER), embedded_sources={"k.cu": "a\nnew\nb\nc\nload\nmul\nx\n"})
    assert pair_lines(old, new, [("k.cu", 4), ("k.cu", 5), ("k.cu", 6)]) == {
        ("k.cu", 4): 5,
        ("k.cu", 5): 6,
        ("k.cu", 6): 7,
    }
    gone = replace(new, embedded_sources={"k.cu": "a\n"})
    assert pair_lines(old, gone, [("k.cu", 4)]) == {("k.cu", 4): None}


def test_without_sources_lines_keep_their_numbers() -> None:
    assert pair_lines(build_kernel(BEFORE), build_kernel(AFTER), [("k.cu", 4)]) == {("k.cu", 4): 4}


def test_kernels_are_matched_by_name_and_the_rest_listed() -> None:
    one, two, three = (replace(build_kernel(BEFORE), mangled_name=name, name=name) for name in ("a", "b", "c"))
    found = compare_reports(build_report(one, two), build_report(two, three))
    assert [pair.before.mangled_name for pair in found.kernels] == ["b"]
    assert [kernel.mangled_name for kernel in found.only_before] == ["a"]
    assert [kernel.mangled_name for kernel in found.only_after] == ["c"]


def test_a_renamed_template_argument_is_the_same_kernel() -> None:
    old = replace(build_kernel(BEFORE), mangled_name="x1", name="void scale<float>(float*)")
    new = replace(build_kernel(AFTER), mangled_name="x2", name="void scale<double>(double*)")
    found = compare_reports(build_report(old), build_report(new))
    assert [(pair.before.mangled_name, pair.after.mangled_name) for pair in found.kernels] == [("x1", "x2")]
    third = replace(new, mangled_name="x3", name="void scale<int>(int*)")
    assert compare_reports(build_report(old), build_report(new, third)).kernels == ()


def named(name: str, listing: str = BEFORE) -> KernelReport:
    return replace(build_kernel(listing), mangled_name=name, name=name)


def test_kernels_are_paired_as_somebody_says_and_nothing_else_is_compared() -> None:
    report = build_report(named("gemm_naive"), named("gemm_tiled", AFTER), named("gemm"))
    found = compare_reports(report, report, [("naive", "tiled"), ("gemm", "gemm_naive")])
    assert [(pair.before.name, pair.after.name) for pair in found.kernels] == [
        ("gemm", "gemm_naive"),
        ("gemm_naive", "gemm_tiled"),
    ]
    assert (found.only_before, found.only_after, found.likely_pairs) == ((), (), ())


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("gem", "gemm_tiled"), "several kernels before are named 'gem'; there are gemm_naive, gemm_tiled"),
        (("naive", "fast"), "no kernel after is named 'fast'; there are gemm_naive, gemm_tiled"),
    ],
)
def test_a_name_of_no_kernel_or_of_several_is_an_error(pair: tuple[str, str], message: str) -> None:
    report = build_report(named("gemm_naive"), named("gemm_tiled"))
    with pytest.raises(InputError) as caught:
        compare_reports(report, report, [pair])
    assert str(caught.value) == message


def test_kernels_that_look_alike_are_compared_where_somebody_says_so() -> None:
    unlike = replace(
        named("zzz"), instructions=build_kernel("k.cu:1  HMMA.16816.F32 R2, R2, R4, R6  ; wait=1").instructions
    )
    before, after = build_report(named("conv_baseline")), build_report(unlike, named("conv_variant", AFTER))
    asked = compare_reports(before, after)
    assert (asked.kernels, len(asked.only_before), len(asked.only_after)) == ((), 1, 2)
    (pair,) = asked.likely_pairs
    assert (pair.before.name, pair.after.name) == ("conv_baseline", "conv_variant")
    assert "the same number of threads" in pair.why
    told = compare_reports(before, after, accept=lambda _: True)
    assert [(one.before.name, one.after.name) for one in told.kernels] == [("conv_baseline", "conv_variant")]
    assert ([kernel.name for kernel in told.only_after], told.only_before, told.likely_pairs) == (["zzz"], (), ())


def test_kernels_of_other_gpus_are_not_taken_for_each_other() -> None:
    other = named("conv_variant")
    moved = replace(other, device=replace(other.device, name="another GPU"))
    assert compare_reports(build_report(named("conv_base")), build_report(moved)).likely_pairs == ()


def test_code_is_told_by_its_instructions_control_codes_and_launch() -> None:
    kernel = build_kernel(BEFORE)
    columns = kernel.instructions
    others = [
        build_kernel(AFTER),
        replace(kernel, configuration=replace(kernel.configuration, grid=(7, 1, 1))),
        replace(kernel, instructions=replace(columns, stall_cycles=columns.stall_cycles + 1)),
        replace(kernel, instructions=replace(columns, wait_mask=columns.wait_mask + 1)),
        replace(kernel, configuration=replace(kernel.configuration, registers_per_thread=None)),
    ]
    digests = [digest_code(other) for other in (kernel, *others)]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert digest_code(replace(kernel, name="other", total_samples=1)) == digests[0]
    unknown = replace(kernel, instructions=replace(columns, texts=("",) * len(columns)))
    assert digest_code(unknown) is None
    assert compare_kernels(unknown, unknown).verdict is not Verdict.SAME_CODE
