"""The code of a kernel's functions on the rows of its report."""

import pickle

from msgspec.structs import replace

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.report.count import build_instruction_columns, build_kernel_code, list_loops
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from tests.rows.written import write_kernel

KERNEL = write_kernel("""
        MOV R0, RZ
    loop:
        LDG.E R2, [R4.64]
        @!P0 FFMA R0, R2, R3, R0
        ISETP.LT.AND P1, PT, R6, R8, PT
        @P1 BRA loop
        CALL.REL.NOINC `(helper)
        EXIT
    [helper]
        IADD3 R4, R4, 0x1, RZ
    again:
        ISETP.NE.AND P2, PT, R4, RZ, PT
        @P2 BRA again
        RET.REL.NODEC R20 0x0
""")


def test_rows_and_blocks_count_through_the_functions() -> None:
    code = build_kernel_code(KERNEL)
    assert code.block_of_row.tolist() == [0, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6]
    assert (code.first_row.tolist(), code.last_row.tolist()) == ([0, 1, 5, 6, 7, 8, 10], [0, 4, 5, 6, 7, 9, 10])
    assert code.target_row.tolist() == [-1, -1, -1, -1, 1, -1, -1, -1, -1, 8, -1]
    successors = [
        code.successors[code.successor_starts[block] : code.successor_starts[block + 1]].tolist() for block in range(7)
    ]
    predecessors = [
        code.predecessors[code.predecessor_starts[block] : code.predecessor_starts[block + 1]].tolist()
        for block in range(7)
    ]
    assert successors == [[1], [1, 2], [3], [], [5], [5, 6], []]
    assert predecessors == [[], [0, 1], [1], [2], [], [4, 5], [5]]
    assert code.immediate_dominator.tolist() == [-1, 0, 1, 2, -1, 4, 5]
    assert code.immediate_post_dominator.tolist() == [1, 2, 3, -1, 5, 6, -1]
    assert code.procedure_of_block.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert (code.procedure_entry.tolist(), code.procedure_is_local.tolist()) == ([0, 4], [False, False])
    assert code.may_end.tolist() == [False, False, False, True, False, False, True]
    assert code.is_reachable.all() and code.reaches_end.all()


def test_what_each_instruction_does() -> None:
    code = build_kernel_code(KERNEL)
    assert [code.mnemonics[index] for index in code.mnemonic_index.tolist()][:3] == ["MOV", "LDG.E", "FFMA"]
    assert (code.reads.of(2), code.writes.of(2)) == ((0, 2, 3, 512), (0,))
    assert (code.reads.of(7), code.writes.of(7)) == ((4,), (4,))
    assert (code.guard.tolist()[2], code.guard_negated.tolist()[2]) == (512, True)
    assert code.guard.tolist().count(-1) == 8
    assert [Flow(number) for number in code.flow.tolist()] == [
        Flow.NONE, Flow.NONE, Flow.NONE, Flow.NONE, Flow.BRANCH, Flow.CALL, Flow.EXIT,
        Flow.NONE, Flow.NONE, Flow.BRANCH, Flow.RETURN,
    ]  # fmt: skip


def test_loops_are_those_of_the_report() -> None:
    code, loops = build_kernel_code(KERNEL), list_loops(KERNEL)
    columns = build_instruction_columns(KERNEL)
    headers = [
        (columns.functions[columns.function_index[row]], int(columns.pc_offsets[row])) for row in (1, 8)
    ]  # of the two loops
    assert [(loop.function, loop.header_pc_offset) for loop in loops] == headers
    assert code.header_of_block.tolist() == [-1, 1, -1, -1, -1, 5, -1]
    assert code.loop_of_block.tolist() == [-1, 0, -1, -1, -1, 1, -1]


def test_what_nobody_disassembled_does_nothing() -> None:
    function = KERNEL.functions[0]
    foreign = replace(
        function,
        function=None,
        instructions=None,
        graph=None,
        control=None,
        **{name: getattr(function, name)[:3] for name in ("chain_index", "pc_offsets", "all_samples", "executions")},
    )
    code = build_kernel_code(replace(KERNEL, functions=(foreign, KERNEL.functions[0], foreign)))
    assert code.mnemonic_index.tolist()[:3] == [-1] * 3 == code.mnemonic_index.tolist()[-3:]
    assert code.block_of_row.tolist() == [-1] * 3 + [0, 1, 1, 1, 1, 2, 3] + [-1] * 3
    assert code.first_row.tolist() == [3, 4, 8, 9] and code.target_row.tolist()[7] == 4
    assert (code.reads.of(0), code.reads.of(5), code.reads.of(12)) == ((), (0, 2, 3, 512), ())
    alone = build_kernel_code(replace(KERNEL, functions=(foreign,)))
    assert (alone.block_of_row.tolist(), alone.successor_starts.tolist(), alone.mnemonics) == ([-1] * 3, [0], ())


def test_counters_are_those_of_all_functions() -> None:
    kernel = write_kernel("""
        LDG.E R2, [R4.64]       # - | wait=1 | x=4 global_sectors=16
        CALL.REL.NOINC `(helper)
        EXIT
    [helper]
        LDS R2, [R4]            # - | wait=1 | shared_wavefronts=9
        RET.REL.NODEC R20 0x0
    """)
    counters = build_kernel_code(kernel).counters
    assert {name: column.tolist() for name, column in counters.items()} == {
        "global_sectors": [16, -1, -1, -1, -1],
        "shared_wavefronts": [-1, -1, -1, 9, -1],
    }


def test_a_gathered_report_has_it_and_it_travels() -> None:
    (kernel,) = gather_report([AnalysedKernel(kernel=KERNEL)]).kernels
    assert kernel.code is not None and len(kernel.code.guard) == len(kernel.instructions)
    sent = pickle.loads(pickle.dumps(kernel)).code
    assert sent is not None and sent.reads.of(2) == kernel.code.reads.of(2)
