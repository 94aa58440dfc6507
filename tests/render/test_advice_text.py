"""Advice on the terminal: places, limits, widths, and reasons where there is none."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.advice_words import describe_loops
from gpa_lsp.document.layout import Line, Style, count_cells, read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.source_paths import SourceLocator
from tests.render.advice_examples import make_advice_example
from tests.report_builder import build_kernel, build_report


def show(
    *kernels: KernelReport, width: int | None = None, places: PlaceNames | None = None, **limits: int
) -> list[str]:
    return [read_plain(line) for line in render(*kernels, width=width, places=places, **limits)]


def render(
    *kernels: KernelReport, width: int | None, places: PlaceNames | None = None, **limits: int
) -> Iterable[Line]:
    chosen = {"max_kernels": None, "max_advice": None, **limits}
    return list(write_terminal(build_advice(build_report(*kernels), places or PlaceNames(), **chosen), width, indent=0))


LISTING = """
    sq@/lib/m.h:2 < mid@/lib/mid.h:7 < kernel@/src/k.cu:5   LDG.E R2, [R4.64]  ; selected=4
    kernel@/src/k.cu:6                                      FMUL R2, R2, R2    ; long_scoreboard=96/90
"""
ADVICE = "code_reordering 1.5x\nregion line 1\n1 <- 0 long_scoreboard R2 12c 3i"


def test_the_frame_that_is_here_can_be_opened(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.cu").write_text("")
    kernel = build_kernel(LISTING, advice=ADVICE)
    shown = show(kernel, places=PlaceNames(SourceLocator([tmp_path]), tmp_path))
    pair = next(line for line in shown if "→" in line)
    assert pair.split("%", 1)[1].split("→") == [
        "  m.h:2 < … < src/k.cu:5  LDG.E R2, [R4.64]  ",
        " src/k.cu:6  FMUL R2, R2, R2",
    ]


def test_without_files_the_innermost_line_is_named() -> None:
    pair = next(line for line in show(build_kernel(LISTING, advice=ADVICE)) if "→" in line)
    assert "  m.h:2 < … < k.cu:5  LDG.E R2, [R4.64]  → k.cu:6  FMUL" in pair


def test_regions_that_gain_nothing_are_counted() -> None:
    advice = """
        loop_unrolling 1.5x
            region line 0 1.4x samples=4
            region line 1 1.009x samples=3
            region line 1 1.001x samples=1
    """
    shown = [line.strip() for line in show(build_kernel(LISTING, advice=advice))]
    assert sum(line.startswith(("1. ", "2. ")) for line in shown) == 1
    assert "and 2 regions that gain less than 1.01× each" in shown


def test_a_region_does_not_repeat_the_hint() -> None:
    advice = "loop_unrolling 1.5x\nhint: Do this.\nregion line 0\nhere: Do this.\nregion line 1\nhere: Do that."
    shown = [line.strip() for line in show(build_kernel(LISTING, advice=advice))]
    assert (shown.count("Do this."), shown.count("Do that.")) == (1, 1)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit_the_screen_but_for_paths_and_instructions(width: int) -> None:
    kernels = make_advice_example().kernels
    long = [line for line in render(*kernels, width=width) if sum(count_cells(text) for text, _ in line) > width]
    unbreakable = {Style.PATH, Style.CODE}
    assert all(unbreakable & {style for _, style in line} for line in long)
    assert any(sum(count_cells(text) for text, _ in line) == width for line in render(*kernels, width=width))


def test_def_and_use_share_a_line_where_there_is_room() -> None:
    kernel = build_kernel(LISTING, advice=ADVICE)
    narrow, wide = (next(line for line in show(kernel, width=width) if "→" in line) for width in (60, 160))
    assert "LDG" not in narrow
    assert "LDG" in wide


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (build_kernel(durations_ns=()), "this is code without a profile; give a profile"),
        (
            build_kernel(),
            "the report has no stall samples of this kernel; record again with `gpa-lsp profile` (or `ncu --set full --import-source yes`)",
        ),
        (build_kernel(failure="gave up"), "the launch was not measured: gave up"),
        (build_kernel(LISTING), "the report was saved without advice; run gpa-lsp advise on the profile"),
        (build_kernel(LISTING, advice=""), "there is no optimizer"),
        (
            build_kernel(LISTING, advice="silence a no_samples: Nothing.\nsilence b no_samples: Nothing."),
            "a, b: Nothing.",
        ),
    ],
    ids=["code", "no samples", "failed", "old report", "no optimizers", "silent"],
)
def test_there_is_always_a_reason(kernel: KernelReport, reason: str) -> None:
    shown = [line.strip() for line in show(kernel)]
    assert reason in shown[shown.index("No advice") :]


def test_advice_that_shares_samples_names_its_rivals() -> None:
    advice = "a code 1.5x\ngroup: g\ntitle: First\nb parallel 1.2x\ngroup: g\ntitle: Second\nc code 1.1x\ntitle: Third"
    shown = [line.strip() for line in show(build_kernel(LISTING, advice=advice))]
    assert "alternative to: Second (1.18–1.22×)" in shown
    assert "alternative to: First (1.45–1.55×)" in shown
    assert sum(line.startswith("alternative to") for line in shown) == 2


def test_loops_are_named_where_the_region_is_not_that_loop() -> None:
    outer = Scope(kind=ScopeKind.LOOP, function="k", row=1, file="k.cu", line=3)
    inner = replace(outer, row=2, line=5)
    pair = Hotspot(
        def_row=1,
        use_row=2,
        reason="wait",
        category=None,
        samples=1.0,
        latency_samples=1.0,
        def_loop=inner,
        use_loop=inner,
    )
    assert describe_loops(pair, outer) == "in the loop of line 5"
    assert describe_loops(pair, inner) == ""
    assert (
        describe_loops(replace(pair, def_loop=outer), outer) == "def in the loop of line 3, use in the loop of line 5"
    )
    assert describe_loops(replace(pair, use_loop=None), inner) == "def in the loop of line 5, use outside loops"
    assert describe_loops(replace(pair, def_loop=None, use_loop=None), outer) == ""
    assert describe_loops(replace(pair, use_row=None, use_loop=None), outer) == "in the loop of line 5"
    assert describe_loops(replace(pair, def_loop=replace(inner, line=None), use_loop=None), outer).startswith(
        "def in a loop"
    )
