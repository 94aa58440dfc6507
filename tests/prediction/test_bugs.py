"""A bug of ours in one launch does not hide the others."""

import pytest

from gpa_lsp.prediction import predict
from gpa_lsp.prediction.predict import predict_source

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
    found = predict_source(tmp_path / "k.cu")
    assert [kernel.name for kernel in found.kernels] == ["two"]
    (problem,) = found.problems
    assert problem.kernel == "one"
    assert "ZeroDivisionError: division by zero" in problem.message
    assert "a launch of one could not be predicted" in caplog.text
