"""``fixtures/on_a_gpu.py`` without a GPU: what it would do, what it leaves out, and what it writes down of what fails."""

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpa_lsp.cli import commands
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.main import join_words, list_names
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.catalogue import load_member
from tests.collector.built import SAMPLES_OF_AN_INSTRUCTION, build, make_variables
from tests.conftest import ROOT
from tests.patience import LIMIT_S

SCRIPT = ROOT / "fixtures" / "on_a_gpu.py"
_WORKER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from gpa_lsp.cli.main import main
from gpa_lsp.execution.local_gpu import timing
from tests.gpu.in_process import JobsHere
from tests.gpu.timed_driver import TimedDriver
timing._POOL = JobsHere(TimedDriver([TIME], free_bytes=1 << 32))
sys.exit(main())
"""


@pytest.fixture
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("on_a_gpu", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["on_a_gpu"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["on_a_gpu"]


def run(*words: str, path: str | None = None) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | ({} if path is None else {"PATH": path})
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=LIMIT_S,
    )


def read_seen(folder: Path) -> dict[str, dict[str, object]]:
    return {row["step"]: row for row in json.loads((folder / "seen.json").read_text())["steps"]}


def write_program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)


def test_a_dry_run_says_what_each_step_needs_does_and_writes(script: ModuleType, tmp_path: Path) -> None:
    done = run("--dry-run", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    for step in script.STEPS:
        assert f"{step.name}: {step.what}\n  needs {', '.join(step.needs)}; writes " in done.stdout
    for words in (
        "profile --sampler cupti",
        "profile --launch",
        "profile --replay",
        "--on gpu",
        "--continuous --duty 10",
        f"--of {tmp_path}/out/launches/short_def_use/original.cu --sampler cupti",
        f"fixtures/save_client.py {tmp_path}/out/saved/short_def_use/kernel.cu",
        f"record -o {tmp_path}/out/recorded/short_def_use",
        f"record -o {tmp_path}/out/recorded/triton",
    ):
        assert words in done.stdout
    assert not (tmp_path / "out").exists()
    assert sum(step.limit_s for step in script.STEPS) > 25 * 60 > 0, "the limit of all holds, not the sum of each"
    assert str(ROOT) not in done.stdout


def test_without_a_gpu_every_step_is_left_out_and_says_why(script: ModuleType, tmp_path: Path) -> None:
    done = run("--out", str(tmp_path / "out"), path="/nowhere")
    assert done.returncode == 0
    seen = read_seen(tmp_path / "out")
    assert list(seen) == [step.name for step in script.STEPS]
    assert {row["outcome"] for row in seen.values()} == {"left out"}
    assert seen["reports"]["missing"] == ["nvcc", "ncu", "nvidia-smi"]


def test_what_a_step_prints_and_finds_is_written_down(tmp_path: Path) -> None:
    write_program(tmp_path / "bin", "nvidia-smi", "print('A GPU, 580.1, 9.0, 1980, 2619, 81559')")
    done = run("--out", str(tmp_path / "out"), "--only", "machine", path=str(tmp_path / "bin"))
    assert done.returncode == 0, done.stderr
    row = read_seen(tmp_path / "out")["machine"]
    assert row["outcome"] == "done"
    assert row["found"]["gpu"] == "A GPU, 580.1, 9.0, 1980, 2619, 81559"  # type: ignore[index]
    commands = row["commands"]
    assert isinstance(commands, list) and [one["exit"] for one in commands] == [0, 0]


def test_a_step_that_fails_costs_itself(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_program(tmp_path / "bin", "nvidia-smi", "import sys; print('no devices'); sys.exit(9)")
    write_program(tmp_path / "bin", "nvcc", "import sys; sys.exit(1)")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(script, "STEPS", script.STEPS[:3])
    monkeypatch.setattr(sys, "argv", ["on_a_gpu.py", "--out", str(tmp_path / "out")])
    assert script.main() == 1
    seen = read_seen(tmp_path / "out")
    assert {name: row["outcome"] for name, row in seen.items()} == {
        "machine": "failed",
        "pairs": "failed",
        "reports": "left out",
    }
    assert "ended with 9" in str(seen["machine"]["why"]) and "ended with 9" in capsys.readouterr().err


def test_a_command_that_hangs_is_ended_with_all_that_it_started(script: ModuleType, tmp_path: Path) -> None:
    bench = script.Bench(folder=tmp_path, deadline=time.monotonic() + LIMIT_S, dry=False)
    pid = tmp_path / "pid"
    text = f"import subprocess, sys, time; p = subprocess.Popen(['sleep', '3600']); open({str(pid)!r}, 'w').write(str(p.pid)); time.sleep(3600)"
    write_program(tmp_path / "bin", "hang", text)
    with pytest.raises(script.StepError, match="took too long"):
        bench.run(tmp_path / "bin" / "hang", limit_s=3)
    end = time.monotonic() + LIMIT_S
    while pid.exists() and Path(f"/proc/{pid.read_text()}/cmdline").exists() and time.monotonic() < end:
        if not Path(f"/proc/{pid.read_text()}/cmdline").read_bytes():
            break  # it has ended, and waits to be asked
        time.sleep(0.05)
    assert (
        not pid.exists()
        or not Path(f"/proc/{pid.read_text()}/cmdline").exists()
        or not Path(f"/proc/{pid.read_text()}/cmdline").read_bytes()
    )


def test_launches_are_timed_with_the_sizes_of_their_recipes(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(_WORKER.replace("TIME", "0.25"))
    monkeypatch.setattr(script, "GPA", (sys.executable, str(worker)))
    monkeypatch.setattr(script, "TWINS", (("short_def_use", "original"), ("short_def_use", "improved")))
    bench = script.Bench(folder=tmp_path / "out", deadline=time.monotonic() + LIMIT_S, dry=False)
    (step,) = (one for one in script.STEPS if one.name == "launches")
    monkeypatch.setattr(script, "is_there", lambda *_: True)
    row = script.do_step(step, bench)
    assert row["outcome"] == "done", row
    assert row["found"]["medians_ns"] == {"short_def_use_original": 250_000, "short_def_use_improved": 250_000}
    profile = json.loads((tmp_path / "out" / "timed" / "short_def_use_original.gpa-profile.json").read_text())
    assert (profile["launches"][0]["grid"], profile["launches"][0]["block"]) == ([256, 1, 1], [256, 1, 1])
    worker.write_text(_WORKER.replace("TIME", "0.0001"))
    assert "less than half a microsecond" in script.do_step(step, bench)["why"]


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver and a CUPTI of ours; returns the file that says how long launches take."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    times = tmp_path / "times"
    times.write_text("41200")
    for name, value in make_variables(build(), tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAKE_CUDA_TIMES", str(times))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return times


_EDITING_CLIENT = """
import sys
from pathlib import Path
sys.path.insert(0, FIXTURES)
import save_client
class Client(save_client.Client):
    def notify(self, method, params):
        if method == "textDocument/didChange":
            Path(TIMES).write_text("20600")
        super().notify(method, params)
