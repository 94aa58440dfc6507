"""The report's page from the editor: written beside nothing of the user's, shown by whoever can, and its places lead back."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from lsprotocol.types import ErrorCodes

from tests.editor.views import SOURCE
from tests.lsp.conftest import StartClient, make_workspace, start_clients
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """A client for all tests that ask what has no answer."""
    with start_clients() as start:
        client = start()
        client.open_measured(make_workspace(tmp_path_factory.mktemp("lent")))
        yield client


@pytest.fixture
def client(start_client: StartClient) -> RawClient:
    return start_client()


def read_page(answer: Any) -> str:
    return Path(unquote(urlparse(str(answer["uri"])).path)).read_text(encoding="utf-8")


def test_a_client_that_shows_pages_gets_the_file_and_nothing_is_opened(client: RawClient, workspace: Path) -> None:
    client.open_measured(workspace, initializationOptions={"client": {"pages": True}})
    (kernel,) = client.execute("listKernels")
    answer = client.execute("gpaLsp.showPage", kernel["mangled"])
    page = read_page(answer)
    assert "saxpy" in page
    assert re.search(r"<html[^>]* lang=", page)
    assert answer["place"] == "#k0"
    assert [request for request in client.requests if request["method"] == "window/showDocument"] == []
    assert client.shut_down() == 0
    assert not Path(unquote(urlparse(str(answer["uri"])).path)).exists()  # the session's folder went with it


def test_other_clients_are_asked_to_open_a_browser(client: RawClient, workspace: Path) -> None:
    client.open_measured(workspace)
    answer = client.execute("gpaLsp.showPage")
    shown = client.wait_for_request("window/showDocument")
    assert (shown["uri"], shown["external"]) == (answer["uri"], True)
    assert answer["place"] == ""


def test_a_client_that_opens_nothing_is_told_the_file(client: RawClient, workspace: Path) -> None:
    client.open_measured(workspace, capabilities={**ALL_CAPABILITIES, "window": {}})
    client.execute("gpaLsp.showPage")
    client.wait_for_message("the report is in")


def test_the_page_opens_at_the_kernel_of_a_line(client: RawClient, workspace: Path) -> None:
    uri = client.open_measured(workspace, initializationOptions={"client": {"pages": True}})
    answer = client.execute("gpaLsp.showPage", uri, 4)
    assert answer["place"] == "#k0"


def test_a_profile_is_opened_as_its_page(client: RawClient, workspace: Path) -> None:
    uri = client.open_measured(workspace, initializationOptions={"client": {"pages": True}})
    profile = workspace / "saxpy.ncu-rep"
    answer = client.execute("gpaLsp.openReport", profile.as_uri(), uri, 4)
    assert "saxpy" in read_page(answer)
    assert answer["place"] == "#k0"
    broken = workspace / "broken.ncu-rep"
    broken.write_bytes(b"no report")
    failed = client.execute("gpaLsp.openReport", broken.as_uri())
    assert "broken.ncu-rep" in failed["failure"]
    assert client.execute("gpaLsp.openReport", "untitled:x") is None


def test_without_a_profile_it_says_so(client: RawClient, tmp_path: Path) -> None:
    client.initialize(tmp_path)
    assert client.execute("gpaLsp.showPage") is None
    client.wait_for_message("nothing to show")


def test_a_place_of_the_page_leads_to_the_line(client: RawClient, workspace: Path) -> None:
    uri = client.open_measured(workspace)
    location = client.execute("gpaLsp.openPlace", "saxpy.cu", 5)
    assert (location["uri"], location["range"]["start"]["line"]) == (uri, 4)
    shown = client.wait_for_request("window/showDocument")
    assert (shown["uri"], shown["selection"]["start"]["line"]) == (uri, 4)


@pytest.mark.parametrize(
    "arguments",
    [(), ("saxpy.cu",), ("saxpy.cu", "5"), ("saxpy.cu", True), ("saxpy.cu", 0), ("saxpy.cu", 1 << 40), (5, 5)],
)
def test_what_is_no_place_is_an_error(lent: RawClient, arguments: tuple[object, ...]) -> None:
    params = {"command": "gpaLsp.openPlace", "arguments": arguments}
    assert lent.request_whole("workspace/executeCommand", params)["error"]["code"] == ErrorCodes.InvalidParams.value
    assert [request for request in lent.requests if request["method"] == "window/showDocument"] == []


@pytest.mark.parametrize("file", ["/etc/passwd", "../../etc/passwd", "other.cu"])
def test_only_files_of_profiles_are_opened(lent: RawClient, file: str) -> None:
    lent.forget()
    assert lent.execute("gpaLsp.openPlace", file, 1) is None
    lent.wait_for_message("not on this machine")


def test_the_page_holds_the_source_that_was_measured(client: RawClient, workspace: Path) -> None:
    """Source in the page is packed; what is unpacked has its lines."""
    client.open_measured(workspace, initializationOptions={"client": {"pages": True}})
    page = read_page(client.execute("gpaLsp.showPage"))
    packed = re.findall(r'<script type="text/plain" id="packed\d+">([^<]+)</script>', page)
    texts = [gzip.decompress(base64.b64decode(one)).decode() for one in packed]
    line = SOURCE.splitlines()[4].strip()
    assert any(json.dumps(line)[1:-1] in text for text in texts), line
