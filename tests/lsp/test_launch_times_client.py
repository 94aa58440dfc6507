"""The real server over the wire: described launches are timed on save, by a process that stays, on a CUDA driver and a CUPTI of ours.

Python's bindings of CUDA, NVRTC, the processes and the collector are the real ones.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collect.processes import find_children
from tests.collector.built import build, make_variables
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import wait_until

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void scale(float *x, float a)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] *= a;
}
"""
FASTER = SOURCE.replace("*= a", "= a")
DESCRIPTION = """\
[[launch]]
kernel = "scale"
block = 64
grid = 8
arguments = [
  { name = "x", type = "float", count = 512 },
  { name = "a", type = "float", value = 2.0 },
]
"""
ASKED = "window/showMessageRequest"


class Editor:
    """A client on a project with a described launch."""

    def __init__(self, folder: Path, *, fake: str = "", has_gpu: bool = True) -> None:
        self.folder = folder
        self.times = folder / "times"
        self.source = folder / "wörk" / "k.cu"
        self.source.parent.mkdir()
        self.source.write_text(SOURCE)
        self.source.with_name("k.launch.toml").write_text(DESCRIPTION)
        self.times.write_text("41200")
        variables = make_variables(build(), folder, fake) if has_gpu else {}
        self.client = RawClient(environment={**variables, "FAKE_CUDA_TIMES": str(self.times)})
        self.answer: str | None = "Run once"
        self.client.replies[ASKED] = lambda _: None if self.answer is None else {"title": self.answer}
        self.version = 1
        self.uri = ""

    def start(self, **settings: Any) -> None:
        options = {
            "emulation": {"enable": True},
            "simulation": {"onSave": False},
            "client": {"status": True, "questions": True},
            **settings,
        }
        self.client.initialize(self.source.parent, ALL_CAPABILITIES, initializationOptions=options)
        self.uri = self.client.open(self.source)
        wait_until(
            lambda: self.client.titles(self.uri) or not settings.get("client", {}).get("trusted", True),
            "what its code says",
        )

    def save(self, text: str | None = None) -> None:
        if text is not None:
            self.version += 1
            self.client.change(self.uri, self.version, text)
            self.source.write_text(text)
        self.client.save(self.uri)

    def wait_for_lens(self, words: str) -> str:
        return self.client.wait_for_lens(self.uri, words)

    def wait_for_status(self, field: str, words: str) -> str:
        found = self.client.wait_for("gpaLsp/status", lambda status: words in status[field])
        return str(found[field])


@pytest.fixture
def editor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Editor]:
    made = Editor(tmp_path, **getattr(request, "param", {}))
    yield made
    made.client.kill()


def find_workers(process: int, module: str) -> set[int]:
    return {one for one in find_children(process) if module in read_command(one)}


def read_command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_a_save_is_timed_and_compared_with_before_the_edit(editor: Editor) -> None:
    editor.start(timing={"onSave": True})
    editor.answer = "Always in this workspace"
    editor.save()
    assert editor.wait_for_lens("measured 41.2 µs").startswith("measured 41.2 µs ± 0.0")
    assert editor.client.questions() == [
        f"gpa-lsp: Timing runs kernels on Made-up GPU whenever their source is saved: "
        f"the launches described in *.launch.toml, in {editor.source.parent}"
    ]
    workers = find_workers(editor.client.process.pid, "gpa_lsp.execution.local_gpu.timing_worker")
    assert len(workers) == 1
    editor.times.write_text("36256")
    editor.save(FASTER)
    lens = editor.wait_for_lens("faster than before your edit")
    assert lens.startswith("measured 36.3 µs ± 0.0") and lens.endswith(", 12 % faster than before your edit")
    assert find_workers(editor.client.process.pid, "gpa_lsp.execution.local_gpu.timing_worker") == workers, (
        "it stays between saves"
    )
    assert re.search(r"36\.3 µs.* · 12 % faster$", editor.client.hint_texts(editor.uri)[1])
    shown = editor.wait_for_status("text", "scale measured 36.3 µs")
    assert "12 % faster than before your edit · " in shown
    hover = editor.client.read_hover(editor.uri, 1)
    assert "faster than before your edit" in hover
    assert "median of 30 launches on Made-up GPU, L2 overwritten before each; before 41.2 µs" in hover
    assert len([one for one in editor.client.questions() if "Timing runs" in one]) == 1, "always is always"
    page = editor.client.execute("gpaLsp.showTimes", editor.uri)
    assert page.startswith("## `scale`") and "12 % faster" in page
    assert editor.client.shut_down() == 0
    wait_until(lambda: not any(map(read_command, workers)), "the end of the process with the context")


def test_a_launch_more_is_sampled_and_shown_on_the_lines(editor: Editor) -> None:
    editor.start(client={"status": True, "questions": True, "heat": True})
    editor.save()
    heat = editor.client.wait_for_heat(editor.uri)
    assert heat["simulated"] == []
    lens = editor.wait_for_lens("scale · 41.2 µs")
    assert "simulated" not in lens
    assert not (editor.folder / "complaints").exists()


