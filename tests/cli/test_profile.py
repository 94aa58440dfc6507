"""``gpa-lsp profile`` with a profiler that is a script."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.profile.collect.recipe import Recipe, build_command
from tests.collect.processes import hear_interrupts, is_alive
from tests.collect.scripts import write_program
from tests.conftest import ROOT
from tests.patience import LIMIT_S, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are scripts with #!")

FAKE = """
import os, sys, time
arguments = sys.argv[1:]
if arguments == ["--help"]:
    print("  --sampling-interval arg (=auto)")
    sys.exit()
def write():
    report = arguments[arguments.index("--export") + 1]
    open(report, "w").write(os.environ.get("FAKE_CONTENT", "NVR"))
print("==PROF== Connected to process 1", flush=True)
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPA_LSP_NCU", raising=False)
    return tmp_path


def run(folder: Path, body: str, *options: str) -> int:
    ncu = write_program(folder / "ncu", FAKE + body)
    return main(["profile", "--ncu", ncu, *options, "--", "./app", "--size", "3"])


def test_a_report_is_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "write(); print('from the program', file=sys.stderr)") == 0
    captured = capfd.readouterr()
    assert captured.out == "==PROF== Connected to process 1\n"
    assert captured.err.splitlines() == [
        "from the program",
        "gpa-lsp: the report is profile.ncu-rep; next: gpa-lsp advise profile.ncu-rep",
    ]
    assert (folder / "profile.ncu-rep").read_text() == "NVR"


def test_the_report_goes_where_it_is_asked_to(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "my reports").mkdir()
    assert run(folder, "write()", "-o", "my reports/a.ncu-rep") == 0
    assert "gpa-lsp advise 'my reports/a.ncu-rep'" in capfd.readouterr().err


def test_failures_are_explained(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failing = "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'); sys.exit(1)"
    assert run(folder, failing) == 1
    error = capfd.readouterr().err
    assert "gpa-lsp: the driver lets only administrators read the GPU's performance counters\n" in error
    assert "  - Linux: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'" in error
    assert "  see https://developer.nvidia.com/ERR_NVGPUCTRPERM" in error


def test_an_old_report_is_not_taken_for_a_new_one(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "profile.ncu-rep").write_text("old")
    assert run(folder, "") == 1
    assert capfd.readouterr().err == "gpa-lsp: Nsight Compute succeeded, but wrote no report\n"
    assert run(folder, "write()") == 0


def test_a_report_of_nothing_is_no_success(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "write(); print('==WARNING== No kernels were profiled.')") == 1
    error = capfd.readouterr().err
    assert "gpa-lsp: no kernel was measured" in error
    assert "the report is profile.ncu-rep" in error


def test_the_end_by_a_signal(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "os.kill(os.getpid(), 11)") == 1
    assert "ended by SIGSEGV" in capfd.readouterr().err


def test_a_profiler_that_cannot_be_started(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = folder / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    assert main(["profile", "--ncu", str(broken), "--", "./app"]) == 2
    assert "the command could not be started" in capfd.readouterr().err


def test_the_application_reads_our_standard_input(folder: Path) -> None:
    ncu = write_program(folder / "ncu", FAKE + "print('read', sys.stdin.read()); write()")
    done = subprocess.run(
        [sys.executable, "-m", "gpa_lsp", "profile", "--ncu", ncu, "--", "./app"],
        input="what was sent",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    assert "read what was sent" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_ends_us_ends_the_profiler(folder: Path, number: int) -> None:
    ncu = write_program(folder / "ncu", FAKE + "open('started', 'w').write(str(os.getpid())); time.sleep(3600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "gpa_lsp", "profile", "--ncu", ncu, "--", "./app"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
    )
    started = folder / "started"
    wait_until(lambda: started.exists() and started.read_text(), started)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == (130 if number == signal.SIGINT else 1)
    assert ("ended by SIGTERM" in error) == (number == signal.SIGTERM)
    profiler = int((folder / "started").read_text())
    wait_until(lambda: not is_alive(profiler), "the end of the profiler")


def test_the_command_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--print", "--kernel", "f<int>(", "-o", "a b.ncu-rep", "--", "./app", "--", "$x"]) == 0
    printed = capsys.readouterr().out
    expected = build_command(Recipe(output=Path("a b.ncu-rep"), kernel="f<int>("), ["./app", "--", "$x"])
    assert shlex.split(printed) == list(expected)


def test_a_dry_run_runs_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "write()", "--dry-run") == 0
    assert capfd.readouterr().out.startswith(f"{folder}/ncu --section SourceCounters")
    assert not (folder / "profile.ncu-rep").exists()


def test_options_of_the_sampler_are_spelled_as_the_profiler_knows_them(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "", "--dry-run", "--sampling-interval", "3") == 0
    assert " --sampling-interval 3 " in capfd.readouterr().out
    assert main(["profile", "--print", "--sampling-interval", "3", "--", "./app"]) == 0
    assert " --warp-sampling-interval 3 " in capfd.readouterr().out


def test_every_option_reaches_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    options = shlex.split(
        "--full --roofline --section Nvlink --metric a__b.sum --no-metrics --launch-count 0 --skip 2 --replay-mode application "
        "--clock-control base --cache-control none --sampling-interval 1 --sampling-buffer-size 64 --source-folder /s "
        "--nvtx step/ --from-profiler-start --option=--graph-profiling --option=graph"
    )
    assert main(["profile", "--print", *options, "--", "./app"]) == 0
    recipe = Recipe(
        output=Path("profile.ncu-rep"),
        is_full=True,
        has_rooflines=True,
        sections=("Nvlink",),
        metrics=("a__b.sum",),
        has_metrics=False,
        launches=0,
        skipped_launches=2,
        replay_mode="application",
        clock_control="base",
        cache_control="none",
        sampling_interval=1,
        sampling_buffer_bytes=64,
        source_folders=("/s",),
        nvtx_ranges=("step/",),
        starts_enabled=False,
        options=("--graph-profiling", "graph"),
    )
    assert shlex.split(capsys.readouterr().out) == list(build_command(recipe, ["./app"]))


def test_bad_usage(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["profile"]) == 2
    assert "no program to measure" in capsys.readouterr().err
    assert main(["profile", "--sampling-interval", "32", "--", "./app"]) == 2
    assert main(["profile", "--launch-count", "x", "--", "./app"]) == 2
    ncu = write_program(folder / "ncu", FAKE)
    assert main(["profile", "--ncu", ncu, "-o", "nowhere/a.ncu-rep", "--", "./app"]) == 2
    assert "nowhere: there is no such folder; create it, or choose another place" in capsys.readouterr().err
    assert main(["profile", "--ncu", "/nowhere/ncu", "--", "./app"]) == 2


def test_the_defaults_are_those_of_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--print", "--", "./app"]) == 0
    command = build_command(Recipe(output=Path("profile.ncu-rep")), ["./app"])
    assert shlex.split(capsys.readouterr().out) == list(command)
