"""The hottest instructions, and the command that lists lines; which those are stands in ``tests/editor/scenes/spots.md``."""

from gpa_lsp.editor.hot_spots import list_hot_spots
from gpa_lsp.editor.protocol.commands import load_commands
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10 wait=10
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; lg_throttle=6 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=60
    saxpy.cu:7                      STG.E [R4.64], R2       ; wait=10
"""
BLAME = "2 <- 1  long_scoreboard memory_global R2"
URI = "file:///project/saxpy.cu"


PROFILE = make_profile(
    build_kernel(LISTING, name="saxpy(float*)", blame=BLAME),
    texts={"saxpy.cu": SOURCE, "scale.h": "a\nreturn 2 * x;\n"},
)
OPENED = {"/project/saxpy.cu": SOURCE, "/project/scale.h": "a\nreturn 2 * x;\n"}


def test_in_a_sass_document_they_are_its_instructions() -> None:
    session = Session(PROFILE, OPENED)
    uri = session.sass.find_uri(session.snapshot.visible[0])
    assert list_hot_spots(session, uri) == []  # its text is not open
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    found = list_hot_spots(session, uri)
    assert [(document.find_row(mark.line), mark.kind.value) for _, mark in found] == [
        (1, "causes"), (2, "suffers"), (0, "suffers"), (3, "suffers"),
    ]  # fmt: skip
    assert found[1][1].text.startswith("60 % long_scoreboard · /*") and found[1][1].text.endswith("*/ FMUL")
    assert found[0][1].text.startswith("causes 60 % · /*")
    span = found[0][0].range
    text = document.lines[span.start.line][span.start.character : span.end.character]
    assert text == "LDG.E R2, [R4.64]"


def test_the_command_answers_with_plain_json() -> None:
    session = Session(PROFILE, OPENED)
    command = load_commands()["gpaLsp.listHotSpots"]
    first = command(session, (URI,))[0]
    assert {key: first[key] for key in ("uri", "kernel", "kind")} == {"uri": URI, "kernel": "saxpy", "kind": "causes"}
    assert round(first["ratio"], 2) == 0.66
    assert len(command(session, ())) == 5
    assert len(command(session, (None,))) == 5
    closed = Session(PROFILE, {"/project/saxpy.cu": SOURCE})
    assert [one["uri"] for one in command(closed, (URI,))] == [URI] * 4, "the header is not open"
