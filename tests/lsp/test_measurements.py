"""Choice of the measurement that is shown where several reports have one of a kernel."""

from pathlib import Path

from tests.editor.views import LISTING
from tests.lsp.conftest import StartClient, write_profile
from tests.lsp.raw_client import RawClient
from tests.lsp.test_past import FASTER, NAME


def start(start_client: StartClient, workspace: Path) -> tuple[RawClient, str]:
    (workspace / "saxpy.ncu-rep").unlink()
    write_profile(workspace / "first.ncu-rep", LISTING, NAME, "time 400000", "measured 2000")
    write_profile(workspace / "second.ncu-rep", FASTER, NAME, "time 200000", "measured 3000")
    client = start_client()
    uri = client.open_measured(workspace)
    client.wait_for_lens(uri, "shown: second · 1970-01-01 ▾")
    return client, uri


def test_the_newest_is_shown_until_another_one_is_chosen(start_client: StartClient, workspace: Path) -> None:
    client, uri = start(start_client, workspace)
    found = client.execute("listMeasurements", uri, 3)
    assert [(Path(one["profile"]).name, one["isShown"]) for one in found] == [
        ("second.ncu-rep", True),
        ("first.ncu-rep", False),
    ]
    assert found[1]["text"] == "first.ncu-rep · 1970-01-01 · 400 µs"
    mangled, path = found[1]["mangled"], found[1]["profile"]
    assert client.execute("chooseMeasurement", mangled, path) == path
    client.wait_for_lens(uri, "shown: first · 1970-01-01 ▾")
    assert any("400 µs" in title for title in client.titles(uri))
    assert "Shown: first.ncu-rep of 1970-01-01, one of 2 measurements" in client.execute("showKernel", mangled)
    assert [one["isShown"] for one in client.execute("listMeasurements", mangled)] == [False, True]

    write_profile(workspace / "third.ncu-rep", LISTING, NAME, "time 100000", "measured 4000", fresh=True)
    client.wait_for_lens(uri, "shown: third · 1970-01-01 ▾")
    assert len(client.execute("listMeasurements", mangled)) == 3


def test_an_editor_without_a_list_is_asked(start_client: StartClient, workspace: Path) -> None:
    client, uri = start(start_client, workspace)
    mangled = client.execute("listMeasurements", uri, 3)[0]["mangled"]
    client.replies["window/showMessageRequest"] = lambda params: {"title": "first.ncu-rep · 1970-01-01 · 400 µs"}
    assert Path(client.execute("chooseMeasurement", mangled)).name == "first.ncu-rep"
    client.wait_for_lens(uri, "shown: first")
    client.replies["window/showMessageRequest"] = lambda params: None
    assert client.execute("chooseMeasurement", mangled) is None
    client.wait_for_lens(uri, "shown: first")


def test_what_makes_no_sense_changes_nothing(start_client: StartClient, workspace: Path) -> None:
    client, uri = start(start_client, workspace)
    mangled = client.execute("listMeasurements", uri, 3)[0]["mangled"]
    assert client.execute("listMeasurements", "no such kernel") == []
    assert client.execute("chooseMeasurement", "no such kernel") is None
    assert client.execute("chooseMeasurement", mangled, "/no/such/profile") is None
    assert client.execute("pinBaseline", mangled, "/no/such/profile") == 0
    client.wait_for_lens(uri, "shown: second")


def test_any_measurement_can_be_the_baseline(start_client: StartClient, workspace: Path) -> None:
    client, uri = start(start_client, workspace)
    first = client.execute("listMeasurements", uri, 3)[1]
    assert client.execute("pinBaseline", first["mangled"], first["profile"]) == 1
    client.wait_for_lens(uri, "since baseline")


def test_a_copy_is_no_other_measurement(start_client: StartClient, workspace: Path) -> None:
    (workspace / "saxpy.ncu-rep").unlink()
    for name in ("one", "copy"):
        write_profile(workspace / f"{name}.ncu-rep", LISTING, NAME, "time 400000", "measured 2000")
    client = start_client()
    uri = client.open_measured(workspace)
    client.wait_for_lens(uri, "400 µs")
    assert not [title for title in client.titles(uri) if "shown:" in title]