save_client.Client = Client
sys.exit(save_client.main())
"""


def test_an_edit_is_timed_on_save(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: Path
) -> None:
    monkeypatch.setattr(script, "PAIRS", ("short_def_use",))
    monkeypatch.setattr(script, "is_there", lambda *_: True)
    bench = script.Bench(folder=tmp_path / "out", deadline=time.monotonic() + LIMIT_S, dry=False)
    (step,) = (one for one in script.STEPS if one.name == "saves")
    row = script.do_step(step, bench)
    assert row["outcome"] == "failed" and "changed nothing" in row["why"], "the made-up driver runs no code"
    client = tmp_path / "client.py"
    fixtures = repr(str(SCRIPT.parent))
    client.write_text(_EDITING_CLIENT.replace("FIXTURES", fixtures).replace("TIMES", repr(str(gpu))))
    monkeypatch.setattr(script, "SAVE_CLIENT", client)
    gpu.write_text("41200")
    row = script.do_step(step, bench)
    assert row["outcome"] == "done", row
    found = row["found"]["short_def_use"]
    assert found["lenses"][0].startswith("measured 41.2 µs")
    assert found["lenses"][1].startswith("measured 20.6 µs") and found["lenses"][1].endswith(
        ", 50 % faster than before your edit"
    )
    assert len(found["questions"]) == 2, "once for each save"


def test_described_launches_are_timed_and_sampled(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: Path
) -> None:
    monkeypatch.setattr(script, "PAIRS", ("short_def_use",))
    monkeypatch.setattr(script, "is_there", lambda *_: True)
    bench = script.Bench(folder=tmp_path / "out", deadline=time.monotonic() + LIMIT_S, dry=False)
    (step,) = (one for one in script.STEPS if one.name == "described")
    row = script.do_step(step, bench)
    assert row["outcome"] == "done", row
    found = row["found"]["short_def_use"]
    assert found["duration_ns"] == [41_200] and found["samples"] == 4 * SAMPLES_OF_AN_INSTRUCTION
    monkeypatch.setenv("FAKE_CUDA", "enable=35")
    assert "may counters be read here?" in script.do_step(step, bench)["why"]


def _make_row(
    opcode: str, pc_offset: int, *, stall: int, wait: int = 0, mask: int = 0, sets: int | None = None
) -> dict[str, object]:
    reasons = {"wait": {"all": wait, "latency": wait}, "not_selected": {"all": 2, "latency": 0}}
    if mask:
        reasons["short_scoreboard"] = {"all": 9, "latency": 7}
    control = {"stall_cycles": stall, "wait_mask": mask, "write_barrier": sets}
    return {
        "function": 0,
        "pc_offset": pc_offset,
        "opcode": opcode,
        "executions": 100,
        "by_reason": reasons,
        "control": control,
    }


def test_questions_are_answered_by_a_report(tmp_path: Path) -> None:
    rows = [
        _make_row("LDC.64", 0, stall=1, sets=2),
        _make_row("IADD3", 16, stall=5, wait=0),
        _make_row("FFMA", 32, stall=9, wait=4, mask=0b100),
        _make_row("LDG.E", 48, stall=2, wait=8, sets=2),
        _make_row("STG.E", 64, stall=1, wait=1, mask=0b100),
    ]
    report = tmp_path / "r.json"
    report.write_text(json.dumps({"kernels": [{"instructions": rows}]}))
    command = [sys.executable, str(SCRIPT.with_name("settle.py")), str(report), "--after", "LDC"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout)
    assert found["after"] == {"LDC": {"short_scoreboard": 7, "wait": 4}}
    assert found["wait"] == {"instructions": 4, "correlation": 1.0, "cycles_per_sample": 100.0}
    assert found["not_selected"] == {"latency": 0, "all": 10}


_RECORDER = """
words = sys.argv[1:]
if words[0] == "record":
    from pathlib import Path
    from gpa_lsp.execution.record.describe import describe_launches
    from gpa_lsp.execution.record.python_programs import HeldKernel
    from gpa_lsp.code.ptx.source_parameters import SourceParameter
    from tests.record.test_describing import write_raw
    folder = Path(words[2])
    folder.mkdir(parents=True)
    (folder / "raw").mkdir()
    write_raw(folder / "raw")
    names = tuple(SourceParameter(name=one, type="i32", is_pointer=one != "value") for one in ("out", "x", "value"))
    describe_launches(folder / "raw", folder / "raw", folder, [HeldKernel(framework="Triton", kernel="add", parameters=names)])
    print("triton_softmax: right")
    sys.exit(0)
