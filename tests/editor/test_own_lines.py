"""A compiled source whose load comes from a header of CUDA's: every answer names the line that calls it."""

import re
from pathlib import Path

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.document.prediction_view import build_listing
from gpa_lsp.editor.predicted.worker import list_faults
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import EDITOR_PREDICTION, SourcePrediction
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.foundation.ownership import find_library_frame
from tests.compiler.installed import require_nvcc

# The description gives ``features`` one value too few.
SOURCE = """\
__global__ void nearest(const float* features, float* out, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < n; ++j) sum += __ldg(&features[i * n + j]);
  if (i < count) out[i] = sum;
}
"""
LOAD = 4
DESCRIPTION = """\
[[launch]]
kernel = "nearest"
grid = 1
block = 64
arguments = [
  { name = "features", type = "float", count = 511, fill = "uniform" },
  { name = "out", type = "float", count = 64 },
  { name = "n", type = "int", value = 8 },
  { name = "count", type = "int", value = 64 },
]
"""
NVCC = CompileSettings(choice=CompilerChoice.NVCC, keeps_units=False)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_nvcc()
    path = tmp_path_factory.mktemp("project") / "k.cu"
    path.write_text(SOURCE)
    path.with_suffix(".launch.toml").write_text(DESCRIPTION)
    return path


@pytest.fixture(scope="module")
def prediction(source: Path) -> SourcePrediction:
    return predict_code(
        source, launches=LaunchChoice(path=source.with_suffix(".launch.toml")), settings=EDITOR_PREDICTION,
        compile_settings=NVCC, compute_capability=(8, 0),
    )  # fmt: skip


def test_the_header_is_a_frame_of_the_load(source: Path) -> None:
    unit = compile_source(source, settings=NVCC)
    chains = [one.chain for function in parse_ptx(unit.ptx or "", name="k").entries for one in function.instructions]
    headers = {frame.file.rpartition("/")[2] for chain in chains if chain and (frame := find_library_frame(chain))}
    assert headers == {"sm_32_intrinsics.hpp"}


def test_accesses_faults_and_checks_name_the_line_that_calls(source: Path, prediction: SourcePrediction) -> None:
    (kernel,) = prediction.kernels
    facts = {(one.file, one.line, one.kind.value, one.is_nested) for one in kernel.accesses}
    assert facts == {(str(source), LOAD, "loads", False), (str(source), 5, "stores", False)}
    assert {one.columns for one in kernel.accesses if one.line == LOAD} == {()}, "the header's are no columns of line 4"
    (fault,) = list_faults(prediction)
    assert (fault.line, fault.kind) == (LOAD, "out-of-bounds access")
    assert fault.place is not None and fault.place[0].endswith("/sm_32_intrinsics.hpp")
    _, (words, _), _ = build_listing(kernel, str(source), SOURCE).rows[LOAD - 1]
    assert words.startswith("out-of-bounds access: load of 4 bytes")
    findings = [one for statics in prediction.statics.kernels for one in statics.findings]
    assert findings and {one.file for one in findings} == {str(source)}


def test_tables_put_the_header_in_brackets(prediction: SourcePrediction) -> None:
    (kernel,) = prediction.kernels
    cells = {
        str(cell) for answer in kernel.answers for table in answer.tables for row in table.rows for cell in row if cell
    }
    assert any(re.fullmatch(r"\S*k\.cu:4 \(in \S*sm_32_intrinsics\.hpp:\d+\)", cell) for cell in cells), cells
    assert not any(cell.startswith("sm_32") for cell in cells)
