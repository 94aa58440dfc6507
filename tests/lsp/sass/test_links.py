"""Links between source lines and instructions, both ways, and the commands that use them."""

from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.plain_json import ArgumentsError
from gpa_lsp.report.model import KernelReport
from tests.editor.sass.documents import LOOP, SOURCES, find_line, write_report
from tests.editor.sessions import Session
from tests.editor.views import make_profile
from tests.report_builder import build_kernel

COMMANDS = load_commands()
SOURCE_URI = "file:///project/k.cu"


def open_session(*reports: KernelReport, text: str | None = None, opened: bool = True) -> Session:
    profile = make_profile(*(reports or (write_report(LOOP),)), texts=dict(SOURCES))
    return Session(profile, {"/project/k.cu": text or SOURCES["k.cu"] or ""} if opened else {})


def run(session: Session, name: str, *arguments: Any) -> Any:
    return COMMANDS[f"gpaLsp.{name}"](session, arguments)


def test_no_more_kernels_than_anybody_looks_at() -> None:
    kernels = [build_kernel("k.cu:3  A  ; wait=3", name=f"k{number}") for number in range(30)]
    assert len(run(open_session(*kernels), "findLinked", SOURCE_URI, 2)) == 8


@pytest.mark.parametrize(
    "arguments", [(), (SOURCE_URI,), (SOURCE_URI, "4"), ("file:///other.cu", 1), ("gpa-sass:///x.nvsass", 3)]
)
def test_what_is_no_place_has_no_links(arguments: tuple[Any, ...]) -> None:
    is_place = len(arguments) == 2 and isinstance(arguments[1], int)
    with nullcontext() if is_place else pytest.raises(ArgumentsError):
        assert run(open_session(), "findLinked", *arguments) == []
    session = open_session()
    assert run(session, "openSass", *arguments) is None
    assert (session.locations, len(session.messages)) == ([], 1)


def test_the_sass_of_a_line_is_shown() -> None:
    session = open_session()
    place = run(session, "openSass", SOURCE_URI, 4)
    (location,) = session.locations
    document = session.sass.make(location.uri)
    assert document is not None
    assert location.range.start.line + 1 == find_line(document, "LDG")
    assert place["uri"] == location.uri and place["range"]["start"]["line"] == location.range.start.line


def test_the_line_of_a_kernels_name_opens_its_document() -> None:
    session = open_session()
    assert run(session, "openSass", SOURCE_URI, 1)["range"]["start"] == {"line": 0, "character": 0}


def test_the_sass_of_a_kernel_is_shown() -> None:
    session = open_session()
    report = session.snapshot.visible[0].kernel.report
    place = run(session, "openSass", report.mangled_name)
    assert place == {"uri": session.sass.find_uri(session.snapshot.visible[0]), "range": place["range"]}
    assert run(session, "openSass", place["uri"], 7)["range"]["start"]["line"] == 7


def test_documents_can_be_read() -> None:
    session = open_session()
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    assert run(session, "readDocument", uri) == {"text": document.text, "languageId": "nvsass"}
    for arguments in ((), (SOURCE_URI,), ("gpa-sass:///other.nvsass",)):
        assert run(session, "readDocument", *arguments) is None


def test_kernels_are_listed_longest_first() -> None:
    kernels = [
        build_kernel("k.cu:3  A  ; wait=3", name="quick", durations_ns=[1e3]),
        build_kernel("gone.cu:3  A  ; wait=3", name="slow", durations_ns=[5e6]),
    ]
    slow, quick = run(open_session(*kernels), "listKernels")
    assert (slow["name"], slow["location"], slow["text"]) == ("slow", None, "5.00 ms · 100 % wait")
    assert (quick["mangled"], quick["location"]["uri"]) == ("quick", SOURCE_URI)
    assert quick["sassUri"].startswith("gpa-sass:///quick.")


@pytest.mark.parametrize("changed", ["    MOV R9, RZ\n" * 40 + LOOP, LOOP.replace("FFMA", "FMUL")])
def test_an_old_text_keeps_its_own_links(changed: str) -> None:
    report = write_report(LOOP)
    session = open_session(report)
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    assert changed != LOOP
    newer = open_session(replace(write_report(changed), measured_unix_s=2_000_000_000))
    session.snapshot = newer.snapshot
    session.sass.take(newer.snapshot.visible, session.settings, newer.places)
    session.documents.take(newer.snapshot, session.settings)
    line = find_line(document, "LDG") - 1
    assert [link["primary"]["start"]["line"] for link in run(session, "findLinked", uri, line)] == [4]
    assert run(session, "findLinked", SOURCE_URI, 4) == []  # its rows are not in the text the client has
