"""``gpa-lsp predict``: sources, builds, traces and profiles; texts, JSON and pages; what goes wrong."""

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from tests.conftest import ROOT
from tests.prediction.kernels import write_project

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    return write_project(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["predict", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_text_is_headed_by_the_short_name_and_marked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "kernels.cu", "--kernel", "transpose", "--details")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "transpose<float, 32>"
    assert lines[1].startswith("  grid 4×4, block 32×32, ")
    assert "Data volumes, predicted" in lines and "Bank conflicts (emulated)" in lines
    assert str(project.parent) not in out


def test_a_launch_is_one_screen(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shown are the limit, faults and facts of lines; the rest is named."""
    code, out, _ = run(capsys, "kernels.cu", "--kernel", "transpose")
    _, details, _ = run(capsys, "kernels.cu", "--kernel", "transpose", "--details")
    lines = out.splitlines()
    headings = [line for before, line in pairwise(lines) if not before and line and not line.startswith(" ")]
    assert headings == [
        "What the run showed (emulated)",
        "Data volumes, predicted",
        "What to change",
        "Lines (emulated)",
    ]
    assert code == 0 and len(lines) <= 45 < len(details.splitlines())
    assert any(line.startswith("  ! Shared loads at line ") and "bank conflict" in line for line in lines)
    assert lines[-1] == "  left out: 9 other analyses; everything: --details, --format json, --format html"
    shown = {line for line in lines[:-1] if "emulated: all blocks" not in line}  # which says how long it took
    assert shown - {"What to change", ""} <= set(details.splitlines())


_COLUMNS = """__global__ void columns(const float* a, const float* b, float* out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = a[t * 32] + b[t * 32];
}
int main() {
  float *a, *b, *out;
  cudaMalloc(&a, 4 << 20); cudaMalloc(&b, 4 << 20); cudaMalloc(&out, 128 << 10);
  columns<<<128, 256>>>(a, b, out);
}
"""


def test_a_remedy_of_several_findings_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "columns.cu").write_text(_COLUMNS)
    code, out, _ = run(capsys, "columns.cu")
    found = re.findall(r"^  ! Loads of `([ab])`", out, re.MULTILINE)
    remedies = re.findall(r"^    → (.*)", out, re.MULTILINE)
    assert code == 0 and sorted(found) == ["a", "b"] and remedies and len(set(remedies)) == len(remedies)


def test_launches_of_one_kernel_are_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "kernels.cu", "--kernel", "saxpy")
    after = out.partition("saxpy: 2 launches\n")[2]
    assert after.startswith(
        "Launches compared (emulated)\n  Over 2 launches, “branches that diverge” varies most: 0 % to 3.1 %."
    )


def test_json_has_facts_answers_and_comparisons(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "kernels.cu", "--kernel", "saxpy", "--format", "json", "--cudaadvisor")
    found = json.loads(out)
    assert (code, found["format"], found["source"]) == (0, "gpa-lsp/prediction/1", str(project))
    first, second = found["kernels"]
    assert (first["launch"]["grid"], second["launch"]["title"]) == ([16, 1, 1], "ragged")
    assert first["volumes"]["limiter"] == "DRAM"
    assert {one["line"] for one in first["accesses"]} == {5}
    assert first["answers"][-1]["analysis"] == "traced_paper"
    (comparison,) = found["comparisons"]
    assert (comparison["launches"], comparison["answer"]["analysis"]) == (2, "traced_launches")


def test_a_page_and_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "kernels.cu", "--kernel", "saxpy", "--format", "html", "-o", "p.html")[0] == 0
    assert "<h2>saxpy: 2 launches</h2>" in Path("p.html").read_text(encoding="utf-8")
    code, _, err = run(capsys, "kernels.cu", "--kernel", "beyond", "-o", "nowhere/p.txt")
    assert code == 2 and "there is no such folder" in err


BRANCHES = """extern "C" __global__ void parts(const float* a, float* out) {
  int t = threadIdx.x;
  float s = a[t];
  if (t % 2) s = sinf(s) + cosf(s);
  if (t & 4) out[t + 64] = s; if (blockIdx.x == 0) { out[t] = s + 1; __syncthreads(); }
  if (t == 0) s = logf(s) + powf(s, 2.5f);
#pragma unroll 4
  for (int i = 0; i < 8; ++i) if (a[(t + i) % 64] > 0.5f) out[i] = s * i;
  out[t] = s;
}
"""
BRANCHES_LAUNCH = """[[launch]]
kernel = "parts"
grid = 1
block = 64
arguments = [
  { name = "a", type = "float", count = 64, fill = "uniform" },
  { name = "out", type = "float", count = 128 },
]
"""


def test_each_branch_of_a_line_is_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.cu").write_text(BRANCHES)
    (tmp_path / "parts.launch.toml").write_text(BRANCHES_LAUNCH)
    code, out, _ = run(capsys, "parts.cu", "--format", "json")
    (kernel,) = json.loads(out)["kernels"]
    (table, *_) = next(one for one in kernel["answers"] if one["analysis"] == "traced_branches")["tables"]
    found = {row[0]: (row[1], row[2]) for row in table["rows"]}
    assert code == 0
    assert found["parts.cu:4"] == (2, 2)
    assert found["parts.cu:4 (in sinf, cosf or tanf)"][0] == 12
    assert (found["parts.cu:5 (branch 1 of 2 there)"], found["parts.cu:5 (branch 2 of 2 there)"]) == ((2, 2), (2, 0))
    assert found["parts.cu:6"] == (2, 1)
    (copies,) = (
        row for at, row in found.items() if re.fullmatch(r"parts.cu:8 \(condition 1 of 2 there, \d+ branches\)", at)
    )
    assert copies[0] == 16  # the copies that unrolling made are one
    facts = {one["line"]: one for one in kernel["branches"]}
    assert (facts[4]["executions"], facts[4]["divergent"], facts[6]["executions"]) == (2, 2, 2)
    texts = [finding["text"] for answer in kernel["answers"] for finding in answer["findings"]]
    assert not any("always" in text and "line 4 " in text for text in texts)
    assert any(
        "50 % of 12 executions of the branches at line 4 of parts.cu (in sinf, cosf or tanf)" in text for text in texts
    )


RANDOM = """#include <curand_kernel.h>
extern "C" __global__ void draw(float* out, curandState* states) {
  int t = threadIdx.x;
  out[t] = curand_normal(&states[t]) + logf(out[t]);
}
"""
RANDOM_LAUNCH = """[[launch]]
kernel = "draw"
grid = 1
block = 64
arguments = [
  { name = "out", type = "float", count = 64 },
  { name = "states", type = "u8", count = 1536 },
]
"""


@pytest.fixture
def random_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with a header that is not installed, which one of ours stands in for, with too few states."""
    if any((folder / "curand_kernel.h").is_file() for folder in find_cuda_headers()):
        pytest.skip("cuRAND is installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draw.cu").write_text(RANDOM)
    (tmp_path / "draw.launch.toml").write_text(RANDOM_LAUNCH)


def test_what_our_headers_do_is_no_fact_of_the_program(
    random_numbers: None, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "draw.cu", "--format", "json")
    (kernel,) = json.loads(out)["kernels"]
    findings = [finding["text"] for answer in kernel["answers"] for finding in answer["findings"]]
    faults = [text for text in findings if text.startswith("Out-of-bounds")]
    assert faults and all(
        "line 4 of draw.cu" in text and "(in our stand-in for curand_kernel.h)" in text for text in faults
    )
    assert not any("the branch at" in text and "stand-in" in text for text in findings)
    assert not any("of curand_kernel.h" in text for text in findings)
    assert {fact["file"].rpartition("/")[2] for fact in (*kernel["accesses"], *kernel["branches"])} == {"draw.cu"}


def test_the_code_of_our_headers_is_not_checked(random_numbers: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "draw.cu"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "[static accurate-arithmetic]" in line]
    assert len(said) == 1 and "The FP32 logarithm at line 4 of draw.cu takes" in said[0]


def test_faults_of_the_program_can_fail(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "kernels.cu", "--kernel", "beyond")
    assert code == 0 and "Out-of-bounds access at line 22 of kernels.cu" in out
    assert run(capsys, "kernels.cu", "--kernel", "beyond", "--fail-on", "fault")[0] == 1
    assert run(capsys, "kernels.cu", "--kernel", "transpose", "--fail-on", "fault")[0] == 0
    code, out, _ = run(capsys, "kernels.cu", "--kernel", "endless", "--seconds", "0.2", "--fail-on", "fault")
    assert code == 0 and "Time budget reached at line 17 of kernels.cu" in out


def test_little_memory_refuses_a_launch(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--memory", "31KiB")
    assert code == 2
    assert "line 1: " in err and "raise the memory limit" in err
    assert out.startswith("saxpy\n") and "“ragged”" in out


def test_a_profile_gives_the_launches(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = json.loads((ROOT / "fixtures" / "example.gpa-profile.json").read_text())
    device = profile["launches"][0]["device"]
    launch = {"kernel": "_Z5saxpyifPKfPf", "grid": [3, 1, 1], "block": [64, 1, 1], "device": device}
    profile |= {"modules": [], "launches": [launch, launch]}
    Path("p.gpa-profile.json").write_text(json.dumps(profile))
    code, out, err = run(capsys, "kernels.cu", "--profile", "p.gpa-profile.json")
    assert (code, err) == (0, "")
    assert "  grid 3, block 64, " in out
    assert "No launch description of transpose<float, 32>, endless, beyond, reversed. Create one:" in " ".join(
        out.split()
    )


def test_a_saved_trace(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")
    assert main(["predict", "trace", "kernels.cu", "--kernel", "transpose", "--entries", "-o", "t"]) == 0
    capsys.readouterr()
    code, out, err = run(capsys, "t", "--paper")
    assert (code, err) == (0, "gpa-lsp predict: --paper is now --cudaadvisor\n")
    assert "a trace (emulated) of 16 of 16 blocks; predicted for the A100 PCIe 40GB" in out
    assert "By CUDAAdvisor's own definitions (emulated)" in out
    assert "  Basic blocks\n" in out
    code, out, _ = run(capsys, "t", "--format", "json")
    assert json.loads(out)["format"] == "gpa-lsp/saved-trace/1"
    code, out, _ = run(capsys, "t", "--format", "html")
    assert "<h1>Trace of transpose&lt;float, 32&gt;</h1>" in out
    for option in ("--kernel", "--sizes"):
        code, _, err = run(capsys, "t", option, "n = 3")
        assert code == 2 and f"so {option} has nothing to choose" in err


def test_a_header_with_kernels_is_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.cuh").write_text(
        "#pragma once\ntemplate <class T> __global__ void twice(T *p) { p[threadIdx.x] *= 2; }\n"
    )
    assert main(["predict", "trace", "twice.cuh", "--template"]) == 0
    Path("twice.launch.toml").write_text(capsys.readouterr().out)
    code, out, err = run(capsys, "twice.cuh", "--details")
    assert code == 0 and out.startswith("twice<float>\n") and "Predicted volumes" in out
    assert "no launch in this file gives the arguments of its templates; guessed: twice<float>" in " ".join(err.split())


def test_an_undescribed_kernel_is_named_with_a_remedy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A description there is gets the new one appended."""
    Path("other.launch.toml").write_text(Path("kernels.launch.toml").read_text().replace("transpose", "reversed"))
    shutil.copy("kernels.cu", "other.cu")
    code, out, err = run(capsys, "other.cu", "--kernel", "transpose")
    assert (code, out) == (2, "")
    assert "No launch description of transpose<float, 32>. Create one: " in err
    assert "gpa-lsp predict trace --template other.cu >> other.launch.toml" in err


WAITING = """\
__global__ void work(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 256; ++k)
        sum += in[(i * 32 + k * 4099) & (n - 1)];
    out[i * 8] = sum;
}
"""
WAITING_LAUNCH = """\
[[launch]]
kernel = "work"
block = 256
grid = 864
arguments = [
  { name = "in", type = "float", count = 16777216 },
  { name = "out", type = "float", count = 1769472 },
  { name = "n", type = "int", value = 16777216 },
]
"""


def test_what_is_waited_for_and_what_is_hidden_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loads are waited for; the stores behind them have as bad a pattern, and nothing waits for them."""
    monkeypatch.chdir(tmp_path)
    Path("work.cu").write_text(WAITING)
    Path("work.launch.toml").write_text(WAITING_LAUNCH)
    code, out, _ = run(capsys, "work.cu", "--stalls", "--machine", "A100")
    rows = out.partition("What the kernel is stalled on (simulated)\n")[2].splitlines()[1:3]
    assert code == 0 and rows[0].startswith("  work.cu:6") and "loads of `in`: 32 sectors per request" in rows[0]
    assert rows[1].startswith("  work.cu:7") and "hidden" in rows[1] and "stores of `out`: 32 sectors" in rows[1]
    _, out, _ = run(capsys, "work.cu", "--stalls", "--machine", "A100", "--format", "json")
    (kernel,) = json.loads(out)["kernels"]
    shares = {one["line"]: one["ratio"] for one in kernel["waits"] if one["is_simulated"]}
    assert shares[6] > 0.5 and shares.get(7, 0.0) < 0.01
    _, out, _ = run(capsys, "work.cu", "--machine", "A100", "--format", "json")
    assert json.loads(out)["kernels"][0]["waits"] is None


def test_a_kernel_that_cannot_be_simulated_has_unknown_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "fixtures/kernels/texture_fetch/original.cu", "fetch.cu")
    assert (
        main(["predict", "trace", "--template", "fetch.cu", "--sizes", "threads = 1024", "-o", "fetch.launch.toml"])
        == 0
    )
    _, out, err = run(capsys, "fetch.cu", "--stalls", "--machine", "A100")
    assert "stalls unknown: there are no samples of texture_fetch" in err and "TLD is not simulated" in err
    assert "What the kernel is stalled on" not in out and "Data volumes, predicted" in out
