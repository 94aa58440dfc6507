"""Go to definition in sources: off, unless the user wants it."""

from pathlib import Path

from lsprotocol import types
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.protocol.features.navigation import DEFINITION, answer_definition
from gpa_lsp.editor.settings import Abilities, Settings
from tests.editor.views import make_profile, make_view
from tests.lsp.conftest import StartClient, write_profile
from tests.lsp.raw_client import RawClient
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10 wait=10/5
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; wait=12/6 long_scoreboard=60/50
    saxpy.cu:7                      EXIT                    ; selected=1
"""


def go(line: int, blame: str) -> list[int] | None:
    view = make_view(make_profile(build_kernel(LISTING, name="saxpy", blame=blame)))
    assert view is not None
    view = replace(view, places=PlaceFinder(PositionCodec(), lambda local_path: view))
    position = types.Position(line=line - 1, character=3)
    found = answer_definition(view, types.DefinitionParams(types.TextDocumentIdentifier(view.uri), position))
    return found and [location.range.start.line + 1 for location in found]


def test_a_line_goes_to_what_it_waits_for() -> None:
    blame = "2 <- 1   long_scoreboard R2"
    assert go(6, blame) == [5]
    assert go(5, blame) is None  # the cause itself waits for nothing
    assert go(1, blame) is None


def test_causes_of_little_weight_do_not_make_editors_ask() -> None:
    heavy = "2 <- 1   long_scoreboard=50/40 R2"
    assert go(6, f"{heavy}\n2 <- 0   long_scoreboard=4/2 R0") == [5]
    assert go(6, f"{heavy}\n2 <- 0   wait=12/6 R0") == [5, 4]


def test_it_is_offered_when_the_user_wants_it() -> None:
    assert DEFINITION.serves_source(Settings(), Abilities()) is False
    assert DEFINITION.serves_source(Settings(serves_definition=True), Abilities()) is True


def list_registered(client: RawClient) -> dict[str, list[dict[str, str]]]:
    """Method → the documents it was registered for."""
    return {
        one["method"]: one["registerOptions"]["documentSelector"]
        for request in client.requests
        if request["method"] == "client/registerCapability"
        for one in request["params"]["registrations"]
    }


def test_the_setting_registers_it_for_sources_and_takes_it_back(start_client: StartClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, "name saxpy")
    client = start_client()
    uri = client.open_measured(workspace)
    client.wait_until_read()
    assert list_registered(client)["textDocument/definition"] == [{"scheme": "gpa-sass"}]
    assert client.ask_at("definition", uri, 6) is None
    client.configure(definition={"enable": True})
    client.wait_for_request("client/unregisterCapability")
    assert client.ask_at("definition", uri, 6) is None  # a listing has no blame; it is asked now, and knows nothing