if "gpu" in words:
    words[words.index("gpu")] = "emulator"
sys.argv[1:] = words
"""


@pytest.mark.parametrize("name", ["recorders", "python"])
def test_what_is_recorded_is_timed_simulated_and_traced(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if find_tool("nvdisasm") is None or find_tool("ptxas") is None:
        pytest.skip("nvdisasm or ptxas is not installed")
    worker = tmp_path / "worker.py"
    path, _, rest = _WORKER.replace("TIME", "0.25").partition("from gpa_lsp.cli")
    worker.write_text(f"{path}{_RECORDER}from gpa_lsp.cli{rest}")
    monkeypatch.setattr(script, "GPA", (sys.executable, str(worker)))
    monkeypatch.setattr(script, "PAIRS", ("add",))
    monkeypatch.setattr(script, "PYTHON_PROGRAMS", {"triton": ("triton_softmax.py", "add")})
    monkeypatch.setattr(script, "find_driver", lambda *_: ["driver"])
    monkeypatch.setattr(script, "is_there", lambda *_: True)
    bench = script.Bench(folder=tmp_path / "out", deadline=time.monotonic() + LIMIT_S, dry=False)
    (step,) = (one for one in script.STEPS if one.name == name)
    row = script.do_step(step, bench)
    assert row["outcome"] == "done", row
    assert row["found"]["add"] == "equal"
    commands = [join_words(one["command"][2:])[0] for one in row["commands"]]
    assert commands == ["record", "profile", "predict stalls", "predict trace", "predict", "predict trace", "predict"]


def test_what_is_written_down_names_no_folder_of_the_machine(script: ModuleType) -> None:
    assert script.hide(f"{ROOT}/fixtures/driver.cu") == "./fixtures/driver.cu"
    assert script.hide(f"{ROOT}_other/out") == f"{ROOT}_other/out"
    assert str(Path.home()) not in script.hide(str(Path.home() / "x")) or str(Path.home()) == "/"


def test_commands_of_every_step_are_those_of_the_program(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands are checked here so that none fails on a day with a GPU because a word has changed."""
    bench = script.Bench(folder=Path("out"), deadline=0.0, dry=True)
    for step in script.STEPS:
        step.do(bench)
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if "gpa_lsp" in line]
    assert len(lines) > 30
    known = list_names()
    for words in lines:
        name, *rest = join_words(words[words.index("gpa_lsp") + 1 :])
        parser = argparse.ArgumentParser()
        load_member(commands, known[name], "COMMAND", Command).add_arguments(parser)
        parser.parse_args(rest)


def test_a_module_whose_package_is_missing_is_not_there(script: ModuleType, tmp_path: Path) -> None:
    bench = script.Bench(folder=tmp_path, deadline=0.0, dry=False)
    assert not script.is_there("import nowhere_at_all.bindings", bench)
    assert script.is_there("import json", bench)


def test_whatever_a_step_stumbles_over_costs_that_step(script: ModuleType, tmp_path: Path) -> None:
    def stumble(_: object) -> None:
        raise IndexError("no launch")

    bench = script.Bench(folder=tmp_path, deadline=time.monotonic() + LIMIT_S, dry=False)
    row = script.do_step(script.Step("stumbles", "nothing", (), (), stumble, 1), bench)
    assert (row["outcome"], row["why"]) == ("failed", "IndexError: no launch")
