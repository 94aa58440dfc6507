"""Which instruction takes which pipe how often, by architecture."""

import pytest

from gpa_lsp.diagnosis.analyses.questions.speed_of_light import PipeUse, find_half_cycles, find_pipe_use
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture

CYCLES = 1000.0


def find(capability: tuple[int, int]) -> Architecture:
    architecture = find_architecture(capability)
    assert architecture is not None
    return architecture


def use(pipe: PipeUse, capability: tuple[int, int], **warps: float) -> float | None:
    named = {name.replace("_", "."): count for name, count in warps.items()}
    return find_pipe_use(pipe, named, find(capability), CYCLES)


@pytest.mark.parametrize(
    ("pipe", "capability", "warps", "share"),
    [
        # 64 lanes: two warps in a cycle of the SM.
        (PipeUse.FMA, (8, 0), {"FFMA": 1000.0}, 0.5),
        (PipeUse.FMA, (8, 0), {"IMAD_WIDE_U32": 1000.0}, 0.5),
        # 128 lanes, and a wide product takes both halves.
        (PipeUse.FMA, (8, 6), {"FFMA": 1000.0}, 0.25),
        (PipeUse.FMA, (8, 6), {"IMAD_WIDE_U32": 1000.0}, 0.5),
        (PipeUse.FMA, (8, 6), {"HFMA2": 1000.0}, 0.5),
        (PipeUse.FMA, (9, 0), {"HFMA2_MMA": 1000.0}, 0.0),
        (PipeUse.FMA, (9, 0), {"VIADD": 1000.0}, 0.25),
        (PipeUse.ALU, (9, 0), {"VIADD": 1000.0, "LOP3_LUT": 1000.0}, 0.5),
        (PipeUse.ALU, (8, 0), {"CS2R": 1000.0, "R2UR": 10.0, "ISETP_GE_AND": 1000.0}, 0.5),
        (PipeUse.XU, (8, 0), {"MUFU_RCP": 250.0, "I2F_F64": 250.0, "F2I": 500.0}, 2.0),
        # Without fast FP64, conversions from and to it are done by its own unit.
        (PipeUse.XU, (8, 6), {"MUFU_RCP": 250.0, "I2F_F64": 250.0}, 0.5),
        # One warp in 64 cycles of a sub-partition, one in 16 of the SM.
        (PipeUse.FP64, (8, 6), {"DFMA": 25.0, "I2F_F64": 25.0}, 0.8),
        (PipeUse.FP64, (8, 0), {"DFMA": 500.0, "DSETP_GT_AND": 500.0}, 1.0),
    ],
)
def test_shares_of_pipes(pipe, capability, warps, share):
    assert use(pipe, capability, **warps) == pytest.approx(share)


@pytest.mark.parametrize("pipe", [PipeUse.ALU, PipeUse.FMA])
def test_pipes_nobody_knows_are_not_recomputed(pipe):
    assert use(pipe, (12, 0), FFMA=1000.0) is None


def test_half_precision_on_the_tensor_cores():
    assert find_half_cycles({"HFMA2.MMA": 8.0, "HFMA2": 8.0}, find((8, 0))) == 2
    assert find_half_cycles({"HFMA2.MMA": 8.0}, find((9, 0))) == 4
    assert find_half_cycles({"HFMA2.MMA": 8.0}, find((8, 6))) == 0
