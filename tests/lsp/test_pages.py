"""The report's page from the editor: written beside nothing of the user's, shown by whoever can, and its places lead back."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from lsprotocol.types import ErrorCodes

from tests.editor.views import SOURCE
from tests.lsp.conftest import StartClient, make_workspace, start_clients
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient


def ready(client: RawClient, workspace: Path, **more: object) -> str:
    client.initialize(workspace, **more)
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)
    return uri


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """A client for all tests that ask what has no answer."""
    with start_clients() as start:
        client = start()
        ready(client, make_workspace(tmp_path_factory.mktemp("lent")))
        yield client


def list_kernels(client: RawClient) -> list[dict[str, object]]:
    found = client.execute("gpaLsp.listKernels")
    assert isinstance(found, list)
    return found


def read_page(answer: object) -> str:
    assert isinstance(answer, dict)
    return Path(unquote(urlparse(str(answer["uri"])).path)).read_text(encoding="utf-8")


def test_a_client_that_shows_pages_gets_the_file_and_nothing_is_opened(
    start_client: StartClient, workspace: Path
) -> None:
    client = start_client()
    ready(client, workspace, initializationOptions={"client": {"pages": True}})
    (kernel,) = list_kernels(client)
    answer = client.execute("gpaLsp.showPage", kernel["mangled"])
    page = read_page(answer)
    assert "saxpy" in page
    assert re.search(r"<html[^>]* lang=", page)
    assert isinstance(answer, dict)
    assert answer["place"] == "#k0"
    assert [request for request in client.requests if request["method"] == "window/showDocument"] == []
    assert client.shut_down() == 0
    assert not Path(unquote(urlparse(str(answer["uri"])).path)).exists()  # the session's folder went with it


def test_other_clients_are_asked_to_open_a_browser(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    ready(client, workspace)
    answer = client.execute("gpaLsp.showPage")
    shown = client.wait_for_request("window/showDocument")
    assert isinstance(answer, dict)
    assert (shown["uri"], shown["external"]) == (answer["uri"], True)
    assert answer["place"] == ""


def test_a_client_that_opens_nothing_is_told_the_file(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    ready(client, workspace, capabilities={**ALL_CAPABILITIES, "window": {}})
    answer = client.execute("gpaLsp.showPage")
    assert isinstance(answer, dict)
    client.wait_for("window/showMessage", lambda params: "the report is in" in params["message"])


def test_the_page_opens_at_the_kernel_of_a_line(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    uri = ready(client, workspace, initializationOptions={"client": {"pages": True}})
    answer = client.execute("gpaLsp.showPage", uri, 4)
    assert isinstance(answer, dict)
    assert answer["place"] == "#k0"


def test_a_profile_is_opened_as_its_page(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    uri = ready(client, workspace, initializationOptions={"client": {"pages": True}})
    profile = workspace / "saxpy.ncu-rep"
    answer = client.execute("gpaLsp.openReport", profile.as_uri(), uri, 4)
    assert "saxpy" in read_page(answer)
    assert isinstance(answer, dict)
    assert answer["place"] == "#k0"
    broken = workspace / "broken.ncu-rep"
    broken.write_bytes(b"no report")
    failed = client.execute("gpaLsp.openReport", broken.as_uri())
    assert isinstance(failed, dict)
    assert "broken.ncu-rep" in failed["failure"]
    assert client.execute("gpaLsp.openReport", "untitled:x") is None


def test_without_a_profile_it_says_so(start_client: StartClient, tmp_path: Path) -> None:
    client = start_client()
    client.initialize(tmp_path)
    assert client.execute("gpaLsp.showPage") is None
    client.wait_for("window/showMessage", lambda params: "nothing to show" in params["message"])


def test_a_place_of_the_page_leads_to_the_line(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    uri = ready(client, workspace)
    location = client.execute("gpaLsp.openPlace", "saxpy.cu", 5)
    assert isinstance(location, dict)
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
    lent.wait_for("window/showMessage", lambda params: "not on this machine" in params["message"])


def test_the_page_holds_the_source_that_was_measured(start_client: StartClient, workspace: Path) -> None:
    """Source in the page is packed; what is unpacked has its lines."""
    client = start_client()
    ready(client, workspace, initializationOptions={"client": {"pages": True}})
    page = read_page(client.execute("gpaLsp.showPage"))
    packed = re.findall(r'<script type="text/plain" id="packed\d+">([^<]+)</script>', page)
    texts = [gzip.decompress(base64.b64decode(one)).decode() for one in packed]
    line = SOURCE.splitlines()[4].strip()
    assert any(json.dumps(line)[1:-1] in text for text in texts), line
