"""Answers that agents get: short, with ids, units, counts and origin; nothing from outside of their folder."""

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.agents.answers import MOST_BYTES, Answers
from gpa_lsp.agents.server import NoAnswerError, Questions
from gpa_lsp.diagnosis.advice.model import Standing
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.report.saved.store import write_report
from tests.conftest import ROOT
from tests.editors.workspace import make_workspace, write_profile
from tests.render.advice_examples import make_advised
from tests.report_builder import build_report

FIXTURES = ROOT / "fixtures"
SOURCE = "kernels/short_def_use/original.cu"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A report and the source of its first kernel."""
    shutil.copy(FIXTURES / "example.gpa-profile.json", tmp_path)
    for path in FIXTURES.glob("**/*.cubin"):
        if path.relative_to(FIXTURES).as_posix() in (tmp_path / "example.gpa-profile.json").read_text():
            (tmp_path / path.relative_to(FIXTURES)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / path.relative_to(FIXTURES))
    (tmp_path / SOURCE).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(FIXTURES / SOURCE, tmp_path / SOURCE)
    return tmp_path


@pytest.fixture
def answers(folder: Path) -> Answers:
    return Answers(folder)


def read_rest(text: str) -> int | None:
    """Start of the next answer, as an answer gives it."""
    found = re.search(r"… \d+ more: sass\(kernel=\"k\w+\", start=(\d+)\)$", text)
    return int(found[1]) if found else None


def test_the_loop_of_an_agent(answers: Answers) -> None:
    kernels = answers.list_kernels()
    found = re.search(r"^(k[0-9a-f]{6}) short_def_use · 186 µs · 8,526 samples · Latency", kernels, re.M)
    assert found and "measured" in kernels
    advice = answers.advise(found[1])
    assert re.search(r"^loop_unrolling: 1\.\d+–2\.\d+× \(estimated; 76 % \(±0\.9\) of the samples: 6,480", advice, re.M)
    assert "limit: Latency" in advice and f"{SOURCE}:22" in advice
    assert "caution:" in answers.advise(found[1], "loop_unrolling")
    line = answers.explain_line("original.cu", 22)
    assert re.search(
        rf"^stalled on {SOURCE}:22 .*: 6,480 samples \(76 %\), long_scoreboard, data from global memory$", line, re.M
    )
    assert "FFMA R0, R7, 0.5, R0" in answers.sass(found[1], "original.cu", 22)
    compared = answers.compare("example.gpa-profile.json", "example.gpa-profile.json")
    assert "short_def_use" in compared


def test_what_advice_names_can_be_asked_for(tmp_path: Path) -> None:
    """Files are called as they are here, wherever they were compiled."""
    write_profile(make_workspace(tmp_path / "project"), "original", tmp_path / "before.gpa-profile.json")
    answers = Answers(tmp_path)
    (file, line) = re.findall(r"^cause: (\S+):(\d+) ", answers.advise("relax"), re.M)[0]
    assert file == "project/src/relax.cu"
    assert answers.explain_line(file, int(line)).startswith(f"{file}:{line}, measured\n")
    assert f"{file}:{line}" in answers.sass("relax", file, int(line))


def test_advice_is_told_in_the_order_of_views(tmp_path: Path) -> None:
    kernel = make_advised()
    first, *_ = kernel.advice.advice
    small = replace(first, optimizer="thread_increase", standing=Standing.SMALL)
    advised = replace(kernel, advice=replace(kernel.advice, advice=(small, first)))
    write_report(build_report(advised), tmp_path / "report.gpa-profile.json")
    told = Answers(tmp_path).advise()
    assert told.index(f"\n{first.optimizer}: ") < told.index("\nthread_increase: ")


def test_ids_stay_and_names_do_as_well(answers: Answers, folder: Path) -> None:
    assert answers.list_kernels() == Answers(folder).list_kernels()
    assert answers.advise("short_def_use") == answers.advise()


def test_every_answer_is_short_and_what_is_left_can_be_asked_for(answers: Answers) -> None:
    seen: list[str] = []
    start: int | None = 0
    pages = 0
    while start is not None:
        text = answers.sass("short_def_use", start=start)
        assert len(text.encode()) <= MOST_BYTES
        seen += re.findall(r"^(0x[0-9a-f]+) ", text, re.M)
        start, pages = read_rest(text), pages + 1
    assert pages > 1 and len(seen) == len(set(seen)) == 56


def test_a_prediction_says_that_nothing_was_measured(answers: Answers, folder: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    (folder / "copy.cu").write_text(
        "__global__ void copy(const float* in, float* out, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = in[i * 2 % n];\n}\n"
    )
    (folder / "copy.launch.toml").write_text(
        '[[launch]]\nkernel = "copy"\nblock = 64\nthreads = 256\n'
        'arguments = [{ name = "in", type = "float", count = 256 }, { name = "out", type = "float", count = 256 }, '
        '{ name = "n", type = "int", value = 256 }]\n'
    )
    text = answers.predict("copy.cu")
    assert text.startswith("copy.cu, emulated and predicted, nothing measured") and "sectors" in text
    assert len(text.encode()) <= MOST_BYTES


@pytest.mark.parametrize(
    "name", ["../outside.gpa-profile.json", "/etc/passwd", "link.gpa-profile.json", "a\0b", "none"]
)
def test_nothing_outside_of_the_folder_is_read(answers: Answers, folder: Path, name: str) -> None:
    outside = folder.parent / "outside.gpa-profile.json"
    shutil.copy(FIXTURES / "example.gpa-profile.json", outside)
    (folder / "link.gpa-profile.json").symlink_to(outside)
    for ask in (lambda: answers.list_kernels(name), lambda: answers.compare(name, name), lambda: answers.predict(name)):
        with pytest.raises(InputError):
            ask()
    assert answers.list_kernels().startswith("1 report,"), "links that lead out are not followed"


@pytest.mark.parametrize(
    "ask",
    [
        lambda answers: answers.advise("nobody"),
        lambda answers: answers.advise("short_def_use", "nothing"),
        lambda answers: answers.explain_line("original.cu", 9999),
        lambda answers: answers.sass("short_def_use", start=-1),
        lambda answers: answers.sass("short_def_use", start=10**9),
    ],
)
def test_what_is_not_there_is_said(answers: Answers, ask: object) -> None:
    assert callable(ask)
    with pytest.raises(GpaError) as told:
        ask(answers)
    assert len(str(told.value)) < MOST_BYTES


def test_a_folder_without_reports(tmp_path: Path) -> None:
    assert "gpa-lsp profile" in Answers(tmp_path).list_kernels()
    with pytest.raises(InputError, match="no report"):
        Answers(tmp_path).advise()


def test_a_damaged_report_is_named(folder: Path) -> None:
    (folder / "broken.ncu-rep").write_bytes(b"NVR\0garbage")
    assert "broken.ncu-rep" in Answers(folder).list_kernels()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__global__ void k(int *p) { *p = 1 }\nint broken(\n", "line 1: expected a"),
        ("int main() { return 0; }\n", "no kernel is in it"),
        ("__global__ void k(int *p) { *p = 1; }\n", "No launch description of k"),
    ],
)
def test_what_cannot_be_predicted_is_no_answer(folder: Path, source: str, expected: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    (folder / "k.cu").write_text(source)
    with pytest.raises(NoAnswerError, match="nothing is predicted of k") as caught:
        Questions(folder).ask("predict", {"source": "k.cu"})
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_kernels", {"report": "bad.ncu-rep"}),
        ("compare", {"before": "example.gpa-profile.json", "after": "bad.ncu-rep"}),
        ("compare", {"before": "bad.ncu-rep", "after": "bad.ncu-rep"}),
    ],
)
def test_a_report_that_cannot_be_read_is_no_answer(folder: Path, tool: str, arguments: dict[str, str]) -> None:
    (folder / "bad.ncu-rep").write_bytes(b"rubbish" * 100)
    with pytest.raises(NoAnswerError, match=r"bad\.ncu-rep: "):
        Questions(folder).ask(tool, arguments)


def test_reports_that_have_no_kernel_in_common_are_not_compared(folder: Path) -> None:
    write_profile(make_workspace(folder / "project"), "original", folder / "other.gpa-profile.json")
    with pytest.raises(
        NoAnswerError, match=r"no kernel is in both reports; there are .*other\.gpa-profile\.json: .*relax"
    ):
        Questions(folder).ask("compare", {"before": "example.gpa-profile.json", "after": "other.gpa-profile.json"})


def test_where_every_report_is_broken_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.ncu-rep").write_bytes(b"rubbish" * 100)
    for tool, arguments in (("list_kernels", {}), ("advise", {}), ("sass", {})):
        with pytest.raises(NoAnswerError, match=r"bad\.ncu-rep: "):
            Questions(tmp_path).ask(tool, arguments)
