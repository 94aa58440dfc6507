"""The real server process on the wire; its profiles are listings (see ``listing_pipeline``)."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.collect.processes import find_children, is_alive
from tests.editor.views import LISTING, SOURCE
from tests.lsp.conftest import LISTINGS, StartClient, let_look_twice, make_ancient, make_old, write_profile
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import LIMIT_S, wait_until


def ready(client: RawClient, workspace: Path, **more: Any) -> str:
    client.settings = {**more.pop("settings", {})}
    return client.open_measured(workspace, **more)


@pytest.fixture
def client(start_client: StartClient) -> RawClient:
    return start_client()


def test_initialize_offers_what_there_is(client: RawClient, workspace: Path) -> None:
    capabilities = client.initialize(workspace)["capabilities"]
    assert capabilities["hoverProvider"] is True
    assert capabilities["codeLensProvider"] == {"resolveProvider": False}
    assert capabilities["inlayHintProvider"] == {"resolveProvider": False}
    assert set(capabilities["executeCommandProvider"]["commands"]) >= {"gpaLsp.reload", "gpaLsp.showKernel"}
    for owned_by_others in ("definitionProvider", "referencesProvider", "semanticTokensProvider", "renameProvider"):
        assert owned_by_others not in capabilities
    assert capabilities["workspace"]["textDocumentContent"] == {"schemes": ["gpa-sass"]}
    assert client.shut_down() == 0


def test_a_measured_file_is_served(client: RawClient, workspace: Path) -> None:
    uri = ready(client, workspace)
    diagnostics = client.wait_for_diagnostics(uri)
    assert [(d["range"]["start"]["line"] + 1, d["code"], d["severity"]) for d in diagnostics] == [
        (5, "long_scoreboard", 3), (4, "wait", 3), (6, "wait", 3),
    ]  # fmt: skip
    assert client.hints(uri) == {4: "20 % samples, wait", 5: "64 % samples, long_scoreboard", 6: "15 % samples, wait"}
    assert client.lenses(uri) == [(2, "saxpy · 6.19 ms · 63 % long_scoreboard"), (2, "SASS")]
    answer = client.hover(uri, 5)
    assert "**64 % (±9.8)** of the samples of `saxpy`" in answer["contents"]["value"]
    assert answer["range"]["start"] == {"line": 4, "character": 4}
    assert client.hover(uri, 1) is None
    client.wait_for_request("workspace/inlayHint/refresh")
    client.wait_for_request("workspace/codeLens/refresh")
    client.wait_for_request("window/workDoneProgress/create")
    client.wait_until_read()
    assert client.messages() == []
    assert client.shut_down() == 0


def test_other_files_are_left_alone(client: RawClient, workspace: Path) -> None:
    (workspace / "other.cu").write_text(SOURCE)
    ready(client, workspace)
    client.wait_until_read()
    client.forget()
    uri = client.open(workspace / "other.cu")
    assert client.hover(uri, 5) is None
    assert (client.hints(uri), client.lenses(uri)) == ({}, [])
    untitled = "untitled:Untitled-1"
    client.open_text(untitled, "x", "cuda")
    assert client.hover(untitled, 1) is None
    assert client.notifications == []


def make_fresh(workspace: Path) -> None:
    """Make a workspace fresh, as a clone leaves it: the source is newer than the measurement, and the profile has no copy."""
    os.utime(workspace / "saxpy.cu")


def test_a_fresh_clone_shows_numbers_and_marks_them(client: RawClient, workspace: Path) -> None:
    make_fresh(workspace)
    client.initialize(workspace)
    uri = client.open(workspace / "saxpy.cu")
    message = client.wait_for_message()
    assert "saxpy.cu was saved after it was measured: its" in message and "marked with ?" in message
    assert client.wait_for_diagnostics(uri)
    assert client.hints(uri) == {
        4: "20 % samples, wait ?",
        5: "64 % samples, long_scoreboard ?",
        6: "15 % samples, wait ?",
    }
    assert "unverified" in str(client.hover(uri, 5)) and "source unverified" in str(client.lenses(uri)[0])
    assert client.execute("gpaLsp.chooseSources", "hide") == "hide"
    assert client.hints(uri) == {} and client.hover(uri, 5) is None
    assert "not this text was measured" in str(client.lenses(uri)[0])
    assert len(client.messages()) == 1
    client.configure(unverifiedLines="all")
    assert client.wait_for_diagnostics(uri)


def test_who_shows_questions_is_asked_once_about_unverified_sources(start_client: StartClient, workspace: Path) -> None:
    make_fresh(workspace)
    shared = {"GPA_LSP_DATA_DIR": str(workspace.parent / "data")}
    client = RawClient(environment={**LISTINGS, **shared})
    client.replies["window/showMessageRequest"] = lambda params: {"title": "Hide"}
    client.initialize(workspace, initializationOptions={"client": {"questions": True}})
    uri = client.open(workspace / "saxpy.cu")
    asked = client.wait_for_request("window/showMessageRequest")
    assert [action["title"] for action in asked["actions"]] == ["Show", "Hide", "Map sources…"]
    client.wait_until_read()
    wait_until(lambda: client.hints(uri) == {}, lambda: client.hints(uri))
    assert client.shut_down() == 0
    again = RawClient(environment={**LISTINGS, **shared})
    again.initialize(workspace, initializationOptions={"client": {"questions": True}})
    uri = again.open(workspace / "saxpy.cu")
    again.wait_until_read()
    assert again.hints(uri) == {} and again.lenses(uri)
    assert not [one for one in again.requests if one["method"] == "window/showMessageRequest"]
    assert again.shut_down() == 0


def test_a_client_that_cannot_be_told_to_ask_again_waits_for_its_first_hints(
    client: RawClient, workspace: Path
) -> None:
    deaf = {**ALL_CAPABILITIES, "workspace": {"configuration": True}}
    client.initialize(workspace, capabilities=deaf)
    uri = client.open(workspace / "saxpy.cu")
    asked_s = time.monotonic()
    while not (hints := client.hints(uri)):
        assert time.monotonic() - asked_s > 11, (
            "only a machine that is too busy to read a profile for so long gets none"
        )
        asked_s = time.monotonic()
    assert hints == {4: "20 % samples, wait", 5: "64 % samples, long_scoreboard", 6: "15 % samples, wait"}
    assert client.hints(client.open(workspace / "other.cu", "int x;")) == {}, "nothing is left to wait for"


def test_columns_are_counted_as_agreed(client: RawClient, workspace: Path) -> None:
    text = SOURCE.replace("2 * x[i] + y[i];", "2 * x[i] + y[i];  // ×2 – 𝛼😀")
    (workspace / "saxpy.cu").write_text(text)
    make_ancient(workspace / "saxpy.cu")
    uri = ready(client, workspace, capabilities={**ALL_CAPABILITIES, "general": {"positionEncodings": ["utf-8"]}})
    line = text.splitlines()[4]
    (first, *_) = client.wait_for_diagnostics(uri)
    assert first["range"]["end"] == {"line": 4, "character": len(line.encode())}


def test_results_follow_edits(client: RawClient, workspace: Path) -> None:
    uri = ready(client, workspace)
    client.forget()
    client.change(uri, 2, "// one\n// two\n" + SOURCE.replace("threadIdx.x", "threadIdx.y"))
    assert client.hints(uri) == {
        6: "edited since",
        7: "64 % samples, long_scoreboard",
        8: "15 % samples, wait",
    }
    assert "before your edits" in client.hover(uri, 7)["contents"]["value"]
    moved = client.wait_for_diagnostics(uri)
    assert [d["range"]["start"]["line"] + 1 for d in moved] == [7, 8]
    assert client.lenses(uri)[0][0] == 4
    client.forget()
    client.change(uri, 3, SOURCE)
    assert [d["range"]["start"]["line"] + 1 for d in client.wait_for_diagnostics(uri)] == [5, 4, 6]


def test_closing_takes_diagnostics_back_and_opening_brings_them(client: RawClient, workspace: Path) -> None:
    uri = ready(client, workspace)
    client.forget()
    client.close(uri)
    client.wait_for_diagnostics(uri, lambda items: items == [])
    assert client.hover(uri, 5) is None
    client.open(workspace / "saxpy.cu")
    assert len(client.wait_for_diagnostics(uri)) == 3


def test_profiles_are_watched(client: RawClient, workspace: Path) -> None:
    profile = workspace / "saxpy.ncu-rep"
    profile.unlink()
    client.initialize(workspace)
    uri = client.open(workspace / "saxpy.cu")
    assert client.hints(uri) == {}
    write_profile(profile, LISTING, fresh=True)
    assert len(client.wait_for_diagnostics(uri)) == 3
    client.forget()
    write_profile(profile, "saxpy.cu:4  X  ; barrier=9", fresh=True)
    client.wait_for_diagnostics(uri, lambda items: [item["code"] for item in items] == ["barrier"])
    client.forget()
    profile.unlink()
    client.wait_for_diagnostics(uri, lambda items: items == [])
    assert (client.hints(uri), client.messages()) == ({}, [])


def test_the_newest_measurement_wins(client: RawClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", "saxpy.cu:4  X  ; wait=1", "name saxpy", "measured 2000")
    write_profile(workspace / "older.ncu-rep", "saxpy.cu:5  X  ; wait=1", "name saxpy", "measured 1000")
    uri = ready(client, workspace)
    client.wait_until_read()
    assert client.hints(uri) == {4: "100 % samples, wait"}
    client.forget()
    (workspace / "saxpy.ncu-rep").unlink()
    client.wait_for_diagnostics(uri, lambda items: [item["range"]["start"]["line"] for item in items] == [4])


def test_a_profile_being_written_is_waited_for_without_a_word(start_client: StartClient, workspace: Path) -> None:
    profile = workspace / "saxpy.ncu-rep"
    profile.unlink()
    client = start_client(module="tests.lsp.patient_server")
    client.initialize(workspace)
    uri = client.open(workspace / "saxpy.cu")
    profile.write_text("#name saxpy\n")
    client.wait_until_read()
    assert {notification["method"] for notification in client.notifications} <= {"$/progress", "gpaLsp/status"}
    write_profile(profile, LISTING, fresh=True)
    assert len(client.wait_for_diagnostics(uri)) == 3
    assert client.messages() == []


def test_a_broken_profile_is_named_once_and_the_others_are_read(client: RawClient, workspace: Path) -> None:
    (workspace / "broken.ncu-rep").write_text("#name x\n")
    make_old(workspace / "broken.ncu-rep")
    write_profile(workspace / "bug.ncu-rep", "", "bug")
    ready(client, workspace)
    client.wait_for_message("broken.ncu-rep: the file ends too early")
    client.wait_for_message("ZeroDivisionError: on purpose")
    let_look_twice(client, workspace)
    assert len(client.messages()) == 2


def test_a_profile_that_kills_its_reader_is_set_aside(client: RawClient, workspace: Path) -> None:
    write_profile(workspace / "crash.ncu-rep", "", "crash")
    os.utime(workspace / "saxpy.ncu-rep", (1_000_000, 1_000_000))
    ready(client, workspace)
    client.wait_until_read()
    (message,) = client.messages()
    assert "crash.ncu-rep" in message and "ended with status 9" in message


def test_settings_come_from_everywhere(client: RawClient, workspace: Path) -> None:
    uri = ready(
        client, workspace, initializationOptions={"minShare": 50}, settings={"diagnostics": {"severity": "hint"}}
    )
    assert [(d["code"], d["severity"]) for d in client.wait_for_diagnostics(uri)] == [("long_scoreboard", 4)]
    client.configure(minShare=18, static={"enable": "?"})
    client.wait_for_diagnostics(uri, lambda items: len(items) == 2)
    (message,) = client.messages()
    assert "gpaLsp.static.enable: ? is not true or false" in message
    client.settings = {"inlayHints": {"enable": False}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    wait_until(lambda: client.hints(uri) == {})


def test_path_mappings_lead_to_the_sources(start_client: StartClient, workspace: Path) -> None:
    (workspace / "elsewhere").mkdir()
    (workspace / "saxpy.cu").rename(workspace / "elsewhere" / "renamed.cu")
    write_profile(workspace / "saxpy.ncu-rep", LISTING.replace("saxpy.cu", "/build/renamed.cu"))
    client = start_client(settings={"pathMappings": {"/build": str(workspace / "elsewhere")}})
    client.initialize(workspace)
    uri = client.open(workspace / "elsewhere" / "renamed.cu")
    assert len(client.wait_for_diagnostics(uri)) == 3


def test_an_editor_on_another_machine_calls_the_sources_as_the_mapping_says(
    start_client: StartClient, workspace: Path
) -> None:
    text = (workspace / "saxpy.cu").read_text()
    (workspace / "saxpy.cu").unlink()
    write_profile(workspace / "saxpy.ncu-rep", LISTING.replace("saxpy.cu", "/build/saxpy.cu"))
    client = start_client(settings={"pathMappings": {"/build": "/mnt/laptop/project"}})
    client.initialize(workspace)
    uri = client.open(Path("/mnt/laptop/project/saxpy.cu"), text)
    assert len(client.wait_for_diagnostics(uri)) == 3
    assert all(label.endswith("?") for label in client.hints(uri).values())  # nobody has a copy
    client.close(uri)
    spots = client.execute("gpaLsp.listHotSpots")
    assert {spot["uri"] for spot in spots} == {uri}


def test_a_file_that_may_be_the_measured_one_is_asked_about_once(client: RawClient, workspace: Path) -> None:
    write_profile(workspace / "saxpy.ncu-rep", LISTING.replace("saxpy.cu", "/usr/include/gone/saxpy.cu"))
    source = workspace / "deep" / "saxpy.cu"
    source.parent.mkdir()
    (workspace / "saxpy.cu").rename(source)
    client.initialize(workspace)
    uri = client.open(source)
    message = client.wait_for_message()
    assert "gpaLsp.chooseSources" in message and "/usr/include/gone/saxpy.cu" in message
    client.close(uri)
    client.open(source)
    assert client.hints(uri) == {}
    client.configure(pathMappings={"/usr/include/gone": str(source.parent)})
    assert len(client.wait_for_diagnostics(uri)) == 3
    assert len(client.messages()) == 1


def test_commands_do_something_in_every_client(client: RawClient, workspace: Path) -> None:
    uri = ready(client, workspace)
    lens = client.ask("codeLens", uri)[0]
    page = client.execute(lens["command"]["command"], *lens["command"]["arguments"])
    shown = client.wait_for_request("window/showDocument")
    assert Path(shown["uri"].removeprefix("file://")).read_text() == page
    stamp = (workspace / "saxpy.ncu-rep").stat()
    text = (workspace / "saxpy.ncu-rep").read_text()
    (workspace / "saxpy.ncu-rep").write_text(text.replace("saxpy.cu:5", "saxpy.cu:7"))
    # nothing but a command makes it read this
    os.utime(workspace / "saxpy.ncu-rep", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    client.execute("gpaLsp.reload")
    client.wait_for_diagnostics(uri, lambda items: 6 in {item["range"]["start"]["line"] for item in items})
    assert "error" in client.request_whole("workspace/executeCommand", {"command": "gpaLsp.nothing"})
    wrong = {"command": "gpaLsp.findCauses", "arguments": ["file:///k.cu", "5"]}
    assert client.request_whole("workspace/executeCommand", wrong)["error"] == {
        "code": -32602,
        "message": "gpaLsp.findCauses: it takes the URI of a document and the number of a line from 0",
    }
    assert client.shut_down() == 0
    assert not Path(shown["uri"].removeprefix("file://")).exists()


def test_a_modest_client_is_served_too(start_client: StartClient, workspace: Path) -> None:
    client = start_client(answers=False)
    client.initialize(workspace, capabilities={})
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)
    client.execute("gpaLsp.showReport")
    client.wait_for_message("kernels is in")
    assert client.requests == []


def test_a_client_that_never_answers_does_not_stop_the_server(start_client: StartClient, workspace: Path) -> None:
    client = start_client(answers=False)
    client.initialize(workspace, capabilities={"window": {"workDoneProgress": True}})
    uri = client.open(workspace / "saxpy.cu")
    assert len(client.wait_for_diagnostics(uri)) == 3
    assert client.shut_down() == 0


def test_a_lone_file_finds_the_profile_beside_it(client: RawClient, workspace: Path) -> None:
    client.initialize(None)
    uri = client.open(workspace / "saxpy.cu")
    assert len(client.wait_for_diagnostics(uri)) == 3


def test_workspace_folders_may_come_and_go(client: RawClient, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    client.initialize(tmp_path / "empty")
    uri = client.open(workspace / "saxpy.cu")
    folder = {"uri": workspace.as_uri(), "name": "work"}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
    client.wait_for_diagnostics(uri)
    client.forget()
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}})
    client.wait_for_diagnostics(uri, lambda items: items == [])


def test_a_senseless_answer_does_not_stop_the_server(start_client: StartClient, workspace: Path) -> None:
    client = start_client(answers=False)
    client.initialize(workspace)
    client.wait_for_request("workspace/configuration")
    client.send(id=client.requests[0]["id"], result={"not": "a list"})
    uri = client.open(workspace / "saxpy.cu")
    assert len(client.wait_for_diagnostics(uri)) == 3


def busy(client: RawClient, workspace: Path, *words: str) -> set[int]:
    """Start an analysis that takes long, and no other; the processes it needs."""
    (workspace / "saxpy.ncu-rep").unlink()
    write_profile(workspace / "slow.ncu-rep", LISTING, *words)
    client.initialize(workspace)
    client.wait_for("$/progress", lambda params: params["value"]["kind"] == "report")
    needed = 2 if any(word.startswith("spawn") for word in words) else 1
    wait_until(lambda: len(find_children(client.process.pid)) >= needed)
    return find_children(client.process.pid)


def test_requests_are_answered_while_profiles_are_read(client: RawClient, workspace: Path) -> None:
    busy(client, workspace, "sleep 3600")
    uri = client.open(workspace / "saxpy.cu")
    assert client.hover(uri, 5) is None
    assert not [
        one for one in client.notifications if one["method"] == "$/progress" and one["params"]["value"]["kind"] == "end"
    ]


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_server_leaves_nothing_behind(client: RawClient, workspace: Path, signal_number: int) -> None:
    children = busy(client, workspace, "spawn 3600")
    client.process.send_signal(signal_number)
    client.process.wait(LIMIT_S)
    wait_until(lambda: not any(map(is_alive, children)))


def test_exit_without_shutdown_is_an_error(client: RawClient, workspace: Path) -> None:
    client.initialize(workspace)
    client.notify("exit", None)
    assert client.process.wait(LIMIT_S) == 1


def test_reading_can_be_cancelled_and_taken_up_again(client: RawClient, workspace: Path) -> None:
    children = busy(client, workspace, "sleep 3600")
    begun = client.wait_for("$/progress", lambda params: params["value"]["kind"] == "begin")
    assert begun["value"]["cancellable"] is True
    client.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    client.wait_for("$/progress", lambda params: params["value"]["kind"] == "end")
    wait_until(lambda: not any(map(is_alive, children)))
    let_look_twice(client, workspace)  # it would not come to that if it read the slow one again
    client.forget()
    write_profile(workspace / "slow.ncu-rep", LISTING, "sleep 0")
    client.execute("gpaLsp.reload")
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)


def test_the_command_line_starts_the_same_server(start_client: StartClient, workspace: Path) -> None:
    client = start_client(module="gpa_lsp.cli.main serve --stdio")
    ready(client, workspace)
    assert client.shut_down() == 0


def test_of_two_checkouts_the_one_the_profile_lies_in_is_served(client: RawClient, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "saxpy.cu").write_text(SOURCE)
        make_ancient(tmp_path / name / "src" / "saxpy.cu")
    write_profile(tmp_path / "b" / "saxpy.ncu-rep", LISTING.replace("saxpy.cu", "/build/src/saxpy.cu"), "name saxpy")
    folders = [{"uri": (tmp_path / name).as_uri(), "name": name} for name in ("a", "b")]
    client.initialize(tmp_path / "a", workspaceFolders=folders)
    assert client.wait_for_diagnostics(client.open(tmp_path / "b" / "src" / "saxpy.cu"))
    other = client.open(tmp_path / "a" / "src" / "saxpy.cu")
    assert client.hints(other) == {} and client.lenses(other) == []
