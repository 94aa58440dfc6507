"""Blocks whose accesses are too many to trace: volumes come from the first of them, and from counts of the others."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction import predict_launch as module_of_launches
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict_launch import LaunchSubject, predict_launch
from tests.bench.emulating import build_launch, floats, number
from tests.emulator.kernels.compiling import compile_ptx

_SOURCE = """
extern "C" __global__ void rows(int m, int n, float *s, const float *d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < m; j++) {
        float a = 0;
        for (int k = 0; k < n; k++)
            a += d[j * n + k] * d[x * n + k];
        s[x * m + j] = a;
    }
}
"""
_LAUNCH = build_launch(
    "rows", (4, 1), (64, 1), number("m", 200), number("n", 256), floats("s", 200 * 256), floats("d", 256 * 256)
)
_LITTLE = replace(DEFAULT_PREDICTION, budget=Budget(memory_bytes=128 << 20, seconds=120))
_MUCH = replace(DEFAULT_PREDICTION, budget=Budget(memory_bytes=2 << 30, seconds=120))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> PtxModule:
    source = tmp_path_factory.mktemp("long") / "rows.cu"
    source.write_text(_SOURCE, encoding="utf-8")
    return parse_ptx(compile_ptx(source, 80), name="rows.cu")


def build_subject(module: PtxModule, launch: LaunchDescription = _LAUNCH) -> LaunchSubject:
    return LaunchSubject(
        module=module, launch=launch, kernel="rows", name="rows", statics=None, compute_capability=(8, 0)
    )


def test_they_are_those_of_the_whole_trace(module: PtxModule) -> None:
    whole, cut = (predict_launch(build_subject(module), settings) for settings in (_MUCH, _LITTLE))
    assert whole.volumes is not None and cut.volumes is not None
    assert cut.volumes.volumes == whole.volumes.volumes
    assert cut.contradictions == whole.contradictions == ()
    said = "Of each access, at most the first 1,024 of a warp were followed and the others counted"
    assert [str(note).startswith(said) for note in cut.volumes.notes].count(True) == 1
    assert not any(str(note).startswith(said) for note in whole.volumes.notes)


def test_blocks_that_run_to_their_end_later_are_counted_then(
    module: PtxModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, traced = predict_launch(build_subject(module), _LITTLE), module_of_launches._trace_blocks

    def trace(*given: object, **options: object) -> Emulation:
        return replace(traced(*given, **options), is_complete=False)  # type: ignore[arg-type]

    monkeypatch.setattr(module_of_launches, "_trace_blocks", trace)
    later = predict_launch(build_subject(module), _LITTLE)
    assert whole.volumes is not None and later.volumes is not None
    assert later.volumes.volumes == whole.volumes.volumes
    monkeypatch.setattr(module_of_launches, "_choose_most_executions", lambda *_: None)
    never = predict_launch(build_subject(module), _LITTLE)
    assert never.volumes is None
    assert [str(one) for one in never.problems if "data volumes are not predicted" in str(one)] == [
        "data volumes are not predicted: the blocks traced for the addresses did not run to their end; "
        "give more time or memory, or describe a smaller launch"
    ]
