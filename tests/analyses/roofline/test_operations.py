"""Operations: of one instruction, from the profiler's counters, from tables of opcodes, and where only instructions were counted."""

import pytest

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.analyses.roofline.counts import THREAD_TABLES, WARP_TABLES, Executions, count_launch, read_span
from gpa_lsp.diagnosis.analyses.roofline.operations import (
    count_operations,
    count_tensor_operations,
    count_thread_operations,
)
from gpa_lsp.diagnosis.analyses.roofline_model import OperationCount
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Launch
from tests.analyses.roofline.launches import write_launch, write_table
from tests.rows.builders import DEVICE
from tests.rows.written import write_kernel

SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


@pytest.mark.parametrize(
    ("mnemonic", "kind", "operations"),
    [
        ("FFMA", OperationKind.FP32, 2),
        ("FFMA2", OperationKind.FP32, 4),
        ("FADD.FTZ", OperationKind.FP32, 1),
        ("DFMA", OperationKind.FP64, 2),
        ("HFMA2.BF16_V2", OperationKind.FP16, 4),
        ("HADD2", OperationKind.FP16, 2),
        ("MUFU.RSQ", OperationKind.SPECIAL, 1),
        ("IMAD", OperationKind.INT32, 2),
        ("IMAD.WIDE.U32", OperationKind.INT32, 2),
        ("IMAD.IADD", OperationKind.INT32, 1),
        ("IMAD.SHL.U32", OperationKind.INT32, 1),
        ("IADD3.X", OperationKind.INT32, 1),
        ("LOP3.LUT", OperationKind.INT32, 1),
        ("IDP.4A.S8.S8", OperationKind.INT32, 8),
        ("IDP.2A.LO.S16.S8", OperationKind.INT32, 4),
    ],
)
def test_what_an_instruction_does_for_a_thread(mnemonic, kind, operations):
    rule = count_thread_operations(mnemonic)
    assert rule is not None
    assert (rule.kind, rule.operations) == (kind, operations)
    assert rule.reason
    assert describe_mnemonic(mnemonic).is_known


@pytest.mark.parametrize(
    "mnemonic",
    [
        "IMAD.MOV.U32",
        "IMAD.U32",
        "HADD2.F32",
        "FSETP.GT.AND",
        "FMNMX",
        "SEL",
        "PRMT",
        "UIADD3",
        "I2F",
        "LDG.E",
        "HMMA.16816.F32",
        "FROB",
    ],
)
def test_what_is_no_operation_of_a_thread(mnemonic):
    assert count_thread_operations(mnemonic) is None


@pytest.mark.parametrize(
    ("mnemonic", "kind", "operations"),
    [
        ("HMMA.1688.F16", OperationKind.TENSOR_FP16, 2 * 16 * 8 * 8),
        ("HMMA.16816.F32.BF16", OperationKind.TENSOR_BF16, 2 * 16 * 8 * 16),
        ("HMMA.1688.F32.TF32", OperationKind.TENSOR_TF32, 2 * 16 * 8 * 8),
        ("HMMA.SP.16832.F32.BF16", OperationKind.TENSOR_BF16, 2 * 16 * 8 * 16),
        ("IMMA.16832.S8.S8.SAT", OperationKind.TENSOR_INT8, 2 * 16 * 8 * 32),
        ("IMMA.8816.S8.S8.SAT", OperationKind.TENSOR_INT8, 2 * 8 * 8 * 16),
        ("DMMA.884", OperationKind.TENSOR_FP64, 2 * 8 * 8 * 4),
        ("DMMA.16x8x16", OperationKind.TENSOR_FP64, 2 * 16 * 8 * 16),
        ("QMMA.16832.F32.E4M3.E4M3", OperationKind.TENSOR_FP8, 2 * 16 * 8 * 32),
        ("OMMA.SF.16864.F32.E2M1.E2M1", OperationKind.TENSOR_FP4, 2 * 16 * 8 * 64),
        ("HGMMA.64x256x16.F32", OperationKind.TENSOR_FP16, 2 * 64 * 256 * 16 / 4),
        ("IGMMA.64x128x32.S8.S8", OperationKind.TENSOR_INT8, 2 * 64 * 128 * 32 / 4),
        ("HMMA.884.F32.F32.STEP0", OperationKind.TENSOR_FP16, 512),
        ("HMMA.884.F16.F16.STEP1", OperationKind.TENSOR_FP16, 1024),
    ],
)
def test_what_a_tensor_instruction_does_for_a_warp(mnemonic, kind, operations):
    found = count_tensor_operations(mnemonic)
    assert found is not None
    assert (found.kind, found.operations) == (kind, operations)


@pytest.mark.parametrize(
    "mnemonic", ["FFMA", "IMMA.16864.S4.S4", "BMMA.168256.XOR.POPC", "UTCHMMA", "HMMA", "HMMA.999"]
)
def test_what_no_tensor_operation_of_ours_is(mnemonic):
    assert count_tensor_operations(mnemonic) is None


