"""CUDA compilers installed here, for tests that need one."""

from pathlib import Path

import pytest

from gpa_lsp.execution.compiler.nvcc_location import NvccInstallation, find_nvcc
from gpa_lsp.execution.compiler.nvrtc_processes import identify_nvrtc


def require_nvrtc() -> None:
    """Skip the test where NVRTC is not installed."""
    if identify_nvrtc() is None:
        pytest.skip("NVRTC is not installed (gpa-lsp[cuda])")


def require_nvcc() -> NvccInstallation:
    """Skip the test where nvcc or a host compiler is not installed."""
    found = find_nvcc(Path("/nowhere/source.cu"))
    if found is None:
        pytest.skip("nvcc or a host compiler is not installed")
    return found
