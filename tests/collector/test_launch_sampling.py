"""``gpa-lsp profile --launches … --sampler cupti``: described launches, timed and then sampled once, on a driver and a CUPTI of ours.

Python's bindings of CUDA, NVRTC, the worker and the collector are the real ones.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.local_gpu import timing
from gpa_lsp.profile.read import read_profile
from tests.collector.built import SAMPLES_OF_AN_INSTRUCTION, build, make_variables
from tests.conftest import make_cache

_PCS = 4
_SOURCE = """__global__ void scale(float *x, float a)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] *= a;
}
"""
_LAUNCHES = """[[launch]]
kernel = "scale"
block = [128, 1, 1]
grid = [8, 1, 1]
arguments = [
  { name = "x", type = "float", count = 1024, fill = "uniform" },
  { name = "a", type = "float", value = 2.0 },
]

[[launch]]
kernel = "scale"
block = [64, 1, 1]
grid = [4, 1, 1]
arguments = [
  { name = "x", type = "float", count = 1024, fill = "uniform" },
  { name = "a", type = "float", value = 2.0 },
]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    pytest.importorskip("cuda.bindings.driver")
    built = build()
    (tmp_path / "scale.cu").write_text(_SOURCE)
    (tmp_path / "scale.launch.toml").write_text(_LAUNCHES)
    (tmp_path / "times").write_text("41200")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", make_cache(tmp_path))
    monkeypatch.setenv("FAKE_CUDA_TIMES", str(tmp_path / "times"))
    for name, value in make_variables(built, tmp_path).items():
        monkeypatch.setenv(name, value)
    timing.close_processes()
    yield tmp_path
    timing.close_processes()


def profile(*options: str) -> int:
    return main(["profile", "--launches", "scale.launch.toml", "--sampler", "cupti", "-o", "p.json", *options])


def test_a_launch_is_timed_and_sampled_by_one_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile() == 0
    out, err = capsys.readouterr()
    assert err == ""
    samples = _PCS * SAMPLES_OF_AN_INSTRUCTION
    assert out.count(f"; {samples} samples of one launch more\n") == 2
    assert out.startswith("scale <<<8, 128>>> on Made-up GPU: 41.2 µs ± ")
    found = read_profile(project / "p.json")
    assert [one.grid for one in found.launches] == [(8, 1, 1), (4, 1, 1)]
    for one in found.launches:
        assert one.read_number("gpu__time_duration.sum") == pytest.approx(41_200), "not that of the sampled launch"
        assert one.samples.total_samples == samples
        assert one.call_stack == ()
    assert not (project / "complaints").exists()
    assert "one launch more" in found.problems[-1].message


def test_without_permission_it_is_timed_alone_and_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_CUDA", "enable=35")
    assert profile() == 0
    out, err = capsys.readouterr()
    assert "samples" not in out
    assert err.count("lets only administrators read") == 2, "the words for Nsight Compute, and what was done"
    assert "timed alone, not sampled" in err
    document = json.loads((project / "p.json").read_text())
    assert [one["samples"] for one in document["launches"]] == [[], []]
    assert document["launches"][0]["duration_ns"] == pytest.approx(41_200)


def test_without_cupti_it_is_timed_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPA_LSP_CUPTI", str(project / "libcupti.so.99"))
    assert profile() == 0
    assert "timed alone, not sampled: nothing was measured: no CUPTI was found" in capsys.readouterr().err
    assert len(read_profile(project / "p.json").launches) == 2


def test_timing_takes_no_samples(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("--timing") == 0
    assert "sample" not in capsys.readouterr().out


def test_what_is_of_programs_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("--continuous") == 2
    assert "adds up launches of a program" in capsys.readouterr().err
    assert not (project / "p.json").exists()


def test_a_launch_that_fails_ends_neither_command_nor_what_is_next(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "times").write_text("fails")
    assert profile() == 1
    assert capsys.readouterr().err.count("CUDA_ERROR_ILLEGAL_ADDRESS") == 2
    (project / "times").write_text("41200")
    assert profile() == 0
