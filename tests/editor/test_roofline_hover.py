"""The roofline in the editor: in hovers of every client, as a picture for those that draw it, in the lens and on the kernel's page."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import LineMark
from gpa_lsp.document.markdown import write_line
from gpa_lsp.editor.kernel_page import describe_kernel, describe_kernel_briefly, describe_verdict
from gpa_lsp.editor.settings import Abilities
from gpa_lsp.editor.source.hover import describe_line_page
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.report.model import KernelReport
from tests.analyses_samples import ANALYSES, ANSWER, ROOFLINE
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.render.advice_examples import LIMITER
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:5      LDG.E R2, [R4.64]       ; selected=4
    saxpy.cu:6      FMUL R2, R2, R3         ; long_scoreboard=60/50
    saxpy.cu:7      EXIT                    ; wait=6
"""
BLAME = "1 <- 0  long_scoreboard  memory_global R2 8c 1i"
MARK = LineMark(
    measure="excess sectors",
    value=3000.0,
    quantity=Quantity.COUNT,
    share_ratio=0.75,
    text="4.0 times the sectors it *needs*",
    file="saxpy.cu",
    line=6,
    function="saxpy",
    pc_offset=16,
)
MEASURED = build_kernel(LISTING, name="saxpy(float*, float*)", blame=BLAME, advice="")
KERNEL = replace(MEASURED, analyses=replace(ANALYSES, answers=(replace(ANSWER, marks=(MARK,)),)))
URI = "file:///project/saxpy.cu"


def open_session(kernel: KernelReport, **abilities: bool) -> Session:
    return Session(
        make_profile(kernel, texts={"saxpy.cu": SOURCE}),
        {"/project/saxpy.cu": SOURCE},
        abilities=Abilities(**abilities),
    )


def page(line: int, kernel: KernelReport = KERNEL, **abilities: bool) -> str:
    view = open_session(kernel, **abilities).view(URI)
    assert view is not None
    found = describe_line_page(view, line)
    assert found is not None
    return found


HOSTILE = "unit\n```\n<img src=x> [click](command:x) *loud*"


def test_names_from_a_report_are_no_markup() -> None:
    roofline = replace(ROOFLINE, roofs=(replace(ROOFLINE.roofs[0], name=HOSTILE),))
    placed = replace(ANALYSES.roofline, whole=roofline, launches=(roofline,))
    text = page(6, replace(KERNEL, analyses=replace(ANALYSES, roofline=placed)))
    head, _, bars = text.partition("```text\nunit")
    assert "\\<img src=x> \\[click\\](command:x) \\*loud\\*" in head
    assert "[click](" not in head
    assert bars.startswith(" ''' <img")


def test_two_lines_and_bars_for_every_client() -> None:
    text = page(6)
    # 1 TB/s of 1.9 TB/s; 1 TFLOP/s at 1 FLOP/B, and the ridge point is at 13.8 TFLOP/s over 1.92 TB/s.
    assert "**Roofline**: DRAM bandwidth at 53 %" in text
    assert "FP32 1.00 TFLOP/s at 1.00 FLOP/B of DRAM; left of the ridge point at 7.20 FLOP/B" in text
    assert "headroom 1.90×; ceilings at the clocks it ran at" in text
    assert "1.00 TB/s of 1.90 TB/s\n```" in text


def test_what_the_analyses_mark_on_the_line_stands_there() -> None:
    assert "- **excess sectors** 3,000 (75 % of the kernel's): 4.0 times the sectors it \\*needs\\*" in page(6)
    assert "excess sectors" not in page(7)


def test_without_a_roofline_a_line_says_nothing_of_it() -> None:
    text = page(6, replace(KERNEL, analyses=replace(ANALYSES, roofline=None)))
    assert "**Roofline**" not in text
    assert "ceilings" not in text


def test_the_page_of_a_kernel_has_all_answers() -> None:
    (shown,) = open_session(KERNEL).snapshot.visible
    page = describe_kernel(shown)
    assert "## Occupancy" in page
    assert "**Roofline**: DRAM bandwidth at 53 %" in page


def test_a_lens_and_a_hover_quote_the_limiter() -> None:
    kernel = replace(KERNEL, limiter=LIMITER)
    (shown,) = open_session(kernel).snapshot.visible
    assert " · Limited by DRAM: 71 % of peak" in describe_kernel_briefly(shown)
    assert write_line(describe_verdict(shown)[0]).startswith(
        "**limit** Limited by DRAM: 71 % of peak (practical maximum 93 %)"
    )
    (unknown,) = open_session(KERNEL).snapshot.visible
    assert "busy" not in describe_kernel_briefly(unknown)
    assert describe_verdict(unknown) == []
