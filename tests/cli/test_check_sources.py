"""``gpa-lsp check SOURCE.cu`` in every format."""

import json
import re
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void scale(float* x)
{
    x[threadIdx.x] = x[threadIdx.x] * 0.7 + 0.1;
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scale.cu"
    path.write_text(SOURCE)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["check", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_text_has_a_line_per_kernel_and_finding(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "scale.cu", "--arch", "sm_80")
    kernel, finding, summary = out.splitlines()
    assert code == 0
    assert kernel.startswith("scale.cu:1: info: scale: ") and kernel.endswith("[static]")
    assert finding.startswith("scale.cu:3: info: FP32 values at line 3 of scale.cu are widened to FP64")
    assert finding.endswith("[static double-constants]")
    assert summary == "1 static finding in 1 kernel; nothing was measured"


def test_failing_on_findings(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "scale.cu", "--fail-on", "finding")[0] == 1
    source.write_text(SOURCE.replace("0.7", "0.7f").replace("0.1", "0.1f"))
    assert run(capsys, "scale.cu", "--fail-on", "finding")[0] == 0


def test_json_says_what_is_known(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "scale.cu", "--format", "json", "--arch", "9.0")
    (found,) = json.loads(out)["sources"]
    assert code == 0
    assert (found["path"], found["compute_capability"]) == (str(source), [9, 0])
    (kernel,) = found["kernels"]
    assert (kernel["mangled_name"], kernel["line"], kernel["occupancy"]) == ("_Z5scalePf", 1, None)
    (finding,) = kernel["findings"]
    assert (finding["check"], finding["line"], finding["certainty"]) == ("double-constants", 3, "certain")
    assert any(one["text"].startswith("F2F.F64.F32") for one in finding["instructions"])


def test_sarif_and_annotations(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "scale.cu", "--format", "sarif")
    (sarif_run,) = json.loads(out)["runs"]
    (result,) = sarif_run["results"]
    assert (
        result["ruleId"] == sarif_run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "static/double-constants"
    )
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "scale.cu", "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": 3}
    _, out, _ = run(capsys, "scale.cu", "--format", "github")
    assert out.startswith("::notice file=scale.cu,line=3,title=GPU code%3A double-constants (static)::")


def test_errors_of_the_compiler_are_printed_at_their_place(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text(SOURCE.replace("* 0.7", "* y"))
    code, out, _ = run(capsys, "scale.cu")
    assert code == 2
    assert out.splitlines()[0].startswith('scale.cu:3:39: error: identifier "y" is undefined')


def test_one_bad_source_does_not_hide_the_others(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "none.cu", "scale.cu")
    assert code == 2
    assert "none.cu: the source cannot be read" in err
    assert "[static double-constants]" in out


def test_sources_and_profiles_are_not_mixed_and_names_must_exist(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "scale.cu", "report.ncu-rep")
    assert code == 2 and "cannot be checked together" in err
    code, _, err = run(capsys, "scale.cu", "--kernel", "nothing")
    assert code == 2 and "no kernel of the sources is named 'nothing'" in err
    code, _, err = run(capsys, "scale.cu", "--arch", "quick")
    assert code == 2 and "is not an architecture such as sm_86" in err


def test_literals_that_widen_the_operands_of_a_double_root_are_named(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text("__global__ void f(float* x)\n{\n    x[threadIdx.x] = sqrt(fmax(0., 2. * x[threadIdx.x]));\n}\n")
    _, out, _ = run(capsys, "scale.cu")
    (finding,) = [line for line in out.splitlines() if line.startswith("scale.cu:3: info: The FP64 square root")]
    assert "The literals `0.`, `2.` are double, which widens the float operands here" in finding
    assert "write `0.f`, `2.f`" in finding
    source.write_text("__global__ void f(double* x)\n{\n    x[threadIdx.x] = sqrt(2. * x[threadIdx.x]);\n}\n")
    _, out, _ = run(capsys, "scale.cu")
    assert "The FP64 square root" in out and "literal" not in out and "no compiler flag speeds up FP64" in out


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        ("__frcp_rn(x[0])", "No flag changes how `__frcp_rn` rounds: use `__fdividef(x, y)`"),
        ("__fsqrt_rn(x[0])", "No flag changes how `__fsqrt_rn` rounds: use `sqrtf` with `-prec-sqrt=false`"),
        ("1.0f / x[0]", "Use `__fdividef(x, y)` or `-prec-div=false`"),
    ],
)
def test_no_flag_is_proposed_that_does_not_change_an_intrinsic(
    expression: str, remedy: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text(f"__global__ void f(float* x)\n{{\n    x[threadIdx.x] = {expression};\n}}\n")
    _, out, _ = run(capsys, "scale.cu")
    assert remedy in out


_HIDDEN = """\
__global__ void transpose(float* out, const float* in, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
__global__ void iterate(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = in[i];
  for (int k = 0; k < 1000; k++) s = sqrtf(s) * 1.5f + s;
  out[i * 8] = s;
}
int main() {
  float *a, *b;
  cudaMalloc(&a, 4 << 18); cudaMalloc(&b, 4 << 18);
  transpose<<<dim3(16, 16), dim3(32, 32)>>>(a, b, 512);
  iterate<<<64, 256>>>(a, b);
}
"""


def test_a_line_that_other_work_hides_is_told_apart(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stores of 32 sectors per request in both kernels: one is stalled on them, the other hardly ever."""
    source.write_text(_HIDDEN)
    _, out, _ = run(capsys, "scale.cu", "--arch", "sm_80")
    assert out.endswith("; --stalls simulates whether a kernel is stalled on its lines\n") and "simulated)" not in out
    code, out, err = run(capsys, "scale.cu", "--arch", "sm_80", "--stalls")
    assert code == 0 and "error" not in err
    told = {line.split(":")[1]: line for line in out.splitlines() if "uncoalesced-accesses" in line}
    assert re.search(r" [3-9]\d % of the samples are stalled on this line \(simulated\)\. \[static", told["3"])
    assert re.search(r" Hidden: \S+ % of the samples are stalled on this line \(simulated\)\. \[static", told["9"])
    _, out, _ = run(capsys, "scale.cu", "--arch", "sm_80", "--stalls", "--format", "json", "--kernel", "iterate")
    (kernel,) = json.loads(out)["sources"][0]["kernels"]
    (finding,) = (one for one in kernel["findings"] if one["check"] == "uncoalesced-accesses")
    assert finding["stalled"]["is_simulated"] and finding["stalled"]["ratio"] < 0.01


def test_stalls_that_nothing_tells_cost_only_themselves(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.with_suffix(".launch.toml").write_text("[[launch]]\nkernel = 3\n")
    code, out, err = run(capsys, "scale.cu", "--arch", "sm_80", "--stalls")
    assert code == 0 and "[static double-constants]" in out and "simulated)" not in out
    assert "stalls unknown: " in err and "scale.launch.toml" in err
