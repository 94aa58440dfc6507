"""Whole runs: ``gpa-lsp profile --sampler cupti``, and readers of its profile."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.pipeline import analyse
from tests.collector.built import CUBIN, KERNEL, SAMPLES_OF_AN_INSTRUCTION, build, make_variables
from tests.conftest import make_cache
from tests.patience import LIMIT_S, wait_until

_PCS = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", make_cache(tmp_path))
    return tmp_path


def measure(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
    words: tuple[str, ...] = (),
    launches: int = 8,
    fake: str = "",
) -> int:
    """Run the command on the application."""
    built = build()
    for name, value in make_variables(built, folder, f"major=7,{fake}").items():
        monkeypatch.setenv(name, value)
    program = [str(built.application), str(CUBIN), KERNEL, str(launches), *words]
    return main(["profile", "--sampler", "cupti", "-o", "p.json", *options, "--", *program])


def read(folder: Path) -> Profile:
    """The profile that was written, with nothing wrong in it."""
    profile = read_profile(folder / "p.json")
    assert not [problem for problem in profile.problems if problem.severity.value == "error"]
    assert not (folder / "complaints").exists()
    return profile


def test_each_place_and_shape_is_measured_a_few_times(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch) == 0
    profile = read(folder)
    assert [launch.grid for launch in profile.launches] == [(8, 1, 1), (16, 1, 1)] * 3
    for launch in profile.launches:
        assert launch.samples.total_samples == _PCS * SAMPLES_OF_AN_INSTRUCTION
        assert np.all(launch.samples.latency_samples <= launch.samples.all_samples)
        assert set(launch.samples.reasons) == {"long_scoreboard", "selected", "wait"}
        assert launch.read_number("gpu__time_duration.sum") == 20000
        assert launch.read_count("launch__registers_per_thread") == 32
        assert launch.sampling_period_cycles == 2048
        assert (launch.device.name, launch.device.sm_count) == ("Made-up GPU", 108)
    assert next(iter(profile.modules.values())).image == CUBIN.read_bytes()


def test_what_was_measured_is_advised_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(folder, monkeypatch) == 0
    capsys.readouterr()
    assert main(["advise", "p.json"]) == 0
    assert "shared_reduction   20.0 µs × 6" in capsys.readouterr().out
    assert main(["report", "p.json", "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    stacks = {tuple(frame.split(" at ")[0] for frame in launch["call_stack"]) for launch in kernel["launches"]}
    assert stacks == {("launch_small", "train", "main"), ("launch_large", "train", "main")}
    assert main(["report", "p.json", "--details"]) == 0
    assert "Launched from\n  20.0 µs × 3: launch_small at " in capsys.readouterr().out


def test_launches_from_different_places_are_told_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch) == 0
    (kernel,) = analyse([folder / "p.json"]).kernels
    places = list_launch_places(kernel)
    assert [place.launches for place in places] == [3, 3]
    assert len({place.name for place in places}) == 2
    assert all(place.name.startswith("application.c:") for place in places)
    every = np.zeros_like(kernel.instructions.all_samples)
    for own in kernel.places:
        every[own.rows] += own.all_samples
    assert np.array_equal(every, kernel.instructions.all_samples), "no sample is lost or told twice"
    assert main(["report", "p.json", "--html", "-o", "page.html"]) == 0


def test_continuous_sampling_makes_one_record_of_a_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch, "--continuous", words=("capture",)) == 0
    by_name = {launch.mangled_name: launch for launch in read(folder).launches}
    launch = by_name[KERNEL]
    assert (launch.aggregate.launches, launch.grid, launch.read_number("gpu__time_duration.sum")) == (8, None, 20000)
    assert launch.samples.total_samples == 8 * _PCS * SAMPLES_OF_AN_INSTRUCTION
    assert by_name["of_a_graph"].samples is None or by_name["of_a_graph"].samples.total_samples == 0


def test_without_permission_kernels_are_timed_and_the_reader_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(folder, monkeypatch, fake="enable=35") == 0
    error = capsys.readouterr().err
    assert "gpa-lsp: the driver lets only administrators read the GPU's performance counters\n" in error
    assert "  - Linux: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'" in error
    profile = read(folder)
    assert [launch.samples for launch in profile.launches] == [None] * 6
    assert profile.launches[0].module_id == 0  # found by the kernel's name
    assert [launch.read_number("gpu__time_duration.sum") for launch in profile.launches] == [20000] * 6
    assert any("timed, not sampled" in problem.message for problem in profile.problems)


def test_what_graphs_launch_is_timed_and_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch, words=("capture",)) == 0
    profile = read(folder)
    (launch,) = [launch for launch in profile.launches if launch.mangled_name == "of_a_graph"]
    assert (launch.samples, launch.grid, launch.read_number("gpu__time_duration.sum")) == (None, (3, 1, 1), 20000)
    assert "1 launch ran in CUDA graphs: timed, not sampled one by one" in [one.message for one in profile.problems]


def test_under_the_name_of_a_report_it_is_still_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors ask for it so: ``gpa-lsp profile --sampler cupti -o ${output} -- ./app``."""
    assert measure(folder, monkeypatch, "-o", "p.ncu-rep") == 0
    assert read_profile(folder / "p.ncu-rep").format_name == "gpa-lsp/profile/2"


