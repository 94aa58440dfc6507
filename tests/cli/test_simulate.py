"""``gpa-lsp predict stalls``: what it writes, and what it says where it cannot."""

import json
import re
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.profile.read import read_profile
from tests.prediction.kernels import write_project


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["predict", "stalls", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))  # other tests measure a kernel of the same name
    return write_project(tmp_path)


def test_a_source_becomes_a_profile_that_other_commands_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, "kernels.cu", "--kernel", "transpose", "--machine", "RTX 3090", "-o", "t.gpa-profile.json"
    )
    assert (code, err) == (0, "")
    assert out.startswith("transpose<float, 32> on RTX 3090: ")
    assert "(simulated)" in out and out.endswith("written to t.gpa-profile.json\n")
    (launch,) = read_profile(project.parent / "t.gpa-profile.json").launches
    assert launch.samples is not None
    assert launch.samples.total_samples > 0
    assert main(["check", "t.gpa-profile.json"]) == 0
    assert "simulated, not measured" in "".join(capsys.readouterr())
    assert main(["advise", "t.gpa-profile.json"]) == 0
    assert re.search(r"^transpose<float, 32>   [\d.]+ .s simulated   RTX 3090$", capsys.readouterr().out, re.MULTILINE)
    assert main(["history", "--record", "t.gpa-profile.json"]) == 2
    capsys.readouterr()
    assert main(["history"]) == 0
    assert "transpose" not in capsys.readouterr().out, "what a model says is no measurement to be remembered"


