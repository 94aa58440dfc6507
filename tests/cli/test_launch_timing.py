"""``gpa-lsp profile --launch`` and ``--replay``: a driver that takes the times it is told stands in for a GPU."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.local_gpu import timing
from gpa_lsp.profile.collect.measured_reports import find_written
from gpa_lsp.profile.read import read_profile
from tests.gpu.in_process import JobsHere
from tests.gpu.timed_driver import ILLEGAL_ADDRESS, TimedDriver
from tests.prediction.measuring import LAUNCHES, count_accesses, write_measured

_SOURCE = """__global__ void scale(float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= a;
}

__global__ void shift(float *x)
{
    x[threadIdx.x] += 1;
}
"""
_LAUNCHES = """[[launch]]
kernel = "scale"
block = [128, 1, 1]
threads = [1000, 1, 1]
arguments = [
  { name = "x", type = "float", count = 1000, fill = "uniform" },
  { name = "a", type = "float", value = 2.0 },
  { name = "n", type = "int", value = 1000 },
]

[[launch]]
kernel = "shift"
block = [32, 1, 1]
grid = [1, 1, 1]
arguments = [{ name = "x", type = "float", count = 32, fill = "zeros" }]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.cu").write_text(_SOURCE)
    (tmp_path / "scale.launch.toml").write_text(_LAUNCHES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def driver() -> TimedDriver:
    return TimedDriver([0.041, 0.0415, 0.0405])


@pytest.fixture
def jobs(driver: TimedDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobsHere]:
    here = JobsHere(driver)
    monkeypatch.setattr(timing, "_POOL", here)
    yield here
    here.close()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["profile", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_launches_are_timed_and_written_as_a_profile(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--launches", "scale.launch.toml")
    assert (code, err) == (0, "")
    first, second, written = out.splitlines()
    assert first.startswith("scale <<<8, 128>>> on Timed GPU: 41.0 µs ± ")
    assert first.endswith("(measured: median of 30 launches, L2 overwritten before each)")
    assert second.startswith("shift <<<1, 32>>> on Timed GPU: ")
    assert written == "written to scale.timed.gpa-profile.json"
    profile = read_profile(project / "scale.timed.gpa-profile.json")
    assert [one.display_name.split("(")[0] for one in profile.launches] == ["scale", "shift"]
    assert profile.launches[0].read_number("gpu__time_duration.sum") == pytest.approx(41_000)
    assert profile.problems[-1].message == "launches were timed; nothing was sampled or counted"
    assert len(jobs.jobs) == 3  # who is there, and two launches


def test_a_kernel_may_be_chosen_and_caches_be_kept(
    project: Path, jobs: JobsHere, driver: TimedDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "--launches",
        "scale.launch.toml",
        "--kernel",
        "shift",
        "--cache-control",
        "none",
        "--repetitions",
        "7",
        "-o",
        "a.gpa-profile.json",
    )
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert out.splitlines()[0].startswith("shift") and "7 launches, caches as the launch before left them" in out
    assert driver.calls["cuLaunchKernel"] == 5 + 7
    assert (project / "a.gpa-profile.json").is_file()


def test_two_timings_are_compared(
    project: Path, jobs: JobsHere, driver: TimedDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "--launches", "scale.launch.toml", "-o", "before.gpa-profile.json")
    driver.times_ms = (0.0205,)
    run(capsys, "--launches", "scale.launch.toml", "-o", "after.gpa-profile.json")
    assert main(["compare", "before.gpa-profile.json", "after.gpa-profile.json"]) == 0
    assert "2.00×" in capsys.readouterr().out


def test_a_kernel_that_fails_costs_its_launch_and_the_process(
    project: Path, jobs: JobsHere, driver: TimedDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.ending = ILLEGAL_ADDRESS
    code, out, err = run(capsys, "--launches", "scale.launch.toml")
    assert (code, out) == (1, "")
    assert err.count("CUDA_ERROR_ILLEGAL_ADDRESS") == 2
    assert jobs.closed == 2
    assert not (project / "scale.timed.gpa-profile.json").exists()


def test_a_report_is_launched_again(
    tmp_path: Path, jobs: JobsHere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    report = write_measured(tmp_path / "measured.gpa-profile.json", count_accesses())
    code, out, err = run(capsys, "--replay", str(report))
    assert (code, out) == (2, "")
    assert "Create one: gpa-lsp predict trace --template measured.gpa-profile.json" in err
    (tmp_path / "colleague.launch.toml").write_text(LAUNCHES)
    code, out, _ = run(
        capsys, "--replay", str(report), "--launches", "colleague.launch.toml", "-o", "again.gpa-profile.json"
    )
    assert code == 0
    assert out.startswith("short_def_use <<<8, 256>>> on Timed GPU: 41.0 µs")
    image = jobs.jobs[-1].image
    assert image[:4] == b"\x7fELF", "the report's own code is launched"
    assert json.loads((tmp_path / "again.gpa-profile.json").read_text())["launches"][0]["grid"] == [8, 1, 1]


def test_code_for_another_gpu_is_assembled_by_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = JobsHere(TimedDriver(capability=(9, 0)))
    monkeypatch.setattr(timing, "_POOL", here)
    report = write_measured(tmp_path / "measured.gpa-profile.json", count_accesses())
    (tmp_path / "measured.gpa-profile.launch.toml").write_text(LAUNCHES)
    code, _, _ = run(capsys, "--replay", str(report), "-o", str(tmp_path / "again.gpa-profile.json"))
    assert code == 0
    assert here.jobs[-1].image[:4] != b"\x7fELF"
    here.close()


def test_a_program_beside_a_description_is_refused(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--launches", "scale.launch.toml", "--", "./app")
    assert code == 2
    assert "not both" in err


def test_a_description_without_its_source_says_what_to_do(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "scale.cu").rename(project / "other.cu")
    code, _, err = run(capsys, "--launches", "scale.launch.toml")
    assert code == 2
    assert "--of" in err
    assert run(capsys, "--launches", "scale.launch.toml", "--of", "other.cu")[0] == 0


def test_without_a_gpu_it_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = JobsHere(TimedDriver(devices=0))
    monkeypatch.setattr(timing, "_POOL", here)
    code, _, err = run(capsys, "--launches", "scale.launch.toml")
    assert code == 2
    assert "timing a launch needs it" in err
    assert here.closed == 1


@pytest.mark.parametrize("word", ["--dry-run", "--print"])
def test_nothing_is_run_where_nothing_is_to_be_run(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    code, _, err = run(capsys, "--launches", "scale.launch.toml", word)
    assert (code, jobs.jobs) == (2, [])
    assert "no Nsight Compute is run" in err


def test_code_without_a_description_is_refused(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--of", "scale.cu")
    assert code == 2
    assert "--launches FILE" in err


def test_of_a_build_the_code_for_this_gpu_is_taken(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code for a newer GPU is passed over: its PTX cannot be assembled here."""
    here = JobsHere(TimedDriver(capability=(8, 6)))
    monkeypatch.setattr(timing, "_POOL", here)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    gencode = [f"-gencode=arch=compute_{one},code=[sm_{one},compute_{one}]" for one in (80, 90)]
    subprocess.run([nvcc, "-lineinfo", *gencode, "-c", "scale.cu", "-o", "scale.o"], check=True, capture_output=True)
    code, _, err = run(capsys, "--launches", "scale.launch.toml", "--of", "scale.o", "-o", "b.gpa-profile.json")
    assert (code, err) == (0, "")
    assert ".target sm_80" in here.jobs[-1].ptx
    assert here.jobs[-1].image[:4] == b"\x7fELF"
    here.close()


def test_on_save_it_writes_where_it_is_looked_for(
    project: Path, jobs: JobsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of an editor that measures on save names its output as a report."""
    output = project / "20260101-000000.ncu-rep"
    assert run(capsys, "--launches", "scale.launch.toml", "-o", str(output))[0] == 0
    assert find_written(output) == output
    assert len(read_profile(output).launches) == 2, "whatever it is called, it is read for what it holds"
