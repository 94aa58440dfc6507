"""Ties between a source and its SASS: lines, their instructions, and colours."""

from itertools import pairwise

from gpa_lsp.editor.sass.links import COLOURS, find_ties
from gpa_lsp.report.model import KernelReport
from tests.editor.sass.documents import LOOP, SOURCES, write_report
from tests.editor.sessions import Session
from tests.editor.views import make_profile

SOURCE_URI = "file:///project/k.cu"


def open_both(report: KernelReport, source: str) -> tuple[Session, str]:
    session = Session(make_profile(report, texts=dict(SOURCES)), {"/project/k.cu": source})
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    return session, uri


def read_ties(session: Session, uri: str) -> list[tuple[int, int, list[list[str]]]]:
    """Line, colour, and the opcodes in each stretch."""
    document = session.sass.make(uri)
    assert document is not None
    texts = document.shown.kernel.report.instructions.texts
    found = []
    for tie in find_ties(session, uri, SOURCE_URI):
        rows = [[document.find_row(line) for line in range(first, last + 1)] for first, last in tie.stretches]
        found.append(
            (tie.line, tie.colour, [[texts[row].split()[0] for row in own if row is not None] for own in rows])
        )
    return found


def test_every_line_has_its_instructions_and_a_colour() -> None:
    session, uri = open_both(write_report(LOOP), SOURCES["k.cu"] or "")
    assert read_ties(session, uri) == [
        (3, 0, [["MOV", "S2R"]]),
        (4, 1, [["ISETP.LT.AND", "@P0"]]),
        (5, 2, [["LDG.E", "FFMA"]]),  # the load was inlined from m.h
        (6, 3, [["STG.E"]]),
        (7, 4, [["EXIT"]]),
    ]


def test_ties_follow_the_text_as_it_is_now() -> None:
    text = (SOURCES["k.cu"] or "").replace("  while (more)\n", "  while (some)\n")
    session, uri = open_both(write_report(LOOP), f"// new\n{text}")
    assert [line for line, *_ in read_ties(session, uri)] == [4, 6, 7, 8], "the line that was edited has none"


def test_code_apart_is_stretches_apart() -> None:
    text = "A  # k.cu:3 | wait=1\nB  # k.cu:4\nC  # k.cu:3\nD  # k.cu:3\nE"
    session, uri = open_both(write_report(text), SOURCES["k.cu"] or "")
    assert [stretches for _, _, stretches in read_ties(session, uri)] == [[["A"], ["C", "D"]], [["B"]]]


def test_lines_that_follow_each_other_differ() -> None:
    text = "\n".join(f"MOV R0, RZ  # k.cu:{number} | wait=1" for number in range(1, 30))
    source = "\n".join(f"line {number}" for number in range(1, 30))
    session = Session(make_profile(write_report(text), texts={"k.cu": source}), {"/project/k.cu": source})
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    colours = [colour for _, colour, _ in read_ties(session, uri)]
    assert len(colours) == 29 and set(colours) == set(range(COLOURS))
    assert all(one != other for one, other in pairwise(colours))


def test_documents_that_are_not_open_are_not_tied() -> None:
    session, uri = open_both(write_report(LOOP), SOURCES["k.cu"] or "")
    assert find_ties(session, uri, "file:///elsewhere.cu") == []
    session.sass.close(uri)
    assert find_ties(session, uri, SOURCE_URI) == []
