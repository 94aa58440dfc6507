"""Metric that lines show, through the whole server: switched at once, in every answer, and kept for the next session in this workspace alone."""

from pathlib import Path

from tests.editor.views import LISTING
from tests.lsp.conftest import StartClient, make_ancient, write_profile
from tests.lsp.raw_client import RawClient


def open_source(start_client: StartClient, workspace: Path, data: Path) -> tuple[RawClient, str]:
    client = start_client({"GPA_LSP_DATA_DIR": str(data)})
    client.initialize(workspace, initializationOptions={"client": {"heat": True}})
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_heat(uri)
    return client, uri


def test_a_choice_is_shown_everywhere_and_kept_for_the_workspace(
    start_client: StartClient, workspace: Path, tmp_path: Path
) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
    make_ancient(workspace / "saxpy.cu")
    client, uri = open_source(start_client, workspace, tmp_path / "data")
    usual = client.hint_texts(uri)
    client.forget()
    assert client.execute("chooseMetric", "wait", uri) == {"name": "wait", "title": "wait", "lack": ""}
    heat = client.wait_for("gpaLsp/heat", lambda params: params["uri"] == uri)
    assert heat["marks"] and all(mark["text"].endswith(" % wait") for mark in heat["marks"])
    shown = client.hint_texts(uri)
    assert shown != usual and all(label.endswith(" % wait") for label in shown.values())
    client.wait_for("gpaLsp/status", lambda params: params["metric"] == {"name": "wait", "title": "wait"})
    assert client.execute("chooseMetric", "nonsense") is None
    client.shut_down()

    again, uri = open_source(start_client, workspace, tmp_path / "data")
    assert again.hint_texts(uri) == shown
    assert [one["name"] for one in again.execute("listMetrics", uri) if one["isShown"]] == ["wait"]
    assert again.execute("chooseMetric")["name"] == "usual"
    assert again.hint_texts(uri) == usual
