"""Ties between a source and its SASS: lines, their instructions, and colours."""

from itertools import pairwise

from gpa_lsp.editor.sass.links import COLOURS, find_ties
from gpa_lsp.report.model import KernelReport
from tests.editor.sass.documents import LOOP, SOURCES, write_report
from tests.editor.sessions import Session
from tests.editor.views import make_profile

SOURCE_URI = "file:///project/k.cu"


def open_both(report: KernelReport, source: str) -> tuple[Session, str]:
    session = Session(make_profile(report, texts={"k.cu": source}), {"/project/k.cu": source})
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    return session, uri


def test_lines_that_follow_each_other_differ() -> None:
    text = "\n".join(f"MOV R0, RZ  # k.cu:{number} | wait=1" for number in range(1, 30))
    source = "\n".join(f"line {number}" for number in range(1, 30))
    session, uri = open_both(write_report(text), source)
    colours = [tie.colour for tie in find_ties(session, uri, SOURCE_URI)]
    assert len(colours) == 29 and set(colours) == set(range(COLOURS))
    assert all(one != other for one, other in pairwise(colours))


def test_documents_that_are_not_open_are_not_tied() -> None:
    session, uri = open_both(write_report(LOOP), SOURCES["k.cu"] or "")
    assert find_ties(session, uri, "file:///elsewhere.cu") == []
    session.sass.close(uri)
    assert find_ties(session, uri, SOURCE_URI) == []
