"""Hints in SASS documents: what waits for what, as links."""

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hints import list_hints
from gpa_lsp.editor.sass.library import SassDocument
from gpa_lsp.editor.settings import Settings
from tests.editor.sass.documents import LOOP, URI, find_line, open_document, show_report, write_document
from tests.report_builder import build_kernel

LISTING = "\n".join(f"k.cu:{number}  LDG.E R{number}, [R8.64]  ; long_scoreboard=20" for number in range(5))


def read_hints(document: SassDocument, first: int = 1, last: int = 1000, **settings: object) -> dict[int, str]:
    """Line → hint."""
    hints = list_hints(open_document(document, Settings(**settings)), first, last)
    assert all(hint.position.character == len(document.lines[hint.position.line]) for hint in hints)
    return {hint.position.line + 1: "".join(part.value for part in hint.label) for hint in hints}


def make_document(blame: str, listing: str = LISTING) -> SassDocument:
    return build_document(URI, show_report(build_kernel(listing, blame=blame)))


def test_victims_and_causes_name_each_other() -> None:
    document = write_document(LOOP)
    assert read_hints(document) == {
        find_line(document, "LDG"): "/*0030*/ FFMA waits 80 %",
        find_line(document, "FFMA"): "waits 80 % for /*0020*/ LDG · /*0040*/ ISETP waits 6.0 %",
        find_line(document, "ISETP"): "waits 6.0 % for /*0030*/ FFMA",
    }


def test_hints_are_links() -> None:
    document = write_document(LOOP)
    hints = list_hints(open_document(document), 1, 1000)
    linked = [part.location for hint in hints for part in hint.label if part.location is not None]
    assert {(location.uri, location.range.start.line + 1) for location in linked} >= {
        (URI, find_line(document, "LDG")), (URI, find_line(document, "FFMA")),
    }  # fmt: skip


def test_several_ends_are_counted() -> None:
    document = make_document(
        "1 <- 0 long_scoreboard\n2 <- 0 long_scoreboard=12\n2 <- 1 long_scoreboard=8\n3 <- 0 long_scoreboard=1"
    )
    hints = [text for _, text in sorted(read_hints(document).items())]
    assert hints == [
        "2 wait 33 %, most /*0010*/ LDG",
        "waits 20 % for /*0000*/ LDG · /*0020*/ LDG waits 8.0 %",
        "waits 20 % for /*0000*/ LDG and 1 more",
        "waits 1.0 % for /*0000*/ LDG",
    ]


def test_the_weightier_part_comes_first() -> None:
    document = make_document("1 <- 0 long_scoreboard=2\n2 <- 1 long_scoreboard")
    assert (
        read_hints(document)[int(document.line_of_row[1])] == "/*0020*/ LDG waits 20 % · waits 2.0 % for /*0000*/ LDG"
    )


def test_only_what_is_asked_for_is_answered() -> None:
    document = write_document(LOOP)
    line = find_line(document, "FFMA")
    assert list(read_hints(document, line, line)) == [line]
    assert read_hints(document, 1, 5) == {}
    assert read_hints(document, 5000, 6000) == {}


def test_stalls_that_are_everybodys_own_matter_are_silent() -> None:
    assert read_hints(make_document("")) == {}


def test_small_shares_and_own_stalls_are_silent() -> None:
    listing = "k.cu:1  MOV R1, R2  ; wait=1\nk.cu:2  MOV R2, R1  ; wait=999"
    assert read_hints(make_document("0 <- 1 wait", listing)) == {}
    wanted = "waits 0.1 % for /*0010*/ MOV"
    assert wanted in read_hints(make_document("0 <- 1 wait", listing), min_share_ratio=0.001).values()


def test_the_user_may_not_want_them() -> None:
    assert read_hints(write_document(LOOP), show_inlay_hints=False) == {}


@pytest.mark.parametrize("changes", [{"blame": None}, {"total_samples": 0, "by_reason": {}}])
def test_without_blame_there_are_none(changes: dict[str, object]) -> None:
    report = replace(write_document(LOOP).shown.kernel.report, **changes)  # type: ignore[arg-type]
    assert read_hints(build_document(URI, show_report(report))) == {}
