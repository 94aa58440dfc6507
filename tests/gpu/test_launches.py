"""A GPU that is our own driver library: cuda-python speaks to it, and the emulator executes what is launched."""

import sys
from pathlib import Path

import pytest

from gpa_lsp.execution.emulator.model import Budget, join_pieces
from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu
from gpa_lsp.execution.prediction.trace_files import read_pieces
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.emulator.kernels.running import load_module
from tests.emulator.kernels.test_truth import FIXTURES
from tests.instrumentation.comparing import emulate_traced, list_different, rebase
from tests.programs.built import run

_DESCRIPTIONS = Path(__file__).parents[1] / "emulator" / "kernels" / "fixtures"


def _require_driver() -> None:
    pytest.importorskip("cuda.bindings.driver")
    pytest.importorskip("pyarrow")
    if not list_headers() or find_c_compiler() is None:
        pytest.skip("CUDA's headers or a C compiler are not installed")


def _trace(name: str, folder: Path, *options: str) -> str:
    """The output of ``gpa-lsp predict trace --on gpu`` on our driver library."""
    case = next(case for case in FIXTURES if str(case).startswith(f"{name}/{name}-original"))
    source = folder / f"{name}.cu"
    source.write_bytes(case.source.read_bytes())
    source.with_suffix(".launch.toml").write_bytes((_DESCRIPTIONS / f"{name}.launch.toml").read_bytes())
    words = [
        "-m",
        "gpa_lsp",
        "predict",
        "trace",
        str(source),
        "--launch",
        "1",
        "--on",
        "gpu",
        "-o",
        str(folder / "out"),
        *options,
    ]
    found, printed = run(Path(sys.executable), *words, folder=folder)
    assert found.end.status == 0, printed
    return printed


@pytest.mark.parametrize("name", ["shared_reduction", "device_calls", "branch_divergence"])
def test_a_trace_on_a_gpu_is_that_of_the_emulator(name: str, tmp_path: Path) -> None:
    _require_driver()
    printed = _trace(name, tmp_path, "--memory", "64MiB", "--entries")
    assert " with what records them" in printed and "found no room" not in printed
    case = next(case for case in FIXTURES if str(case).startswith(f"{name}/{name}-original"))
    flags = tuple(flag for flag in case.flags if flag != "-fmad=false")
    expected = emulate_traced(load_module(case.source, 80, *flags), case.launch, Budget()).trace
    found = join_pieces(list(read_pieces(tmp_path / "out")))
    assert found.origin.startswith("recorded on the ") and expected is not None and found.is_complete
    assert list_different(rebase(expected), rebase(found)) == []


def test_what_finds_no_room_is_told(tmp_path: Path) -> None:
    _require_driver()
    printed = _trace("shared_reduction", tmp_path, "--memory", "64KiB", "--blocks", "0-3")
    assert "found no room in 64 KiB: trace fewer --blocks, or give more --memory" in printed
    assert not all(piece.is_complete for piece in read_pieces(tmp_path / "out"))


def test_chosen_blocks_are_traced_alone(tmp_path: Path) -> None:
    _require_driver()
    printed = _trace("shared_reduction", tmp_path, "--memory", "64MiB", "--blocks", "1,3")
    assert "2 of 4 blocks traced" in printed
    found = join_pieces(list(read_pieces(tmp_path / "out")))
    assert found.traced_blocks.tolist() == [1, 3] == sorted(set(found.accesses.block.tolist()))


class _Refusing:
    """A driver with a GPU that refuses everything else."""

    def __getattr__(self, name: str) -> object:
        return {
            "cuInit": lambda flags: (0,),
            "cuGetErrorName": lambda error: (0, b"CUDA_ERROR_SYSTEM_NOT_READY"),
            "cuDeviceGetCount": lambda: (0, 0),
        }.get(name, lambda *arguments: (802,))


def test_a_computer_without_a_gpu_says_so() -> None:
    with pytest.raises(MissingToolError, match=r"tracing.*needs it; the driver lists 0"):
        LocalGpu(needed_for="tracing", driver=_Refusing())


def test_what_the_driver_refuses_is_said_in_its_words() -> None:
    driver = _Refusing()
    driver.cuDeviceGetCount = lambda: (0, 1)  # type: ignore[attr-defined]
    with pytest.raises(ToolError, match="refused cuDeviceGet: CUDA_ERROR_SYSTEM_NOT_READY"):
        LocalGpu(needed_for="tracing", driver=driver)


def test_a_kernel_that_does_not_end_is_left() -> None:
    gpu = LocalGpu.__new__(LocalGpu)
    driver = _Refusing()
    driver.cuStreamQuery = lambda stream: (600,)  # type: ignore[attr-defined]
    gpu._driver = driver
    with pytest.raises(ToolError, match="timed out after"):
        gpu.wait(0.01)
