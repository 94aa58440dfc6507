"""Recording launches, through the whole server: refused, nothing runs; allowed, a program runs, and its kernels are emulated with its data."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.editor.protocol.launch_recording import read_recorded
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import wait_until
from tests.programs.built import SOURCES, require_compiler

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

PROGRAM = ["/bin/sh", "-c", "touch ran; exec ./symbols"]
BUILD = ["nvcc", "-std=c++17", "symbols.cu", "-o", "symbols"]

Start = Callable[..., "Editor"]


class Editor:
    """A client whose user answers questions about programs as told."""

    def __init__(self, folder: Path, *, answer: str | None, emulation: dict[str, Any], **says: Any) -> None:
        self.folder = folder
        self.client = RawClient(environment={"GPA_LSP_DATA_DIR": str(folder.parent / "data")})
        self.client.replies["window/showMessageRequest"] = lambda params: (
            {"title": answer} if answer is not None else None
        )
        options = {
            "emulation": emulation,
            "client": {"status": True, "output": True, "questions": True, **says},
        }
        self.client.initialize(folder, ALL_CAPABILITIES, initializationOptions=options)
        self.uri = self.client.open(folder / "symbols.cu")

    def record(self, *arguments: Any) -> Any:
        return self.client.execute("gpaLsp.recordLaunches", *arguments)

    def said(self) -> str:
        shown = [one for one in self.client.notifications if one["method"] == "window/showMessage"]
        return "\n".join(str(one["params"]["message"]) for one in shown)

    def ran(self) -> bool:
        return (self.folder / "ran").exists()

    def wait_for_words(self, words: str) -> None:
        wait_until(lambda: words in self.said(), words)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    folder = tmp_path / "wörk"
    folder.mkdir()
    for name in ("symbols.cu", "allocations.cu", "checking.h"):
        shutil.copy(SOURCES / name, folder)
    started: list[Editor] = []

    def begin(*, answer: str | None = "Run once", says: dict[str, Any] | None = None, **emulation: Any) -> Editor:
        started.append(Editor(folder, answer=answer, emulation=emulation, **(says or {})))
        return started[-1]

    yield begin
    for one in started:
        one.client.kill()


def test_allowed_it_is_described_emulated_and_shown_with_every_save(start: Start) -> None:
    require_compiler()
    editor = start(recordCommand=PROGRAM, recordBuildCommand=BUILD)
    assert not any("predicted" in title for title in editor.client.titles(editor.uri))
    assert editor.record(editor.uri) is True
    editor.wait_for_words("recorded launches of 1 kernel: filter")
    (question,) = editor.client.questions()
    assert "Recording launches runs a program in " in question and "touch ran" in question and "nvcc" in question
    assert editor.ran() and "recording" in {
        one["params"]["state"] for one in editor.client.notifications if one["method"] == "gpaLsp/status"
    }
    assert list((editor.folder / "symbols.launches").glob("*.bin"))
    wait_until(
        lambda: any("predicted" in title for title in editor.client.titles(editor.uri)), "the launch is emulated"
    )
    text = (editor.folder / "symbols.cu").read_text()
    broken = text.replace("out[i] = ", "out[i + 1000000] = ")
    assert broken != text
    (editor.folder / "symbols.cu").write_text(broken)
    editor.client.change(editor.uri, 2, broken)
    editor.client.save(editor.uri)
    editor.client.wait_for_diagnostics(
        editor.uri, lambda found: any(one["code"] == "emulated out-of-bounds-access" for one in found)
    )


def test_what_a_run_does_with_its_allocations_stands_on_their_lines(start: Start) -> None:
    """Findings of the recorded run are gone where a line is edited, back when it is restored, and kept for a later session, which runs nothing."""
    require_compiler()
    build = ["nvcc", "-std=c++17", "allocations.cu", "-o", "symbols"]
    editor = start(recordCommand=PROGRAM, recordBuildCommand=build)
    source = editor.folder / "allocations.cu"
    lines = source.read_text().splitlines()
    uri = editor.client.open(source)
    assert editor.record(uri) is True
    kinds = {"partly-used", "allocated-early", "copied-and-never-read", "copied-both-ways-unchanged"}
    others = {f"emulated {kind}" for kind in kinds}

    def wait_for_kinds(client: RawClient, wanted: set[str]) -> list[Any]:
        def find() -> list[Any]:
            sent = [one["params"] for one in client.notifications if one["method"] == "textDocument/publishDiagnostics"]
            now: list[Any] = next((one["diagnostics"] for one in reversed(sent) if one["uri"] == uri), [])
            return now if {one["code"] for one in now} & {*others, "emulated unused"} == wanted else []

        return wait_until(find, wanted)

    found = wait_for_kinds(editor.client, {*others, "emulated unused"})
    placed = {(one["code"], lines[one["range"]["start"]["line"]].rpartition("// ")[2]) for one in found}
    assert placed >= {
        ("emulated unused", "unused"),
        ("emulated partly-used", "partly used"),
        ("emulated copied-and-never-read", "never read"),
        ("emulated copied-both-ways-unchanged", "unchanged"),
    }
    text = source.read_text()
    editor.client.change(uri, 2, text.replace("(&unused, BYTES / 2)", "(&unused, BYTES / 4)"))
    wait_for_kinds(editor.client, others)
    editor.client.change(uri, 3, text)
    wait_for_kinds(editor.client, {*others, "emulated unused"})
    (editor.folder / "ran").unlink()
    later = start(answer=None)
    assert later.client.open(source) == uri
    wait_for_kinds(later.client, {*others, "emulated unused"})
    assert not later.ran() and not later.client.questions()


@pytest.mark.parametrize("answer", ["Never", "Always in this workspace"])
def test_nothing_runs_before_the_answer_or_against_it(answer: str, start: Start) -> None:
    editor = start(answer=answer)
    line = "/bin/sh -c 'touch ran'"
    assert editor.record(None, line) is True
    wait_until(editor.client.questions, "the user is asked")
    if answer == "Never":
        assert editor.record(None, "") is False  # no command in the settings either
        editor.wait_for_words("set gpaLsp.emulation.recordCommand")
        assert not editor.ran()
        return
    require_compiler()
    editor.wait_for_words("no launch was recorded: no kernel was launched")
    (editor.folder / "ran").unlink()
    assert editor.record(None, line) is True
    wait_until(editor.ran, "it runs again, unasked")
    assert len(editor.client.questions()) == 1
    assert editor.record(None, "/bin/sh -c 'touch other'") is True
    wait_until(lambda: len(editor.client.questions()) == 2, "another command is another question")


def test_a_workspace_without_trust_runs_nothing_and_asks_nothing(start: Start) -> None:
    editor = start(says={"trusted": False}, recordCommand=["/bin/sh", "-c", "touch ran"])
    assert editor.record(editor.uri) is False
    assert editor.record(None, ["/bin/sh", "-c", "touch ran"]) is False
    editor.wait_for_words("nothing is run in a workspace that is not trusted")
    assert not editor.client.questions() and not editor.ran()


def test_a_running_program_is_cancelled(start: Start) -> None:
    require_compiler()
    editor = start(recordCommand=["/bin/sh", "-c", "touch ran; sleep 600; touch late"])
    editor.record()
    wait_until(editor.ran, "it runs")
    cancel = {"command": "gpaLsp.cancelMeasuring", "arguments": []}
    assert editor.client.request("workspace/executeCommand", cancel) is True
    wait_until(lambda: editor.client.request("workspace/executeCommand", cancel) is False, "it has ended")
    assert "recorded" not in editor.said()


def test_why_nothing_was_recorded_is_said(start: Start) -> None:
    require_compiler()
    editor = start()
    assert editor.record(None, 3) is False
    editor.wait_for_words("this is not a command: a list of words")
    editor.record(None, "./nothing")
    editor.wait_for_words("recording failed: nothing: there is no such program")
    editor.record(None, "${kernle}")
    editor.wait_for_words("the command cannot be run: ${kernle} is not a variable")


def test_what_the_command_wrote_is_read_with_care(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assert read_recorded(path) is None
    for text in ("", "[]", '{"described": null}', '{"described": {"left_out": 3}}'):
        path.write_text(text)
        assert read_recorded(path) is None
    left_out = [{"name": f"void k{n}(int*)", "reason": f"reason {n % 5}\x1b"} for n in range(40)]
    described = {"written": ["/w/k.launch.toml"], "left_alone": [], "kernels": ["void a<int>()"], "left_out": left_out}
    path.write_text(json.dumps({"described": described, "end": {"ending": "ended", "status": 1}}))
    found = read_recorded(path)
    assert found is not None and found.descriptions == (Path("/w/k.launch.toml"),)
    said = found.describe()
    assert said.startswith("1 kernel: a<int>; not recorded: k0, k5, k10, k15, k20, k25 and 2 more (reason 0\\x1b), k1")
    assert said.endswith("and more (1); the program ended with status 1") and "\x1b" not in said