def test_timing_alone_asks_for_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(folder, monkeypatch, "--timing", fake="enable=35") == 0
    assert "administrators" not in capsys.readouterr().err
    assert len(read(folder).launches) == 6


def test_launches_are_chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch, "--kernel", "shared_red", "--launch-count", "2", "--skip", "3") == 0
    assert [launch.grid for launch in read(folder).launches] == [(16, 1, 1), (8, 1, 1)]
    assert measure(folder, monkeypatch, "--launch-count", "0") == 0
    assert len(read(folder).launches) == 8
    assert measure(folder, monkeypatch, "--kernel", "no_such") == 1


def test_another_profiler_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(folder, monkeypatch, fake="subscribed=1") == 1
    assert "another profiler is at work in the program" in capsys.readouterr().err
    assert not (folder / "p.json").exists()


def test_a_program_without_cuda(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build()
    assert main(["profile", "--sampler", "cupti", "--", sys.executable, "-c", ""]) == 1
    assert "no process of the program started CUDA" in capsys.readouterr().err
    assert main(["profile", "--sampler", "cupti", "--", "./no-such-program"]) == 2


def test_what_a_killed_program_did_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(folder, monkeypatch, words=("kill",)) == 1
    assert len(read(folder).launches) == 6
    assert "did not end by itself" in capsys.readouterr().err


def test_at_the_limit_everything_ends_and_what_was_measured_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measure(folder, monkeypatch, "--seconds", "3", words=("pause",), launches=100_000) == 1
    assert len(read(folder).launches) == 6
    mark = str(build().application).encode()
    wait_until(lambda: not any(mark in _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--full"], "--full is for Nsight Compute"),
        (["--nvtx", "step/"], "--nvtx is for Nsight Compute"),
        (["--duty", "50"], "--duty is for continuous sampling"),
        (["--timing", "--continuous"], "--timing takes no samples"),
    ],
)
def test_options_of_the_other_way_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main(["profile", "--sampler", "cupti", *options, "--", "./app"]) == 2
    assert words in capsys.readouterr().err


def test_nothing_is_left_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(folder, monkeypatch) == 0
    assert list((folder / "cache" / "collecting").iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == ["cache", "p.json"]
    assert (folder / "cache" / "collecting").stat().st_mode & 0o077 == 0


def test_ten_million_samples_take_bounded_memory(folder: Path) -> None:
    """Program and reader never hold all samples."""
    built = build()
    variables = make_variables(built, folder, "pcs=100000,reasons=3")
    program = [str(built.application), str(CUBIN), KERNEL, "17"]
    script = (
        "import re, resource, sys\n"
        "from pathlib import Path\n"
        "from gpa_lsp.cli.main import main\n"
        f"status = main(['profile', '--sampler', 'cupti', '-o', 'p.json', '--launch-count', '1', '--', *{program!r}])\n"
        "own = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"  # of rusage our parent would be a part
        "print(status, own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, own_kib, children_kib = map(int, done.stdout.splitlines()[-1].split())
    assert status == 0
    assert own_kib < 400 << 10  # numpy and a chosen launch of 100,000 instructions included
    assert children_kib < 200 << 10  # the program, or the compiler
    document: dict[str, Any] = json.loads((folder / "p.json").read_text())
    assert len(document["launches"]) == 2