def count(launch: Launch, executions: Executions | None = None) -> dict[OperationKind, OperationCount]:
    span = read_span(launch)
    assert span is not None
    return count_operations(launch, span, executions)


@pytest.mark.parametrize(
    ("suffix", "factor"),
    [("", 1), (".per_second", 1e3), (".per_cycle_elapsed", 1e-6)],
    ids=["sum", "per s", "per cycle"],
)
def test_counters_in_every_form(suffix, factor):
    metrics = {SASS.format(name) + suffix: 1000 * factor for name in ("dadd", "dmul", "dfma")}
    found = count(write_launch(metrics))[OperationKind.FP64]
    assert found.operations == pytest.approx(1000 + 1000 + 2 * 1000)
    assert found.is_exact


def test_halves_come_in_pairs():
    metrics = {SASS.format(name): 10.0 for name in ("hadd", "hmul", "hfma")}
    assert count(write_launch(metrics))[OperationKind.FP16].operations == 2 * 10 + 2 * 10 + 4 * 10


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, "many", 1e40])
def test_one_counter_that_is_none_leaves_the_type_unknown(value):
    metrics = {SASS.format("fadd"): 1.0, SASS.format("fmul"): 1.0, SASS.format("ffma"): value}
    assert OperationKind.FP32 not in count(write_launch(metrics))


def make_executions(warps: dict[str, float], threads: dict[str, float] | None = None) -> Executions:
    return Executions(
        warps=warps,
        threads=threads if threads is not None else {name: 32 * number for name, number in warps.items()},
        source="the test",
        are_threads_exact=threads is not None,
    )


def test_instructions_stand_in_for_counters_that_were_not_collected():
    found = count(
        write_launch({}), make_executions({"FFMA": 10, "HMMA.16816.F32": 3}, {"FFMA": 300, "HMMA.16816.F32": 96})
    )
    assert found[OperationKind.FP32].operations == 600
    assert found[OperationKind.FP32].is_exact
    assert found[OperationKind.TENSOR_FP16].operations == 3 * 4096
    assert found[OperationKind.FP64].operations == 0


def test_full_warps_are_an_assumption():
    found = count(write_launch({}), make_executions({"FFMA": 10}))
    assert found[OperationKind.FP32].operations == 640
    assert not found[OperationKind.FP32].is_exact
    assert found[OperationKind.FP64].is_exact


def test_shapes_in_descriptors_leave_the_tensor_cores_unknown():
    found = count(write_launch({}), make_executions({"UTCHMMA": 10}, {"UTCHMMA": 10}))
    assert OperationKind.TENSOR_FP16 not in found
    assert found[OperationKind.INT32].operations == 0


def test_operations_of_the_tensor_cores_as_the_profiler_counts_them():
    launch = write_launch(
        {
            "sm__ops_path_tensor_src_fp16_dst_fp16.sum": 7.0,
            "sm__ops_path_tensor_src_fp16_dst_fp32.sum": 5.0,
            "sm__ops_path_tensor_src_int8.sum.per_second": 4e3,
        }
    )
    found = count(launch)
    assert found[OperationKind.TENSOR_FP16].operations == 12
    assert found[OperationKind.TENSOR_INT8].operations == 4


def test_instructions_of_unknown_shape_are_translated_and_said_to_be():
    launch = write_launch({"sm__inst_executed_pipe_tensor.sum": 10.0}, device=DEVICE)
    found = count(launch)[OperationKind.TENSOR_FP16]
    assert (
        found.operations == 10 * {70: 512, 86: 4096}[DEVICE.compute_capability[0] * 10 + DEVICE.compute_capability[1]]
    )
    assert not found.is_exact


def test_the_profilers_count_of_integers_has_one_for_each_instruction():
    found = count(write_launch({"smsp__sass_thread_inst_executed_op_integer_pred_on.sum": 10.0}))[OperationKind.INT32]
    assert (found.operations, found.is_exact) == (10, False)


def test_tables_of_opcodes_go_before_counters_per_instruction():
    kernel = write_kernel(
        "FFMA R1, R2, R3, R4  # - | selected=1 | x=10 thread_executions_true=320\nEXIT  # - | selected=1 | x=10"
    )
    launch = kernel.launches[0]
    columns = count_launch(kernel, launch, 1)
    assert columns is not None
    assert columns.threads == {"FFMA": 320}
    assert columns.warps == {"FFMA": 10, "EXIT": 10}
    launch.metrics[THREAD_TABLES[0]] = write_table(THREAD_TABLES[0], {"FFMA": 5})
    launch.metrics[WARP_TABLES[0]] = write_table(WARP_TABLES[0], {"FFMA": 1})
    tables = count_launch(kernel, launch, 1)
    assert tables is not None
    assert (tables.threads, tables.warps) == ({"FFMA": 5}, {"FFMA": 1})


def test_nothing_is_known_without_disassembly_and_tables():
    kernel = write_kernel("FFMA R1, R2, R3, R4  # - | selected=1")
    assert count_launch(kernel, kernel.launches[0], 1) is None
    assert count_launch(kernel, kernel.launches[0], 2) is None
