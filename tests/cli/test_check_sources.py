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