@pytest.mark.parametrize("editor", [{"fake": "enable=35"}], indirect=True)
def test_without_permission_to_sample_it_is_timed_and_said_once(editor: Editor) -> None:
    editor.start()
    editor.save()
    editor.wait_for_lens("measured 41.2 µs")
    said = editor.wait_for_status("detail", "not sampled")
    assert "lets only administrators read the GPU's performance counters" in said
    editor.client.forget()
    editor.times.write_text("50000")
    editor.save(FASTER)
    editor.wait_for_lens("slower than before your edit")
    told = [one for one in editor.client.notifications if one["method"] != "gpaLsp/status"]
    assert "not sampled" not in str(told)


def test_nothing_runs_without_consent(editor: Editor) -> None:
    editor.answer = "Never"
    editor.start()
    editor.save()
    wait_until(editor.client.questions, "the question")
    editor.wait_for_status("state", "idle")
    editor.save()
    editor.client.titles(editor.uri)
    assert not find_workers(editor.client.process.pid, "-m gpa_lsp.execution.local_gpu.timing_worker"), "that samples"
    assert not [one for one in editor.client.titles(editor.uri) if one.startswith("measured")]
    assert len([one for one in editor.client.questions() if "Timing runs" in one]) == 1


def test_a_client_that_cannot_ask_says_how_it_is_confirmed(editor: Editor) -> None:
    editor.answer = None
    editor.start(client={"status": False})
    editor.save()
    wait_until(lambda: any("gpa-lsp serve allow" in one for one in editor.client.messages()), "how it is confirmed")
    assert not [one for one in editor.client.titles(editor.uri) if one.startswith("measured")]


@pytest.mark.parametrize("settings", [
    {"timing": {"onSave": False}},
    {"client": {"status": True, "questions": True, "trusted": False}},
    {"profile": {"command": ["true"], "onSave": True}},
])  # fmt: skip
def test_nobody_is_asked_where_nothing_is_to_be_timed(editor: Editor, settings: dict[str, Any]) -> None:
    editor.answer = "Never"
    editor.start(**settings)
    editor.save()
    editor.client.titles(editor.uri)
    assert not [one for one in editor.client.questions() if "Timing" in one]
    assert not find_workers(editor.client.process.pid, "gpa_lsp.editor.timed.worker")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
@pytest.mark.parametrize("editor", [{"has_gpu": False}], indirect=True)
def test_without_a_driver_nothing_appears_but_a_detail(editor: Editor) -> None:
    editor.start()
    editor.save()
    said = editor.wait_for_status("detail", "not timed here")
    assert said == "launches are not timed here: no NVIDIA driver is installed"
    assert editor.client.questions() == []
    assert editor.client.messages() == []
    assert not find_workers(editor.client.process.pid, "gpa_lsp.editor.timed.worker")


@pytest.mark.parametrize("editor", [{"fake": "devices=0"}], indirect=True)
def test_a_driver_without_a_gpu_is_the_same(editor: Editor) -> None:
    editor.start()
    editor.save()
    assert "GPU number 0 is not installed" in editor.wait_for_status("detail", "not timed here")
    assert editor.client.questions() == []


def test_the_next_save_ends_a_launch_that_does_not_end(editor: Editor) -> None:
    editor.answer = "Always in this workspace"
    editor.times.write_text("never")
    editor.start()
    editor.save()
    module = "gpa_lsp.execution.local_gpu.timing_worker"
    wait_until((editor.folder / "complaints").exists, "the launch")
    hanging = find_workers(editor.client.process.pid, module)
    editor.times.write_text("41200")
    editor.save(FASTER)
    editor.wait_for_lens("measured 41.2 µs")
    assert not hanging & find_workers(editor.client.process.pid, module)


def test_it_is_cancelled_by_command(editor: Editor) -> None:
    editor.times.write_text("never")
    editor.start()
    editor.save()
    wait_until((editor.folder / "complaints").exists, "the launch")
    assert editor.client.execute("gpaLsp.cancelMeasuring")
    editor.client.forget()
    module = "gpa_lsp.execution.local_gpu.timing_worker"
    wait_until(lambda: not find_workers(editor.client.process.pid, module), "the end of the launch")
    assert editor.client.titles(editor.uri), "the server answers"


def test_a_launch_that_fails_says_so_and_the_next_one_is_timed(editor: Editor) -> None:
    editor.answer = "Always in this workspace"
    editor.times.write_text("fails")
    editor.start()
    editor.save()
    editor.client.wait_for("window/logMessage", lambda one: "CUDA_ERROR_ILLEGAL_ADDRESS" in one["message"])
    editor.times.write_text("41200")
    editor.save()
    editor.wait_for_lens("measured 41.2 µs")
