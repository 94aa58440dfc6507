"""Operations: of one instruction, from the profiler's counters, from tables of opcodes, and where only instructions were counted."""

import pytest

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.analyses.model import OperationCount, Traffic
from gpa_lsp.diagnosis.analyses.roofline.counts import THREAD_TABLES, WARP_TABLES, Executions, count_launch, read_span
from gpa_lsp.diagnosis.analyses.roofline.operations import (
    count_operations,
    count_tensor_operations,
    count_thread_operations,
)
from gpa_lsp.diagnosis.analyses.roofline.work import measure_traffic, measure_work
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.profile.model import Launch
from tests.analyses.roofline.launches import write_launch, write_machine, write_table
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
    assert rule[:2] == (kind, operations)
    assert rule[2]
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
    assert count_tensor_operations(mnemonic) == (kind, operations)


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
    assert columns.threads == {"FFMA": 320}
    assert columns.warps == {"FFMA": 10, "EXIT": 10}
    launch.metrics[THREAD_TABLES[0]] = write_table(THREAD_TABLES[0], {"FFMA": 5})
    launch.metrics[WARP_TABLES[0]] = write_table(WARP_TABLES[0], {"FFMA": 1})
    tables = count_launch(kernel, launch, 1)
    assert (tables.threads, tables.warps) == ({"FFMA": 5}, {"FFMA": 1})


def test_nothing_is_known_without_disassembly_and_tables():
    kernel = write_kernel("FFMA R1, R2, R3, R4  # - | selected=1")
    assert count_launch(kernel, kernel.launches[0], 1) is None
    assert count_launch(kernel, kernel.launches[0], 2) is None


DRAM, L2, L1, SHARED = MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1, MemoryLevel.SHARED
MACHINE = write_machine({}, {DRAM: 64e9, L2: 256e9, SHARED: 512e9})
SECTORS = "l1tex__t_sectors_pipe_{}.sum"
GLOBAL, LOCAL = ("lsu_mem_global_op_ld", "lsu_mem_global_op_st"), ("lsu_mem_local_op_ld", "lsu_mem_local_op_st")
ATOMIC = ("lsu_mem_global_op_atom", "lsu_mem_global_op_red")
TEXTURE = (
    "tex_mem_texture",
    "tex_mem_surface_op_ld",
    "tex_mem_surface_op_st",
    "tex_mem_surface_op_atom",
    "tex_mem_surface_op_red",
)


def measure(metrics: dict[str, float | str]) -> dict[MemoryLevel, Traffic]:
    launch = write_launch(metrics)
    span = read_span(launch)
    assert span is not None
    return measure_traffic(launch, span, MACHINE)


@pytest.mark.parametrize(
    ("metrics", "level", "moved"),
    [
        ({"dram__bytes_read.sum": 100.0, "dram__bytes_write.sum": 20.0}, DRAM, 120),
        ({"dram__bytes_op_read.sum": 100.0, "dram__bytes_op_write.sum": 20.0}, DRAM, 120),
        ({"dram__bytes.sum.per_second": 120e3}, DRAM, 120),
        ({"dram__sectors_read.sum": 3.0, "dram__sectors_write.sum": 1.0}, DRAM, 128),
        ({"lts__t_sectors_srcunit_tex.sum": 2.0, "lts__t_sectors.sum": 9.0}, L2, 64),
        ({"lts__t_sectors.sum": 9.0}, L2, 288),
        ({"lts__t_bytes.sum": 7.0}, L2, 7),
        ({"l1tex__t_sectors.sum": 2.0, SECTORS.format(GLOBAL[0]): 9.0}, L1, 64),
        ({SECTORS.format(name): 1.0 for name in (*GLOBAL, *LOCAL, *ATOMIC, *TEXTURE)}, L1, 11 * 32),
        ({"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 2.0}, SHARED, 256),
    ],
)
def test_bytes_of_a_level(metrics, level, moved):
    found = measure(metrics)[level]
    assert found.bytes == pytest.approx(moved)
    assert found.is_exact
    assert found.transactions == pytest.approx(moved / (128 if level is SHARED else 32))


@pytest.mark.parametrize("parts", [GLOBAL, (*GLOBAL, *LOCAL, *ATOMIC)])
def test_a_part_of_the_accesses_to_l1_is_said_to_be_a_part(parts):
    found = measure({SECTORS.format(name): 1.0 for name in parts})[L1]
    assert (found.bytes, found.is_exact) == (32 * len(parts), False)


def test_half_of_the_counters_of_dram_are_none():
    assert DRAM not in measure({"dram__bytes_read.sum": 100.0})


@pytest.mark.parametrize(
    ("metric", "level", "moved"),
    [
        ("dram__cycles_active.avg.pct_of_peak_sustained_elapsed", DRAM, 32e6),
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", DRAM, 32e6),
        ("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", L2, 128e6),
    ],
)
def test_a_share_of_the_peak_gives_bytes_that_are_not_exact(metric, level, moved):
    found = measure({metric: 50.0})[level]
    assert (found.bytes, found.is_exact) == (pytest.approx(moved), False)


def test_zero_bytes_are_known_to_be_zero():
    assert measure({"dram__bytes_read.sum": 0.0, "dram__bytes_write.sum": 0.0})[DRAM].bytes == 0


def test_nothing_is_invented():
    assert (
        measure({"dram__bytes_read.sum": float("nan"), "lts__t_sectors.sum": -1.0, "l1tex__t_bytes.sum": "text"}) == {}
    )


@pytest.mark.parametrize(
    ("mnemonics", "is_unused"),
    [
        (("FFMA", "LDG.E"), True),
        (("FFMA", "LDS.128"), False),
        (("LDGSTS.E.BYPASS.128",), False),
        (("HMMA.16816.F32",), False),
        (("LD.E",), False),
        ((), False),
    ],
    ids=["none", "loads", "copies", "tensor cores", "generic", "unknown"],
)
def test_shared_memory_is_unused_where_no_instruction_goes_there(mnemonics, is_unused):
    launch = write_launch({"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 2.0})
    span = read_span(launch)
    assert span is not None
    warps = dict.fromkeys(mnemonics, 10.0)
    executions = Executions(warps=warps, threads=warps, source="the test", are_threads_exact=False) if warps else None
    work = measure_work(launch, span, executions, MACHINE)
    assert (SHARED in work.unused_levels) is is_unused
    assert work.traffic[SHARED].bytes == 256, "what was counted stays"
