"""The rows of a kernel: columns over all its functions, joined once."""

import numpy as np
from msgspec.structs import replace

from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel

TEXT = """
    LDG.E R2, [R4.64]       # a.cu:3 | wait=4/1 | x=4 global_sectors=16
    CALL.REL.NOINC `(helper)
    EXIT                    # a.cu:3 | wait=1/1 long_scoreboard=7/2 | x=4
[helper]
    LDS R2, [R4]            # h.cuh:9 | wait=2/2 | x=8
    RET.REL.NODEC R20 0x0
"""


def write_with_foreign() -> Kernel:
    """The written kernel between two copies of a function that nobody could look into."""
    kernel = write_kernel(TEXT)
    first, helper = kernel.functions
    columns = {name: getattr(helper, name) for name in ("pc_offsets", "all_samples", "executions", "chain_index")}
    foreign = replace(helper, function=None, instructions=None, graph=None, control=None, lines=None, **columns)
    return replace(kernel, functions=(foreign, first, helper, foreign))


def test_rows_of_functions_follow_each_other() -> None:
    rows = write_with_foreign().rows
    assert (len(rows), rows.first_rows.tolist()) == (9, [0, 2, 5, 7, 9])
    assert rows.function_index.tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert [rows.function_of(row) is rows.functions[rows.function_index[row]] for row in range(9)] == [True] * 9
    assert [rows.index_of(row) for row in range(9)] == [0, 1, 0, 1, 2, 0, 1, 0, 1]
    assert rows.pc_offsets.tolist() == [0, 16, 0, 16, 32, 0, 16, 0, 16]


def test_samples_and_counts_stand_at_their_rows() -> None:
    rows = write_with_foreign().rows
    wait = rows.reason_index("wait")
    assert rows.all_samples[:, wait].tolist() == [2, 0, 4, 0, 1, 2, 0, 2, 0]
    assert rows.latency_samples[:, wait].tolist() == [2, 0, 1, 0, 1, 2, 0, 2, 0]
    assert (rows.count_reason("wait"), rows.count_reason("long_scoreboard"), rows.count_reason("drain")) == (11, 7, 0)
    assert rows.executions.tolist() == [8, -1, 4, -1, 4, 8, -1, 8, -1]
    counted = rows.counter("global_sectors")
    assert counted is not None and counted[2] == 16 and rows.counter("shared_wavefronts") is None


def test_latency_samples_are_known_for_all_rows_or_for_none() -> None:
    kernel = write_with_foreign()
    functions = (*kernel.functions[:-1], replace(kernel.functions[-1], latency_samples=None))
    assert replace(kernel, functions=functions).rows.latency_samples is None
    assert not replace(kernel, functions=functions).is_split


def test_what_nobody_disassembled_has_no_opcode() -> None:
    rows = write_with_foreign().rows
    assert [rows.mnemonic(row) for row in range(5)] == ["", "", "LDG.E", "CALL.REL.NOINC", "EXIT"]
    assert (rows.opcode(0).is_known, rows.opcode(2).name, rows.texts[0]) == (False, "LDG", "")
    assert rows.mark_by_opcode(lambda opcode: opcode.memory is not None).tolist() == [
        False, False, True, False, False, True, False, False, False,
    ]  # fmt: skip
    assert rows.spread_by_mnemonic(len).tolist() == [-1, -1, 5, 14, 4, 3, 13, -1, -1]
    assert rows.has_code and not replace(write_with_foreign(), functions=rows.functions[:1]).rows.has_code
    assert rows.has_control.tolist() == [False] * 2 + [True] * 5 + [False] * 2
    assert rows.control.write_barrier[[0, 8]].tolist() == [7, 7]


def test_a_call_names_its_callee() -> None:
    assert write_with_foreign().rows.texts[3].endswith("`(helper)")


def test_chains_are_shared_between_rows() -> None:
    rows = write_with_foreign().rows
    assert [None if one is None else str(one) for one in map(rows.place, range(9))] == [
        None, None, "a.cu:3", None, "a.cu:3", "h.cuh:9", None, None, None,
    ]  # fmt: skip
    assert (len(rows.chains), rows.chain_index.tolist()) == (2, [-1, -1, 0, -1, 0, 1, -1, -1, -1])
    assert rows.chain(2) is rows.chain(4)


def test_a_column_is_joined_once_and_one_function_is_not_copied() -> None:
    kernel = write_with_foreign()
    assert kernel.rows is kernel.rows and kernel.rows.executions is kernel.rows.executions
    alone = replace(kernel, functions=kernel.functions[:1])
    assert alone.rows is not kernel.rows and np.shares_memory(alone.rows.executions, alone.functions[0].executions)


def test_a_kernel_without_functions_has_no_rows() -> None:
    rows = replace(write_kernel(TEXT), functions=()).rows
    assert (len(rows), rows.first_rows.tolist(), rows.texts, rows.mnemonics, rows.chains) == (0, [0], (), (), ())
    assert rows.all_samples.shape == (0, len(rows.reasons)) and rows.latency_samples is not None
    assert len(rows.reads.starts) == 1 and not rows.has_code and len(rows.target_row) == 0


def test_a_metric_that_no_counter_can_hold_is_unknown() -> None:
    percent = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
    kernel = write_kernel(
        TEXT, metrics={percent: 201.0, f"{percent}.2": 104.0, "sm__cycles_active.avg": -1.0, "x": 201.0}
    )
    assert (kernel.metric(percent), kernel.metric("sm__cycles_active.avg"), kernel.metric("x")) == (None, None, 201.0)
    assert kernel.metric("missing", percent, f"{percent}.2") == 104.0
