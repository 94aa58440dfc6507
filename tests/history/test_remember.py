"""Recording and comparing as the server does it, also where nothing can be kept."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import KernelHistory
from gpa_lsp.report.history.past import KernelMemory, compare_with_past, remember_kernels
from gpa_lsp.report.history.recording import Surroundings
from gpa_lsp.report.history.store import History
from gpa_lsp.report.model import KernelReport
from tests.conftest import ROOT
from tests.history.recordings import make_key, make_recording, open_history
from tests.patience import LIMIT_S
from tests.report_builder import build_kernel

LISTING = """
    k.cu:4  LDG.E R2, [R4.64]        ; selected=10
    k.cu:{line}  {text}      ; long_scoreboard=80/70 selected=10
"""


def make_kernel(measured_s: int, duration_ns: float, text: str, line: int = 5) -> KernelReport:
    source = "\n".join(f"line {number}" for number in range(3, 9))
    before = "".join(f"added {number}\n" for number in range(line - 5)) + "1\n2\n3\n"
    return replace(
        build_kernel(
            LISTING.format(line=line, text=text),
            measured_unix_s=1_700_000_000 + measured_s,
            durations_ns=(duration_ns,),
        ),
        embedded_sources={"k.cu": before + source},
    )


def surround(kernel: KernelReport) -> Surroundings:
    measured_ns = (kernel.measured_unix_s or 0) * 1_000_000_000
    return Surroundings(measured_ns=measured_ns, read_ns=measured_ns, files={}, body="/p/k.cu")


def remember(history: History, kernel: KernelReport) -> KernelHistory:
    (found,) = remember_kernels(history, [(kernel, surround(kernel))])
    assert found is not None
    return found


def test_a_kernel_is_compared_with_its_last_run_and_the_baseline(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first = remember(history, make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"))
        assert (first.previous, first.baseline, first.run_count, first.is_baseline) == (None, None, 1, False)
        history.pin(first.run.run_id)
        second = remember(history, make_kernel(10, 3e6, "FMUL R2, R2, R3"))
        third = remember(history, make_kernel(20, 1e6, "FADD R2, R2, R3", line=7))
        again = remember(history, make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"))
    assert second.previous is second.baseline
    assert second.previous is not None
    assert second.previous.verdict is Verdict.FASTER
    assert third.previous is not None
    assert third.baseline is not None
    assert third.run_count == 3
    assert (third.previous.before.run_id, third.baseline.before.run_id) == (second.run.run_id, first.run.run_id)
    assert third.previous.time is not None
    assert third.previous.time.speedup == 3.0
    assert (again.run.run_id, again.is_baseline, again.previous, again.baseline) == (first.run.run_id, True, None, None)


def test_lines_are_followed_by_the_texts_that_were_kept(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        remember(history, make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"))
        found = remember(history, make_kernel(20, 1e6, "FADD R2, R2, R3", line=7))
    change = found.find_line_change(("k.cu", 7))
    assert change is not None
    assert (change.before_line, change.after_line) == (5, 7)
    assert (change.before_ns, change.after_ns) == (pytest.approx(3.6e6), pytest.approx(0.9e6))
    assert found.find_line_change(("k.cu", 99)) is None


def test_all_kernels_of_a_profile_are_there_before_the_first_is_compared(tmp_path: Path) -> None:
    def instance(width: int, measured_s: int) -> KernelReport:
        kernel = make_kernel(measured_s, 4e6, f"FADD R2, R2, R{width}")
        return replace(kernel, name=f"void scale<{width}>(float*)", mangled_name=f"scale{width}")

    with open_history(tmp_path) as history:
        remember(history, instance(32, 0))
        several = [(kernel, surround(kernel)) for kernel in (instance(64, 10), instance(128, 10))]
        assert [found.previous for found in remember_kernels(history, several) if found] == [None, None]
        alone = remember(history, instance(256, 20))
        assert alone.previous is None
        last = remember(history, instance(512, 30))
        assert last.previous is not None
        assert last.previous.before.measurement.name == "void scale<256>(float*)"


def test_the_editor_keeps_no_lines_nobody_would_ask_about(tmp_path: Path) -> None:
    many = {"wait": 10_000}
    with open_history(tmp_path) as history:
        history.record(make_recording(0, samples=many, lines={1: 9_960, 2: 19, 3: 21}))
        run = history.record(make_recording(1, samples=many, lines={1: 9_970, 2: 10, 3: 0, 4: 20}))
        found = compare_with_past(history, run)
    assert found.previous is not None
    assert {line for _, line in found.previous.lines} == {1, 3, 4}


def test_another_gpu_is_named_and_not_compared_with(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        history.record(make_recording(0, key=make_key(device="NVIDIA A100")))
        run = history.record(make_recording(1))
        found = compare_with_past(history, run)
        assert (found.previous, found.other_device) == (None, "NVIDIA A100")
        later = compare_with_past(history, history.record(make_recording(2)))
        assert (later.previous is not None, later.other_device) == (True, None)


def test_code_that_was_not_measured_is_not_remembered(tmp_path: Path) -> None:
    kernel = replace(make_kernel(0, 1e6, "EXIT"), launches=())
    with open_history(tmp_path) as history:
        assert remember_kernels(history, [(kernel, surround(kernel))]) == (None,)
        assert history.list_runs() == ()


def test_what_the_editor_keeps_crosses_a_pipe(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        remember(history, make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"))
        found = remember(history, make_kernel(20, 1e6, "FADD R2, R2, R3"))
    packed = pickle.dumps(found, protocol=5)
    assert pickle.loads(packed) == found
    assert len(packed) < 10_000


def test_the_types_the_server_imports_at_its_start_bring_nothing_heavy() -> None:
    code = "import sys, gpa_lsp.report.history.model, gpa_lsp.report.history.past; print([n for n in ('numpy', 'sqlite3') if n in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert ran.stdout.strip() == "[]"


def test_a_memory_that_works_remembers(tmp_path: Path) -> None:
    first, second = make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"), make_kernel(9, 2e6, "FMUL R2, R2, R3")
    with KernelMemory(tmp_path / "history.db") as memory:
        memory.remember_all([(first, surround(first))])
        (found,) = memory.remember_all([(second, surround(second))])
        assert found is not None
        assert found.previous is not None
        assert memory.problems == ()
        assert memory.find_source("/nowhere.cu", 0) is None


def test_a_memory_that_cannot_be_opened_says_so_once_and_is_silent(tmp_path: Path) -> None:
    (tmp_path / "history.db").mkdir()
    kernel = make_kernel(0, 4e6, "EXIT")
    with KernelMemory(tmp_path / "history.db") as memory:
        assert memory.remember_all([(kernel, surround(kernel))]) == (None,)
        assert memory.find_source("/k.cu", 0) is None
        (problem,) = memory.problems
    assert problem.severity is ProblemSeverity.WARNING
    assert "not remembered" in problem.message
    assert problem.remedy
    assert memory.problems == (problem,)


def test_a_memory_that_is_damaged_on_the_way_goes_on_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    first, second = make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"), make_kernel(9, 2e6, "FMUL R2, R2, R3")
    with KernelMemory(path) as memory:
        memory.remember_all([(first, surround(first))])
    with KernelMemory(path) as memory:
        with path.open("r+b") as stream:
            stream.write(b"\xa5" * 100_000)
        (found,) = memory.remember_all([(second, surround(second))])
        assert found is not None
        assert found.previous is None
        assert len(memory.problems) == 1
    assert len(memory.problems) == 1


def test_a_memory_without_sqlite_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpa_lsp.report.history.store", None)
    memory = KernelMemory(tmp_path / "history.db")
    assert len(memory.problems) == 1
    assert "not remembered" in memory.problems[0].message
