"""One bad input among good ones: one clear line, exit code 2, and the good ones are printed all the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.report.pipeline import analyse
from tests.patience import LIMIT_S

KERNEL = "_Z13short_def_usePKfPfii"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpa_lsp", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False
    )


@pytest.fixture
def good(fixtures: Path) -> Path:
    return fixtures / "example.gpa-profile.json"


def make_profile(folder: Path, fixtures: Path, cubin: str, rows: list[dict]) -> Path:
    shutil.copy(fixtures / "cubins" / "sm_80" / cubin, folder / "code.cubin")
    document = {
        "format": "gpa-lsp/profile/1",
        "modules": [{"id": 1, "compute_capability": "8.0", "cubin": {"path": "code.cubin"}}],
        "launches": [{"kernel": KERNEL, "module": 1, "grid": [1, 1, 1], "block": [32, 1, 1], "samples": rows,
                      "device": {"compute_capability": "8.0"}}],
    }  # fmt: skip
    path = folder / "bad.gpa-profile.json"
    path.write_text(json.dumps(document))
    return path


def row(pc_offset: int) -> dict:
    return {"function": KERNEL, "pc_offset": pc_offset, "by_reason": {"wait": {"all": 5, "latency": 5}}}


def assert_refused_beside(good: Path, bad: Path, words: str) -> None:
    finished = run("check", bad, good)
    assert finished.returncode == 2
    assert "Traceback" not in finished.stdout + finished.stderr
    lines = [line for line in (finished.stdout + finished.stderr).splitlines() if bad.name in line]
    assert len(lines) == 1, lines
    assert words in lines[0]
    assert "short_def_use" in finished.stdout.replace(lines[0], "")
    assert "10 findings" in finished.stdout


def test_samples_of_another_build_are_refused_and_the_others_are_printed(tmp_path, fixtures, good):
    bad = make_profile(tmp_path, fixtures, "short_def_use_original.cubin", [row(0x150), row(0x600)])
    assert_refused_beside(good, bad, "bytes into a kernel that the cubin says is 896 bytes long")


def test_a_cubin_without_the_kernel_is_refused(tmp_path, fixtures, good):
    bad = make_profile(tmp_path, fixtures, "inline_chain_original.cubin", [row(0x150)])
    assert_refused_beside(good, bad, "does not contain it")


def test_a_damaged_cubin_costs_the_lines_and_says_so(tmp_path, fixtures, good):
    bad = make_profile(tmp_path, fixtures, "short_def_use_original.cubin", [row(0x150)])
    code = tmp_path / "code.cubin"
    code.write_bytes(code.read_bytes()[:600])
    report = analyse([bad])
    assert [kernel.total_samples for kernel in report.kernels] == [5]
    assert any(problem.severity is ProblemSeverity.ERROR and problem.path == bad for problem in report.problems)


def test_a_truncated_report(tmp_path, good):
    bad = tmp_path / "cut.ncu-rep"
    bad.write_bytes(b"NVR\x00\x02\x00\x00\x00\x08\x07\xff\x00\x00\x00")
    assert_refused_beside(good, bad, "offset 0x")


def test_a_missing_file_and_a_foreign_one(tmp_path, good):
    assert_refused_beside(good, tmp_path / "gone.ncu-rep", "gone.ncu-rep")
    foreign = tmp_path / "foreign.ncu-rep"
    foreign.write_bytes(b"%PDF-1.7 and so on")
    assert_refused_beside(good, foreign, "does not start with the bytes of an Nsight Compute report")


@pytest.mark.skipif(sys.platform == "win32", reason="sparse files and their limits are those of POSIX")
def test_a_two_gigabyte_hole_is_refused_at_once_and_in_little_memory(tmp_path, good):
    bad = tmp_path / "hole.ncu-rep"
    with bad.open("wb") as stream:
        stream.write(b"NVR\x00\x02\x00\x00\x00\x08\x07")
        os.truncate(stream.fileno(), 2 << 30)
    limited = f"ulimit -v {1_500_000}; exec {sys.executable} -m gpa_lsp check {bad} {good}"
    finished = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert finished.returncode == 2
    assert "hole.ncu-rep" in finished.stdout + finished.stderr
    assert "10 findings" in finished.stdout


def test_a_file_named_twice_counts_once(good):
    folder = good.parent / "kernels" / ".."
    once, twice = analyse([good]), analyse([good, folder / good.name, good])
    assert [kernel.mangled_name for kernel in twice.kernels] == [kernel.mangled_name for kernel in once.kernels]
