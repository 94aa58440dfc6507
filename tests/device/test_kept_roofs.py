"""Which measured roofs are used: the kept ones of the device, else none."""

from pathlib import Path

from gpa_lsp.gpu.device.model import EmpiricalPeak, EmpiricalRoofs, OperationKind
from gpa_lsp.gpu.device.roofs_file import KeptRoofs, name_roofs_file, write_roofs

ROOFS = EmpiricalRoofs(
    device_name="A GPU",
    compute_capability=(8, 0),
    sm_count=108,
    measured_on="2026-11-21",
    tool_version="1",
    sm_hz=1e9,
    l2_hz=None,
    dram_hz=None,
    peaks=(EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=1e13),),
    bandwidths=(),
)


def test_kept_roofs_are_found_by_device(tmp_path: Path) -> None:
    write_roofs(ROOFS, tmp_path / name_roofs_file("A GPU"))
    choice = KeptRoofs(folder=tmp_path)
    assert choice.find("A GPU") == ROOFS
    assert choice.find("Another GPU") is None
    assert choice.find(None) is None
    assert choice.problems == ()


def test_a_kept_file_that_is_broken_is_a_problem_once(tmp_path: Path) -> None:
    path = tmp_path / name_roofs_file("A GPU")
    path.write_text('{"format": "gpa-lsp/roofs/1", "peaks": 3}')
    choice = KeptRoofs(folder=tmp_path)
    assert choice.find("A GPU") is None
    assert choice.find("A GPU") is None
    (problem,) = choice.problems
    assert problem.path == path
    assert "measured ceilings of A GPU cannot be used" in problem.message
