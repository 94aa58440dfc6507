"""Texts of the editor on causes and remedies."""

import pickle
from typing import Any

from lsprotocol.types import Diagnostic

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.kernel_page import describe_kernel
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import measure_kernel
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hover import describe_hover, describe_line_page
from gpa_lsp.editor.source.lenses import list_lenses
from tests.editor.views import SOURCE, make_profile, make_view
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; lg_throttle=20 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=60/50
    saxpy.cu:7                      EXIT                    ; wait=6
"""
BLAME = """
    2 <- 1   long_scoreboard   memory_global R2 8c 1i
    3 <- 2   wait              execution_arithmetic 4c 1i
"""
ADVICE = """
    code_reordering code 1.5x 1.3-1.7 <=2
        title: Move loads earlier
        hint: Load `x[i]` before the loop.
        caveat: Needs a register.
        region loop 0 1.4x to=7
            2 <- 1   long_scoreboard
"""
KERNEL = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_", blame=BLAME, advice=ADVICE)
PROFILE = make_profile(KERNEL, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})


def view(text: str = SOURCE, path: str = "/project/saxpy.cu", **settings: Any) -> DocumentView:
    found = make_view(PROFILE, text, path=path, settings=Settings(**settings))
    assert found is not None
    return found


def hover(document: DocumentView, line: int) -> str:
    found = describe_hover(document, line)
    assert found is not None
    return found


def diagnostics(document: DocumentView) -> dict[int, Diagnostic]:
    return {found.range.start.line + 1: found for found in list_diagnostics(document)}


def test_who_waits_most_is_named_first_and_estimates_stand_apart() -> None:
    blame = """
        2 <- 0   long_scoreboard   memory_global R2 8c 1i
        1 <- 0   long_scoreboard   memory_global R2 8c 1i
    """
    listing = """
        saxpy.cu:5   LDG.E R2, [R4.64]   ; selected=60
        saxpy.cu:5   LDG.E R2, [R2.64]   ; long_scoreboard=30
        saxpy.cu:6   FMUL R2, R2, R3     ; long_scoreboard=10
    """
    kernel = build_kernel(listing, name="saxpy", blame=blame, called_samples={("saxpy.cu", 5): 20.0})
    found = make_view(make_profile(kernel, texts={"saxpy.cu": SOURCE}))
    assert found is not None
    message = diagnostics(found)[5].message
    assert "; it stalls mostly this line itself, and line 6; " in message
    assert message.startswith("40 % of the samples of saxpy are stalls caused here")
    assert message.endswith("about 20 % more in functions called from here (estimate)")


def test_the_diagnostic_stands_on_the_causing_line() -> None:
    found = diagnostics(view())[5]
    assert found.message == (
        "80 % of the samples of saxpy are stalls caused here, mostly long_scoreboard; it stalls line 6.\nMove loads earlier 1.3–1.7×"
    )
    assert found.code == "long_scoreboard"


def test_the_lines_that_suffer_are_related() -> None:
    (related,) = diagnostics(view())[5].related_information
    assert related.message == "60 samples are stalled here (long_scoreboard)"
    assert (related.location.uri, related.location.range.start.line) == ("file:///project/saxpy.cu", 5)


def test_a_line_that_only_suffers_has_none() -> None:
    assert 6 not in diagnostics(view(min_share_ratio=0.2))


def test_issuing_is_no_stall() -> None:
    assert set(diagnostics(view(min_share_ratio=0.01))) == {5, 6}


def test_stalls_without_a_cause_are_diagnosed_where_they_were_taken() -> None:
    kernel = build_kernel(LISTING, name="saxpy", blame="2 <- ?  long_scoreboard no_producer\n3 <- 2  wait")
    document = make_view(make_profile(kernel, texts={"saxpy.cu": SOURCE}))
    assert document is not None
    assert diagnostics(document)[6].message.startswith("60 % ")
    assert diagnostics(document)[6].code == "long_scoreboard"


def test_edits_move_diagnostic_and_related_lines_along() -> None:
    found = diagnostics(view("// new\n" + SOURCE))[6]
    assert found.message.endswith("(measured before your edits)")
    (related,) = found.related_information
    assert related.location.range.start.line == 6


def test_without_blame_the_hot_lines_are_diagnosed() -> None:
    plain = make_profile(build_kernel(LISTING, name="saxpy"), texts={"saxpy.cu": SOURCE})
    document = make_view(plain)
    assert document is not None
    assert [found.range.start.line + 1 for found in list_diagnostics(document)] == [6, 5, 4, 7]


def test_the_hover_of_the_cause_tells_who_waits_for_it() -> None:
    rows = hover(view(), 5).split("  \n")
    assert rows[1:] == [
        "causes **80 %** of the samples of `saxpy`, mostly long_scoreboard",
        "→ stalls line 6: 60 samples · long_scoreboard: data from global memory · R2, 8 cycles later",
        "**suggestion** 1.3–1.7× Move loads earlier: load `x[i]` before the loop",
    ]
    assert "stalled on" not in "".join(rows), "one way only"
    page = describe_line_page(view(), 5) or ""
    assert "**stalls** · 60 samples caused by this line\n\n- line 6: 60 %, 60 samples" in page
    assert "Needs a register." in page


def test_the_hover_of_the_victim_tells_what_it_is_stalled_on() -> None:
    rows = hover(view(), 6).split("  \n")
    assert rows[1:] == [
        "← stalled on line 5: 60 samples · long_scoreboard: data from global memory · R2, 8 cycles later"
    ]
    page = describe_line_page(view(), 6) or ""
    assert "**stalled on** · 60 samples taken here\n\n- line 5: " in page
    assert page.index("- line 5") < page.index("hottest instructions"), "causes are what matters"


def test_places_in_other_files_are_named_by_file() -> None:
    kernel = build_kernel(
        "scale.h:2  LDG.E R2, [R4.64] ; selected=1\nsaxpy.cu:5  FMUL R2, R2, R3 ; long_scoreboard=60",
        name="saxpy",
        blame="1 <- 0  long_scoreboard memory_global R2",
    )
    document = make_view(make_profile(kernel, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"}))
    assert document is not None
    assert "scale.h:2" in hover(document, 5)


def test_lenses_on_the_kernel_and_on_the_loop() -> None:
    titles = [(lens.range.start.line + 1, lens.command.title) for lens in list_lenses(view())]
    (kernel_line, kernel_title), _, (loop_line, loop_title) = titles
    assert kernel_line == 2
    assert kernel_title.endswith("Move loads earlier 1.3–1.7×")
    assert (loop_line, loop_title) == (4, "Move loads earlier 1.36–1.44×")


def test_a_line_nobody_samples_can_still_be_the_cause() -> None:
    kernel = build_kernel(
        "saxpy.cu:4  LDG.E R2, [R4.64] ;\nsaxpy.cu:5  FMUL R2, R2, R3 ; long_scoreboard=60",
        name="saxpy",
        blame="1 <- 0  long_scoreboard memory_global R2",
    )
    document = make_view(make_profile(kernel))
    assert document is not None
    assert list(diagnostics(document)) == [4]
    assert "→ stalls" in hover(document, 4)


def test_unattributed_samples_are_told() -> None:
    kernel = build_kernel(
        "saxpy.cu:5  FMUL R2, R2, R3 ; long_scoreboard=60", name="saxpy", blame="0 <- ?  long_scoreboard no_producer"
    )
    document = make_view(make_profile(kernel))
    assert document is not None
    assert "60 samples without a known cause" in hover(document, 5)


def test_the_page_of_a_kernel_has_its_advice() -> None:
    (anchor,) = view().anchors
    page = describe_kernel(anchor.shown)
    assert "## Advice" in page
    assert "### 1.3–1.7× **Move loads earlier**" in page


def test_what_crosses_the_pipe_can_be_pickled() -> None:
    measured = measure_kernel(KERNEL, 0)
    again = pickle.loads(pickle.dumps(measured))
    assert again.causes == measured.causes
    assert again.remedies == {("saxpy.cu", 4): (0,), ("saxpy.cu", 5): (0,)}
