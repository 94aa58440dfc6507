"""Texts of the server on earlier measurements."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from gpa_lsp.report.history.model import FILE_NAME
from gpa_lsp.report.history.store import History
from tests.editor.views import LISTING, SOURCE
from tests.lsp.conftest import StartClient, make_ancient, write_profile
from tests.lsp.raw_client import RawClient

NAME = "name saxpy(float*, float*)"
FASTER = LISTING.replace("LDG.E R2", "LDG.E.128 R2").replace("60/50", "20/15")


def start(start_client: StartClient, workspace: Path, **options: Any) -> tuple[RawClient, str]:
    client = start_client(**options)
    return client, client.open_measured(workspace)


def test_a_new_measurement_is_compared_with_the_last_one(start_client: StartClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME, "time 200000", "measured 2000")
    client, uri = start(start_client, workspace)
    assert " since " not in client.titles(uri)[0]
    write_profile(workspace / "saxpy.ncu-rep", FASTER, NAME, "time 100000", "measured 3000", fresh=True)
    title = client.wait_for_lens(uri, " since ")
    assert "−50 % since" in title
    hover = client.read_hover(uri, 5)
    assert "this line: " in hover and "since the last run" in hover
    said = "200 µs → 100 µs over 2 runs; no regression"
    page = client.execute("gpaLsp.showLine", uri, 4)
    assert f"**history** █▁ {said}" in page
    for command, *arguments in (("showPage",), ("openReport", (workspace / "saxpy.ncu-rep").as_uri())):
        answer = client.execute(command, *arguments)
        assert said in read_kernels(Path(unquote(urlparse(str(answer["uri"])).path)).read_text(encoding="utf-8"))


def read_kernels(page: str) -> str:
    """Unpack what a page's script unpacks."""
    packed = re.findall(r'id="packed\d+">([^<]+)<', page)
    return "".join(json.loads(gzip.decompress(base64.b64decode(one)))["html"] for one in packed)


def test_an_older_measurement_read_later_is_the_past_too(start_client: StartClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME, "time 100000", "measured 3000")
    client, uri = start(start_client, workspace)
    older = LISTING.replace("LDG.E R2", "LDG.E.64 R2").replace("60/50", "90/80")
    write_profile(workspace / "older.ncu-rep", older, NAME, "time 400000", "measured 2000", fresh=True)
    assert "−75 % since" in client.wait_for_lens(uri, " since ")


def test_a_baseline_can_be_pinned_and_taken_away(start_client: StartClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME, "time 200000", "measured 2000")
    client, uri = start(start_client, workspace)
    assert client.execute("gpaLsp.pinBaseline") == 1
    client.wait_for_lens(uri, "this is the baseline")
    assert client.execute("gpaLsp.unpinBaseline") == 1
    assert "baseline" not in client.titles(uri)[0]
    assert client.execute("gpaLsp.unpinBaseline") == 0


def test_the_saved_copy_of_a_source_maps_its_lines(start_client: StartClient, workspace: Path, tmp_path: Path) -> None:
    home = {"GPA_LSP_DATA_DIR": str(tmp_path / "data")}
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME, "measured 2000")
    first, _ = start(start_client, workspace, environment=home)
    first.shut_down()
    (workspace / "saxpy.cu").write_text("// one more line\n" + SOURCE)  # edited and saved while nobody looked
    second, uri = start(start_client, workspace, environment=home)
    marked = {item["range"]["start"]["line"] + 1 for item in second.wait_for_diagnostics(uri)}
    assert marked == {5, 6, 7}  # measured on 4, 5 and 6
    assert second.messages() == []
    assert list((tmp_path / "data").iterdir())


def test_two_windows_on_one_workspace_share_their_past(
    start_client: StartClient, workspace: Path, tmp_path: Path
) -> None:
    home = {"GPA_LSP_DATA_DIR": str(tmp_path / "data"), "GPA_LSP_CACHE_DIR": str(tmp_path / "cache")}
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME, "time 200000", "measured 2000")
    windows = [start_client(home) for _ in range(2)]
    for window in windows:
        window.initialize(workspace)
    uris = [window.open(workspace / "saxpy.cu") for window in windows]
    for window, uri in zip(windows, uris, strict=True):
        window.wait_for_diagnostics(uri)
    write_profile(workspace / "saxpy.ncu-rep", FASTER, NAME, "time 100000", "measured 3000", fresh=True)
    for window, uri in zip(windows, uris, strict=True):
        assert "−50 % since" in window.wait_for_lens(uri, " since ")
        assert window.messages() == []
    with History(tmp_path / "data" / FILE_NAME) as history:
        assert len(history.list_runs()) == 2


def test_without_memory_nothing_is_kept(start_client: StartClient, workspace: Path, tmp_path: Path) -> None:
    home = {"GPA_LSP_DATA_DIR": str(tmp_path / "data")}
    make_ancient(workspace / "saxpy.cu")
    client, _ = start(start_client, workspace, environment=home, settings={"history": {"enable": False}})
    client.kill()
    assert not (tmp_path / "data").exists()
