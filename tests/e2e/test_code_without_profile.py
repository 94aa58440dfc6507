"""Cubins, fat binaries and programs as input: their kernels, with nothing measured."""

from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.report.model import FunctionRole
from gpa_lsp.report.pipeline import analyse


def test_a_cubin_gives_its_kernel_with_the_functions_it_calls(fixtures: Path):
    path = fixtures / "cubins" / "sm_80" / "device_calls_original.cubin"
    (kernel,) = analyse([path]).kernels
    assert kernel.launches == ()
    assert kernel.device.compute_capability == (8, 0)
    assert kernel.total_samples == 0
    assert kernel.configuration.registers_per_thread is not None
    assert all(kernel.instructions.texts)
    assert {row.role for row in kernel.functions} >= {FunctionRole.KERNEL}
    assert len(kernel.functions) > 1
    assert (kernel.instructions.executions == -1).all()


def test_there_is_one_note_a_file_and_nothing_worse(fixtures: Path):
    path = fixtures / "containers" / "built" / "scale.o"
    report = analyse([path])
    assert len(report.kernels) > 1
    (note,) = report.problems
    assert note.severity is ProblemSeverity.NOTE
    assert note.path == path


@pytest.mark.parametrize("name", ["scale.fatbin", "scale.o", "libscale.so", "two_units_linked.sm_90.cubin"])
def test_every_container_gives_kernels_with_code_and_lines(fixtures: Path, name: str):
    report = analyse([fixtures / "containers" / "built" / name])
    assert report.kernels
    for kernel in report.kernels:
        assert len(kernel.instructions) > 0
        assert kernel.instructions.has_control.all()
        assert np.any(kernel.instructions.chain_index >= 0)


def test_kernels_are_chosen_by_name(fixtures: Path):
    path = fixtures / "containers" / "built" / "scale.o"
    assert len(analyse([path], kernel_filter="scale").kernels) > 0
    chosen = analyse([path], kernel_filter="scale<float>").kernels
    assert chosen
    assert all("scaleIfE" in kernel.mangled_name for kernel in chosen)
    assert analyse([path], kernel_filter="no such kernel").kernels == ()
