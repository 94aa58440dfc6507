"""The screen of a kernel: what stands in it, and that it fits."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import SMALL_SPEEDUP, Standing
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.document.advice_screen import MOST_LINES, build_rows, build_screen, build_screens
from gpa_lsp.document.advice_words import (
    describe_gain,
    describe_limit,
    describe_limit_briefly,
    describe_suggestion,
    find_first_suggestion,
    label_suggestion,
)
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import count_cells, read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.editor.kernel_page import MOST_LENS_CHARS, describe_kernel_briefly
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.prose import Code, number, say
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import analyse
from tests.conftest import ROOT
from tests.editor.views import make_profile
from tests.real_reports import CORPUS, REPORTS, analyse_report
from tests.render.advice_examples import LIMITER, limit, make_advice_example, make_advised, make_silent
from tests.report_builder import build_kernel, build_report

PAIRS = sorted(f"pairs/{path.name}" for path in (CORPUS / "pairs").glob("*.ncu-rep")) if CORPUS else []

WIDTHS = (None, 200, 100, 60, 20)


def show(kernel: KernelReport, width: int | None = None, name: str = "k") -> list[str]:
    return [read_plain(line) for line in write_terminal([build_screen(kernel, name, PlaceNames())], width, indent=0)]


def check_fits(report: Report) -> None:
    names = name_kernels(report.kernels)
    for kernel in report.kernels:
        rows = build_rows(kernel, PlaceNames(), whole="")
        screen = replace(build_screen(kernel, names[kernel.name], PlaceNames()), blocks=[rows])
        for width in WIDTHS:
            lines = list(write_terminal([screen], width, indent=0))
            assert 2 <= len(lines) <= MOST_LINES, kernel.name
        profile = make_profile(kernel, texts={})

        shown = VisibleKernel(name=names[kernel.name], profile=profile, kernel=profile.kernels[0])
        assert 0 < len(describe_kernel_briefly(shown)) <= MOST_LENS_CHARS


def test_rows_stand_in_one_order() -> None:
    labels = [row.label for row in build_rows(make_advised(), PlaceNames()).rows]
    assert labels == ["limit", "cause", "1.", "2.", "3.", "won't help"]


def test_the_limit_is_the_limiters_sentence_and_what_comes_next() -> None:
    assert (
        describe_limit(make_advised())
        == "Limited by DRAM: 71 % of peak (practical maximum 93 %). Next limit: L2, at a 1.90× speedup."
    )
    assert describe_limit_briefly(make_advised()) == "Limited by DRAM: 71 % of peak"


def test_the_first_suggestion_is_quoted_everywhere() -> None:
    kernel = make_advised()
    first = find_first_suggestion(kernel)
    assert first is not None
    assert label_suggestion(first) == "Unroll the loop 1.34–1.44×"
    row = build_rows(kernel, PlaceNames()).rows[2]
    assert row.gain == describe_gain(first)
    assert describe_suggestion(first).startswith(row.text), "the clauses of it that fit two lines"
    assert str(row.text) == "Unroll the loop: load several elements before using the first"


def test_a_suggestion_ends_with_a_clause_and_never_within_brackets() -> None:
    first = find_first_suggestion(make_advised())
    assert first is not None
    long = replace(
        first,
        hint=say("Keep the sums (of rows, columns, and blocks) in registers, and store them once at the end"),
        regions=(),
    )
    shown = [str(describe_suggestion(long, most)) for most in (150, 80, 50, 30)]
    assert shown == [
        "Unroll the loop: keep the sums (of rows, columns, and blocks) in registers, and store them once at the end",
        "Unroll the loop: keep the sums (of rows, columns, and blocks) in registers",
        "Unroll the loop",
        "Unroll the loop",
    ]
    ratio = replace(
        long, hint=say("Load two rows at once, as stalls outnumber issues {ratio} : 1 here", ratio=number(14.8))
    )
    assert str(describe_suggestion(ratio, 76)) == "Unroll the loop: load two rows at once", "no end within 14.8 : 1"


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("Copy the data of a load (`a`, `b`) at line 3 to shared memory before the loop", "Unroll the loop"),
        (
            "Copy rows tile by tile (`float4` or `uint4`). Each thread takes one",
            "Unroll the loop: copy rows tile by tile",
        ),
        ("The 16 FP64 divisions at line 288 of advection_kernels.cu take 24 instructions", "Unroll the loop"),
    ],
)
def test_a_suggestion_that_is_cut_says_what_to_do(hint: str, shown: str) -> None:
    first = find_first_suggestion(make_advised())
    assert first is not None
    assert str(describe_suggestion(replace(first, hint=say("{hint}", hint=hint), regions=()), 60)) == shown


def test_brackets_with_code_at_the_end_of_a_clause_are_left_out() -> None:
    first = find_first_suggestion(make_advised())
    assert first is not None
    hint = say("Copy rows tile by tile ({one} or {other}).", one=Code(text="float4"), other=Code(text="uint4"))
    shown = describe_suggestion(replace(first, hint=hint, regions=()), 45)
    assert str(shown) == "Unroll the loop: copy rows tile by tile"


def test_a_small_gain_is_no_first_suggestion() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first = kernel.advice.advice[0]
    small, outside = (replace(first, standing=one) for one in (Standing.SMALL, Standing.OUTSIDE))
    for advice, found in (((small,), None), ((small, outside), outside), ((outside, small, first), first)):
        assert find_first_suggestion(replace(kernel, advice=replace(kernel.advice, advice=advice))) == found


def test_what_would_not_help_is_said_with_the_reason() -> None:
    assert show(make_advised())[-1] == "  won't help: overlap stores with further work (DRAM would stay as busy)"


def test_a_kernel_without_advice_has_its_limit_and_its_largest_stall() -> None:
    kernel = limit(make_silent(), LIMITER)
    assert [row.label for row in build_rows(kernel, PlaceNames()).rows] == [
        "limit",
        "cause",
        "No advice",
        "won't help",
    ]
    assert any(
        "no known suggestion for stalls on data from global memory at copy.cu:3" in line for line in show(kernel)
    )


def test_the_share_of_the_cause_is_that_of_the_stall_it_names() -> None:
    kernel = build_kernel(
        """
        k.cu:6  LDG.E R2, [R4.64]      ; lg_throttle=33 selected=5
        k.cu:7  FADD R3, R2, R2        ; long_scoreboard=20 selected=5
        k.cu:8  STG.E [R4.64], R3      ; wait=16 selected=21
    """,
        blame="""
        0 <- 0   lg_throttle      memory_throttle
        1 <- 0   long_scoreboard  memory_global R2
        2 <- 0   wait             execution_arithmetic
    """,
    )
    text = next(row.text for row in build_rows(kernel, PlaceNames()).rows if row.label == "cause")
    assert text.startswith("33 % of the samples are stalled on the full queue for global and local memory")
    assert "(69 % with all stalls from this line)" in text
    by_reason = {name: count.all_samples for name, count in kernel.by_reason.items()}
    assert by_reason["lg_throttle"] / kernel.total_samples == pytest.approx(0.33)


def test_the_share_without_causes_is_that_of_the_reason_it_names() -> None:
    kernel = build_kernel("k.cu:6  LDG.E R2, [R4.64]  ; lg_throttle=33 long_scoreboard=36 selected=31")
    text = next(row.text for row in build_rows(kernel, PlaceNames()).rows if row.label == "cause")
    assert text.startswith("36 % of the samples are stalled there on long_scoreboard (69 % with")


def test_the_largest_stall_that_no_suggestion_is_about_is_called_so() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    assert not any("no known suggestion" in line for line in show(kernel))
    first = next(one for one in kernel.advice.advice if one.regions)
    region = first.regions[0]
    elsewhere = replace(region, scope=replace(region.scope, file="other.cu"), hotspots=())
    others = (replace(first, regions=(elsewhere,), relieves_limiter=False),)
    row = build_rows(replace(kernel, advice=replace(kernel.advice, advice=others)), PlaceNames()).rows[1]
    assert (row.label, row.text.endswith("; no known suggestion for it")) == ("cause", True)


def test_small_gains_share_a_line_where_there_is_room() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first, *_ = kernel.advice.advice
    small = [one for one in kernel.advice.advice if one.speedup.estimate < SMALL_SPEEDUP]
    kernel = replace(kernel, advice=replace(kernel.advice, advice=(first, *small)))
    assert any(line.startswith("  small") and "under 1.05× each: " in line for line in show(kernel))
    assert not any(line.startswith("  small") for line in show(make_advised())), "three suggestions are enough"


def test_after_a_debug_build_everything_else_comes_later() -> None:
    build = replace(
        LIMITER, kind=LimiterKind.BUILD, unit="debug", next=None, next_factor=None, sentence=say("Debug build.")
    )
    gains = [row.gain for row in build_rows(limit(make_advised(), build), PlaceNames()).rows]
    assert gains[2:5] == ["1.34–1.44×", "then", "then"]


def test_what_relieves_the_next_limit_comes_later() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first, second, *_ = kernel.advice.advice
    relieving, other = (
        replace(first, relieves_limiter=True),
        replace(second, optimizer="fast_math", relieves_limiter=False),
    )
    advice = replace(kernel.advice, advice=(relieving, other))

    def stand(next_factor: float) -> list[Standing]:
        limiter = replace(LIMITER, next=replace(LIMITER.limits[1], unit="fma"), next_factor=next_factor)
        decided = limit(replace(kernel, advice=advice), limiter).advice
        assert decided is not None
        return [one.standing for one in decided.advice]

    assert stand(1.90) == [Standing.NOW, Standing.NOW]
    assert stand(1.20) == [Standing.NOW, Standing.THEN]


def test_kernels_of_next_to_no_time_are_one_line() -> None:
    report = make_advice_example()
    lines = [
        read_plain(line) for line in write_terminal(build_screens(report, PlaceNames(), max_kernels=None), indent=0)
    ]
    assert sum("under 1 % of the time" in line for line in lines) == 1
    assert lines[-1].startswith("more: gpa-lsp advise --details")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width_where_words_allow(width: int) -> None:
    name = f"{'distribution_' * 3}kernel<…> (PyTorch library kernel)"
    assert all(count_cells(line) <= width for line in show(make_advised(), width, name))


def test_code_gives_way_where_a_line_is_too_long() -> None:
    kernels = analyse([ROOT / "fixtures" / "example.gpa-profile.json"]).kernels
    (kernel,) = (one for one in kernels if "short_def_use" in one.name)
    code = next(row.code for row in build_rows(kernel, PlaceNames()).rows if row.label == "cause")
    assert code
    assert code in "\n".join(show(kernel, 200))
    assert all(count_cells(line) <= 60 for line in show(kernel, 60))


def test_bundled_reports_fit() -> None:
    check_fits(make_advice_example())
    check_fits(analyse([ROOT / "fixtures" / "example.gpa-profile.json"]))
    check_fits(build_report(replace(make_advised(), name="n" * 300)))


@pytest.mark.corpus
@pytest.mark.parametrize("name", [*REPORTS, *PAIRS])
def test_real_reports_fit(name: str) -> None:
    check_fits(analyse_report(name))
