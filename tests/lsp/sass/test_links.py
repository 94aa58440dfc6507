"""Links between source lines and instructions, both ways, and the commands that use them."""

from contextlib import nullcontext
from pathlib import Path
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


def read_lines(session: Session, link: dict[str, Any]) -> list[tuple[str, str]]:
    """The first and last words of each range of a link to a SASS document: whole lines, and the text of the instruction that matters most."""
    document = session.sass.make(link["uri"])
    assert document is not None

    def cut(start: dict[str, int], end: dict[str, int]) -> tuple[str, str]:
        first, last = document.lines[start["line"]], document.lines[end["line"]]
        assert (first[: start["character"]].strip(), last[end["character"] :].strip()) == ("", "")
        return first[document.instruction_column :].split()[0], last[document.instruction_column :].split()[0]

    primary = link["primary"]
    text = document.lines[primary["start"]["line"]][primary["start"]["character"] : primary["end"]["character"]]
    assert text in document.shown.kernel.report.instructions.texts
    return [*(cut(one["start"], one["end"]) for one in link["ranges"]), (text.split()[0], text.split()[0])]


def test_a_source_line_has_its_instructions() -> None:
    session = open_session()
    (link,) = run(session, "findLinked", SOURCE_URI, 4)
    assert (link["kernel"], link["text"]) == ("kernel", "kernel · 2 instructions · 88 %")
    *ranges, primary = read_lines(session, link)
    assert ranges == [("LDG.E", "FFMA")]  # one stretch, the quote between them included
    assert primary == ("LDG.E", "LDG.E")  # it causes what the other one takes


def test_stretches_apart_are_ranges_of_their_own() -> None:
    session = open_session(
        build_kernel("k.cu:3  A  ; wait=1\nk.cu:4  B\nk.cu:3  C  ; wait=5\nk.cu:3  D", name="kernel", blame="")
    )
    (link,) = run(session, "findLinked", SOURCE_URI, 2)
    *ranges, primary = read_lines(session, link)
    assert ranges == [("A", "A"), ("C", "D")]
    assert primary == ("C", "C")


def test_without_samples_the_first_instruction_counts() -> None:
    session = open_session(build_kernel("k.cu:3  A\nk.cu:3  B", name="kernel"))
    session = open_session(build_kernel("k.cu:3  A  ; \nk.cu:3  B\nk.cu:4  C ; wait=3", name="kernel"))
    (link,) = run(session, "findLinked", SOURCE_URI, 2)
    assert read_lines(session, link)[-1] == ("A", "A")
    assert link["text"] == "kernel · 2 instructions"


def test_every_kernel_has_a_link_the_hottest_first() -> None:
    kernels = [
        build_kernel(f"k.cu:3  A  ; wait={samples}\nk.cu:5  B", name=f"kernel{samples}", mangled_name=f"k{samples}")
        for samples in (3, 9, 5)
    ]
    links = run(open_session(*kernels), "findLinked", SOURCE_URI, 2)
    assert [link["kernel"] for link in links] == ["kernel9", "kernel5", "kernel3"]
    assert len({link["uri"] for link in links}) == 3


def test_no_more_kernels_than_anybody_looks_at() -> None:
    kernels = [build_kernel("k.cu:3  A  ; wait=3", name=f"k{number}") for number in range(30)]
    assert len(run(open_session(*kernels), "findLinked", SOURCE_URI, 2)) == 8


def test_links_follow_edits() -> None:
    text = "// new\n// lines\n" + (SOURCES["k.cu"] or "").replace("while (more)", "while (some)")
    session = open_session(text=text)
    assert len(run(session, "findLinked", SOURCE_URI, 6)) == 1
    assert run(session, "findLinked", SOURCE_URI, 5) == []  # edited away
    assert run(session, "findLinked", SOURCE_URI, 0) == []


def test_an_instruction_has_the_lines_of_its_chain_innermost_first() -> None:
    session = open_session()
    shown = session.snapshot.visible[0]
    uri = session.sass.find_uri(shown)
    document = session.sass.make(uri)
    assert document is not None
    session.documents.open("file:///project/m.h", "/project/m.h", SOURCES["m.h"] or "", 1)
    links = run(session, "findLinked", uri, find_line(document, "LDG") - 1)
    assert [(Path(link["uri"]).name, link["primary"]["start"]["line"]) for link in links] == [("m.h", 6), ("k.cu", 4)]
    assert [link["text"] for link in links] == ["m.h:7: return x[i]; // größer", "line 5: sum += at(x, i);"]
    assert all(link["ranges"] == [link["primary"]] and link["kernel"] == "kernel" for link in links)
    quote = run(session, "findLinked", uri, find_line(document, "m.h:7") - 1)
    assert quote == links
    assert run(session, "findLinked", uri, 0) == run(session, "findLinked", uri, len(document.lines) - 1) == []


def test_sources_that_are_not_here_are_left_out() -> None:
    session = open_session()
    document = session.sass.make(session.sass.find_uri(session.snapshot.visible[0]))
    assert document is not None
    links = run(session, "findLinked", document.uri, find_line(document, "LDG") - 1)
    assert [Path(link["uri"]).name for link in links] == ["k.cu"]


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