def test_a_prediction_keeps_its_simulated_stalls_as_a_profile(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", "kernels.cu", "--kernel", "transpose", "--machine", "RTX 3090", "-o", "t.gpa-profile.json"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("transpose<float, 32>\n") and "stalled" in printed.out
    assert printed.err.endswith("note: simulated stalls are written to t.gpa-profile.json\n")
    (launch,) = read_profile(project.parent / "t.gpa-profile.json").launches
    assert launch.samples is not None and launch.samples.total_samples > 0
    assert main(["advise", "t.gpa-profile.json"]) == 0
    assert "transpose<float, 32>" in capsys.readouterr().out


def test_every_described_launch_is_simulated(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "kernels.cu", "--kernel", "saxpy")
    assert code == 0
    assert out.count("saxpy on ") == 2
    document = json.loads((project.parent / "kernels.simulated.gpa-profile.json").read_text())
    assert [one["metrics"]["gpa_lsp__simulated"] for one in document["launches"]] == [1, 1]


def test_a_source_without_a_launch_is_simulated_with_what_it_says(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.parent / "kernels.launch.toml").unlink()
    code, out, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--sizes", "n = 12800", "-o", "s.gpa-profile.json")
    assert code == 0 and out.startswith("saxpy on ")
    assert "kernels.cu: launches are as the source says; describe them: gpa-lsp predict trace --template " in err
    (launch,) = read_profile(Path("s.gpa-profile.json")).launches
    assert (launch.grid, launch.block) == ((50, 1, 1), (256, 1, 1))


@pytest.fixture
def measured(project: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A report of simulated stalls, taken for measured."""
    assert run(capsys, "kernels.cu", "--kernel", "transpose", "--machine", "A100", "-o", "m.gpa-profile.json")[0] == 0
    path = project.parent / "m.gpa-profile.json"
    document = json.loads(path.read_text())
    for launch in document["launches"]:
        del launch["sampling"]["is_simulated"]
        launch["duration_ns"] *= 2
    path.write_text(json.dumps(document))
    return path


def test_measured_and_simulated_samples_stand_side_by_side(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--launches", "kernels.launch.toml", "--compare", "--page", "both.html")
    code, out, _ = run(capsys, measured.name, *arguments)
    assert code == 0
    assert re.search(r"^transpose<float, 32>.*: measured and simulated$", out, re.MULTILINE), out
    shares = re.search(r"([\d.]+) % of the samples have the same stall reason on both sides", out)
    assert shares is not None and float(shares[1]) > 90
    assert "on both sides; the hottest instruction is the same" in out
    assert re.search(r"It took [\d.]+ .s and was simulated to take [\d.]+ .s, \d+ % less\.", out), out
    lines = out.splitlines()
    assert lines.index("  Warp states") < lines.index("  Source lines")
    assert any(re.match(r"    kernels\.cu:\d+ +all +[\d.]+ % +[\d.]+ %$", line) for line in lines)
    page = Path("both.html").read_text()
    assert "What the profiler sampled beside what the model says" in page and "Source lines" in page


def test_nothing_to_compare_is_no_comparison(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(measured.read_text())
    for launch in document["launches"]:
        launch["sampling"]["is_simulated"] = True
    measured.write_text(json.dumps(document))
    code, _, err = run(capsys, measured.name, "--launches", "kernels.launch.toml", "--compare")
    assert code == 2
    assert "no kernel has samples on both sides" in err


def test_the_paper_gives_a_time_and_no_profile(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("kernels.cu", "--kernel", "transpose", "--machine", "RTX 3090", "--mode")
    code, out, err = run(capsys, *asked, "paper", "--show-trace")
    assert (code, err) == (0, "")
    title, time, second, busiest, head, _, *trace = out.splitlines()
    assert title == "transpose<float, 32> on RTX 3090"
    assert re.fullmatch(r"  [\d,]+ cycles, [\d.]+ .s \(estimated by Equation 8 of the paper\)", time)
    assert re.fullmatch(
        r"  \d+ blocks? a round in [\d,]+ cycles, [\d.]+ operations a warp, [\d.]+ % of transactions hit", second
    )
    assert re.fullmatch(r"  the busiest is (global|shared) memory, for [\d.]+ % of a round", busiest)
    assert head == "  Trace, by basic block"
    assert any(re.fullmatch(r"    \d+(–\d+)? +[\d,]+ +[\d,]+  .*", one) for one in trace)
    code, printed, _ = run(capsys, *asked, "printed")
    assert code == 0 and printed.splitlines()[1] != time, "as printed, without what GPUs of today need"
    assert not list(project.parent.glob("*.gpa-profile.json"))


def test_a_loop_that_data_ends_follows_the_data_or_a_bound(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = """__global__ void walk(const int *next, int *out)
{
    int at = threadIdx.x, steps = 0;
    while (next[at] != at) {
        at = next[at];
        ++steps;
    }
    out[threadIdx.x] = steps;
}
"""
    (project.parent / "walk.cu").write_text(source)
    (project.parent / "walk.launch.toml").write_text(
        """[[launch]]
kernel = "walk"
block = 32
grid = 1
arguments = [{ name = "next", type = "int", count = 32 }, { name = "out", type = "int", count = 32 }]
"""
    )
    code, out, err = run(capsys, "walk.cu", "--mode", "paper", "--show-trace")
    assert (code, err) == (0, "")
    assert "  loops, branches and addresses follow the data that is described" in out
    assert "  loop, lines 4 to 6: bound 1" in out.splitlines()
    assert "  branch, line 4: of 1 visit by warps 1 miss the jump and 0 what follows" in out.splitlines()
    code, out, err = run(capsys, "walk.cu", "--mode", "paper", "--loop-bound", "9", "--show-trace")
    assert (code, err) == (0, "")
    assert "bound 9, as given" in out
    code, out, err = run(capsys, "walk.cu", "--loop-bound", "9")
    assert (code, out) == (2, "")
    assert "add --mode paper" in err
    description = project.parent / "walk.launch.toml"
    description.write_text(description.read_text() + 'guesses = ["next"]\n')
    code, out, err = run(capsys, "walk.cu", "--mode", "paper")
    assert (code, out) == (2, "")
    assert "the loop at line 4 ends where the data says" in err


def test_what_a_name_of_a_gpu_was_taken_for_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "kernels.cu", "--kernel", "transpose", "--machine", "A100 80GB")
    assert code == 0
    assert " on A100 PCIe 80GB: " in out and "s (simulated)" in out and "±" not in out
    assert "it could be the A100 SXM4 80GB" in err


_CUBIN = Path(__file__).parents[2] / "fixtures" / "cubins" / "sm_80" / "short_def_use_original.cubin"
_LAUNCH = """[[launch]]
kernel = "short_def_use"
grid = 64
block = 256
arguments = [
  { name = "in", type = "float", count = 131072 },
  { name = "out", type = "float", count = 16384 },
  { name = "n", type = "int", value = 16384 },
  { name = "steps", type = "int", value = 8 },
]
"""


def test_code_of_a_generation_is_simulated_on_its_gpus_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.launch.toml").write_text(_LAUNCH)
    arguments = (str(_CUBIN), "--launches", "one.launch.toml", "--machine")
    code, out, err = run(capsys, *arguments, "RTX 3090")
    assert code == 0, err
    assert " on RTX 3090: " in out and "This is code for sm_80, but the RTX 3090 is sm_86" in err
    code, out, err = run(capsys, *arguments, "T4")
    assert (code, out) == (2, "")
    assert "there is machine code for sm_80, and none that the T4 executes (sm_75)" in err


def test_code_without_ptx_is_simulated_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.launch.toml").write_text(_LAUNCH)
    with_ptx = run(capsys, str(_CUBIN), "--launches", "one.launch.toml")
    monkeypatch.setattr("gpa_lsp.execution.compiler.ptx_files.read_embedded_ptx", lambda cubin: ())
    without = run(capsys, str(_CUBIN), "--launches", "one.launch.toml")
    assert (with_ptx[0], with_ptx[2]) == (0, "")
    assert without == with_ptx
    code, _, err = run(capsys, str(_CUBIN), "--launches", "one.launch.toml", "--mode", "paper")
    assert code == 2
    assert "its PTX is not there, in which the paper's loops and branches are found" in err


def test_profiles_of_two_reports_have_names_of_their_own(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = measured.with_name("run.2022.3.gpa-profile.json")
    measured.rename(report)
    code, out, _ = run(capsys, report.name, "--launches", "kernels.launch.toml")
    assert code == 0
    assert out.endswith("written to run.2022.3.simulated.gpa-profile.json\n")


def test_accesses_outside_of_the_arrays_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.launch.toml").write_text(_LAUNCH.replace("131072", "100000"))
    code, _, err = run(capsys, str(_CUBIN), "--launches", "one.launch.toml")
    assert code == 0
    assert "one.launch.toml: line 1: 1 instruction of short_def_use accesses memory outside" in err
    assert "(original.cu:" in err and "describe the arrays as large as they are" in err


def test_of_a_report_the_gpu_may_be_another_but_not_the_code(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (measured.name, "--launches", "kernels.launch.toml")
    code, out, err = run(capsys, *arguments, "--machine", "V100")
    assert (code, " on V100 SXM2: " in out) == (0, True)
    assert "V100 was taken as the V100 SXM2; it could be the V100 PCIe" in err
    assert "This is code for sm_80, but the V100 SXM2 is sm_70" in err
    code, out, err = run(capsys, *arguments, "--arch", "sm_86")
    assert (code, out) == (2, "")
    assert "leave out --arch, or name another GPU with --machine" in err


def test_no_time_is_told_of_what_the_model_was_not_checked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.cu").write_text(
        "__global__ void histogram(const unsigned *in, unsigned *bins, int n) {\n"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)\n"
        "    atomicAdd(&bins[in[i] & 7], 1u);\n}\n"
    )
    Path("h.launch.toml").write_text(
        '[[launch]]\nkernel = "histogram"\nblock = 64\nthreads = 256\n'
        'arguments = [{ name = "in", type = "unsigned", count = 1024 }, { name = "bins", type = "unsigned", count = 8 }, '
        '{ name = "n", type = "int", value = 1024 }]\n'
    )
    code, out, _ = run(capsys, "h.cu", "--machine", "RTX 3090", "-o", "h.gpa-profile.json")
    assert code == 0
    assert "time unknown: contended atomics are not modelled (simulated)" in out
    assert "cycles," not in out
    assert main(["advise", "h.gpa-profile.json"]) == 0
    assert "time unknown" in capsys.readouterr().out
