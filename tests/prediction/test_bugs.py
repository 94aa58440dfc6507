"""A bug of ours costs what it is in: one answer, or one launch."""

from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.execution.prediction import predict
from gpa_lsp.execution.prediction import predict_launch as launch_volumes
from gpa_lsp.execution.prediction.exploration import subjects
from gpa_lsp.execution.prediction.exploration.explore import evaluate_each
from gpa_lsp.execution.prediction.exploration.model import Configuration
from gpa_lsp.execution.prediction.launch_sources import DescriptionText
from gpa_lsp.execution.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.traces import ask
from gpa_lsp.execution.traces.paper_answer import PaperCollector

SOURCE = """
extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void two(float* x) { x[threadIdx.x] = 2.0f; }
"""
LAUNCH = """
[[launch]]
kernel = "{name}"
block = 32
grid = 1
arguments = [{{ name = "x", type = "float", count = 32 }}]
"""


def test_the_other_launches_are_predicted(tmp_path, monkeypatch, caplog):
    pytest.importorskip("cuda.bindings.nvrtc")
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "k.launch.toml").write_text(LAUNCH.format(name="one") + LAUNCH.format(name="two"))
    real = predict.predict_launch

    def break_first(subject, settings, *, sinks=()):
        if subject.kernel == "one":
            raise ZeroDivisionError("division by zero")
        return real(subject, settings, sinks=sinks)

    monkeypatch.setattr(predict, "predict_launch", break_first)
    found = predict_code(tmp_path / "k.cu")
    assert [kernel.name for kernel in found.kernels] == ["two"]
    (problem,) = found.problems
    assert problem.kernel == "one"
    assert "ZeroDivisionError: division by zero" in problem.message
    assert "predicting a launch of one failed" in caplog.text


NOTHING_GLOBAL = """
__global__ void empty() {}
__global__ void shared_only(int n)
{
    __shared__ int s[64];
    s[threadIdx.x] = n;
    __syncthreads();
    if (s[63 - threadIdx.x] != n)
        __trap();
}
__global__ void guarded_off(float* x, int n)
{
    if (blockIdx.x * blockDim.x + threadIdx.x < n)
        x[threadIdx.x] = 1;
}
"""
NOTHING_LAUNCHES = """
[[launch]]
kernel = "empty"
block = 64
grid = 4
[[launch]]
kernel = "shared_only"
block = 64
grid = 4
arguments = [{ name = "n", type = "int", value = 3 }]
[[launch]]
kernel = "guarded_off"
block = 64
grid = 4
arguments = [{ name = "x", type = "float", count = 64 }, { name = "n", type = "int", value = 0 }]
"""


def write(folder: Path, source: str, launches: str) -> Path:
    pytest.importorskip("cuda.bindings.nvrtc")
    (folder / "k.cu").write_text(source)
    (folder / "k.launch.toml").write_text(launches)
    return folder / "k.cu"


def test_kernels_that_touch_no_global_memory_are_predicted(tmp_path: Path) -> None:
    found = predict_code(write(tmp_path, NOTHING_GLOBAL, NOTHING_LAUNCHES))
    assert [kernel.short_name for kernel in found.kernels] == ["empty", "shared_only", "guarded_off"]
    assert not found.problems and not any(kernel.problems for kernel in found.kernels)
    for kernel in found.kernels:
        assert kernel.recovered is not None and not kernel.recovered.accesses and not kernel.faults
        (volumes,) = [answer for answer in kernel.answers if answer.analysis == "volumes"]
        nothing = "Predicted: the kernel touches no global memory, so there are no volumes."
        assert (volumes.summary == nothing) == (kernel.short_name != "shared_only")  # which keeps L1 busy
    answers = {answer.analysis for answer in found.kernels[1].answers}
    assert "traced_banks" in answers


def break_down(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("division by zero")


def predict_broken(folder: Path) -> tuple[KernelPrediction, set[str], list[str]]:
    """The one launch, its answers and what failed."""
    found = predict_code(write(folder, SOURCE, LAUNCH.format(name="one")), settings=PredictionSettings(is_paper=True))
    (kernel,) = found.kernels
    assert not found.problems
    return kernel, {answer.analysis for answer in kernel.answers}, [str(problem) for problem in kernel.problems]


def test_each_model_that_fails_costs_its_own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, every, problems = predict_broken(tmp_path)
    assert not problems and whole.accesses and whole.measures and whole.volumes is not None
    words = "failed: ZeroDivisionError: division by zero; this is a fault of gpa-lsp; please report it"
    traced = {name for name in every if name.startswith("traced_")} - {"traced_faults"}
    for module, name, what, lost in (
        (launch_volumes, "recover_expressions", "predicting data volumes", {"volumes"}),
        (launch_volumes, "answer_volumes", "predicting data volumes", {"volumes"}),
        (launch_volumes, "answer_operations", "counting arithmetic operations", {"emulated_operations"}),
        (ask.BankAccumulator, "add", "analysing the trace", traced - {"traced_paper"}),
        (ask.BankAccumulator, "finish", "analysing the trace", traced - {"traced_paper"}),
        (PaperCollector, "add", "counting as CUDAAdvisor does", {"traced_paper"}),
        (PaperCollector, "answer", "counting as CUDAAdvisor does", {"traced_paper"}),
        (ask, "list_line_facts", "the facts of lines", set()),
        (ask, "list_branch_facts", "the facts of branches", set()),
        (ask, "list_measures", "measuring the launch", set()),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(module, name, break_down)
            found, answers, problems = predict_broken(tmp_path)
        assert (problems, every - answers) == ([f"{what} {words}"], lost), name
        assert found.execution.executed_blocks == 1


def test_a_configuration_that_shows_a_bug_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "cover_updates", break_down)
    broken: Any = subjects.ExpressionEvaluator(
        kernel=None,
        updates=(1, 1, 1),
        resources=None,
        description=subjects.VariedLaunch(description=DescriptionText(path=Path(), text=""), number=0),
    )  # type: ignore[arg-type]
    found = evaluate_each(broken, [Configuration(block=(32, 1, 1))])[0]
    assert found.why_not.startswith("the evaluation failed: ZeroDivisionError") and "fault of gpa-lsp" in found.why_not


def test_a_grid_with_more_blocks_than_have_numbers_is_predicted(tmp_path: Path) -> None:
    shape = "grid = [2147483647, 65535, 65535]"
    found = predict_code(write(tmp_path, SOURCE, LAUNCH.format(name="one").replace("grid = 1", shape)))
    (kernel,) = found.kernels
    assert (found.problems, kernel.problems, kernel.faults) == ((), (), ())
    assert kernel.execution.grid_blocks == 2147483647 * 65535**2 and kernel.volumes is not None
