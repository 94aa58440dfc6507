"""Traces of real code: pieces straight from the emulator, divergence, bank conflicts and inlined lines of one small kernel."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.accesses.lane_addresses import LanePattern
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Trace, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from gpa_lsp.execution.prediction.predict_launch import list_block_chains
from gpa_lsp.execution.traces.ask import TraceAnalyser, answer_questions
from gpa_lsp.execution.traces.code_centric import list_path_accesses
from gpa_lsp.execution.traces.data_centric import list_array_facts
from gpa_lsp.execution.traces.line_facts import list_branch_facts, list_line_facts
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.paper_answer import measure_paper_branches, measure_paper_divergence, measure_paper_reuse
from gpa_lsp.execution.traces.results import TraceAnalyses
from tests.traces.analysing import analyse_trace
from tests.traces.kernels.running import FOLDER, floats, launch_bicg, load_module, trace_kernel

BLOCKS, THREADS = 6, 64
WARPS = BLOCKS * THREADS // 32
CONTEXT = TraceContext(sm_count=2, blocks_per_sm=2, l1_bytes=16 << 10, l2_bytes=1 << 20)
DIVERGENT = LaunchDescription(
    kernel="divergent",
    block=(THREADS, 1, 1),
    grid=(BLOCKS, 1, 1),
    arguments=(
        ArrayArgument(name="index", type=ScalarType.S32, count=256, generator=Generator.PERMUTATION, seed=1),
        floats("values", 256),
        floats("result", BLOCKS * THREADS),
    ),
)
LINES = (FOLDER / "divergent.cu").read_text(encoding="utf-8").splitlines()


def find_line(words: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if words in line)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return trace_kernel("divergent", DIVERGENT)[1]


@pytest.fixture(scope="module")
def analyses(trace) -> TraceAnalyses:
    chains = list_block_chains(load_module("divergent"), "divergent")
    return analyse_trace(trace, context=CONTEXT, block_chains=chains)


def test_basic_blocks_have_lines(analyses):
    blocks = analyses.branches.basic_blocks
    assert len(analyses.block_chains) > max(one.basic_block for one in blocks)
    entry = analyses.block_chains[blocks[0].basic_block]
    assert entry is not None
    assert entry[-1].line in range(find_line("void divergent"), len(LINES) + 1)
    (branches,) = [answer for answer in answer_questions(analyses)[0] if answer.analysis == "traced_branches"]
    (table,) = [table for table in branches.tables if table.title == "Basic blocks by line"]
    in_the_loop = [row for row in table.rows if "divergent.cu" in str(row[1]) and row[3]]
    assert in_the_loop
    assert sum(int(row[2]) for row in table.rows) == analyses.branches.entries


def test_pieces_from_the_emulator_are_the_whole(analyses):
    analyser = TraceAnalyser(CONTEXT)
    emulate(load_module("divergent"), DIVERGENT, trace=TraceSettings(entries=True), sink=analyser)
    found = analyser.finish()
    assert found.traced_blocks == BLOCKS
    assert found.caches == analyses.caches
    assert found.branches == analyses.branches
    assert found.banks[0].wavefronts == analyses.banks[0].wavefronts
    assert found.block_elements.total.bins.tolist() == analyses.block_elements.total.bins.tolist()


def test_loops_of_lanes_of_different_length(analyses):
    # lane l makes l + 1 turns: the loads of the index run 1 + 2 + … + 32 lanes in 32 executions, however the compiler unrolled them
    index, values, result = (
        next(one for one in list_array_facts(analyses) if one.name == name) for name in ("index", "values", "result")
    )
    assert index.loads.lanes == values.loads.lanes == WARPS * 33 * 16
    assert result.stores.requests == WARPS
    assert index.loads.requests >= WARPS * 32
    assert values.patterns[0].pattern is LanePattern.SCATTERED
    assert (index.footprint_bytes, values.footprint_bytes, result.footprint_bytes) == (4 * 95 + 4, 1024, 4 * 384)


def test_the_loop_diverges_in_every_warp(analyses):
    assert analyses.branches.divergent >= WARPS
    assert analyses.branches.lane_ratio < 0.9
    assert max(list_branch_facts(analyses), key=lambda one: one.divergent).line in range(
        find_line("for (int turn"), find_line("sum += halve") + 1
    )


def test_shared_memory_by_columns_conflicts(analyses):
    shared = {one.line: one for one in list_line_facts(analyses) if one.space is Space.SHARED}
    for words in ("tile[lane * 32] = sum", "= tile[(31 - lane) * 32]"):
        fact = shared[find_line(words)]
        assert (fact.wavefronts_per_request, fact.ideal_wavefronts_per_request) == (32, 1)


def test_the_gather_is_at_its_line_and_at_its_callers(analyses):
    facts = [one for one in list_line_facts(analyses) if one.arrays == ("values",)]
    assert {(one.line, one.is_nested) for one in facts} == {
        (find_line("return 0.5f"), False),
        (find_line("sum += halve"), True),
    }
    paths = [one for one in list_path_accesses(analyses) if one.arrays == ("values",)]
    assert [len(one.place.path) for one in paths] == [2]


def test_questions(analyses):
    answers, problems = answer_questions(analyses)
    assert problems == ()
    assert all(answer.is_known for answer in answers)


def test_the_papers_definitions_on_divergent_code(trace, analyses):
    divergence = measure_paper_divergence(trace)
    loads = sum(
        one.totals.lanes
        for one in analyses.accesses.instructions
        if one.space is Space.GLOBAL and analyses.find_kind(one.instruction).value == "loads"
    )
    assert int(divergence.groups.sum()) > 0
    assert (divergence.groups * np.arange(33)).sum() <= loads
    reuse = measure_paper_reuse(trace, spaces=(Space.GLOBAL,))
    assert reuse.entries == loads + BLOCKS * THREADS
    assert measure_paper_branches(trace).divergent > 0


def test_a_product_by_rows_reuses_its_lines_and_one_by_columns_does_not():
    rows = analyse_trace(trace_kernel("bicg", launch_bicg("bicg_rows", 256))[1], context=CONTEXT)
    columns = analyse_trace(trace_kernel("bicg", launch_bicg("bicg_columns", 256))[1], context=CONTEXT)
    by_rows, by_columns = (next(one for one in list_array_facts(found) if one.name == "a") for found in (rows, columns))
    assert by_rows.patterns[0].pattern is LanePattern.STRIDED
    assert by_rows.strides[0][0] == 1024
    assert by_columns.patterns[0].pattern is LanePattern.CONTIGUOUS
    # a warp by rows touches 32 lines a turn and comes back to each 31 times; by columns each line is used by one warp once
    assert by_rows.line_reuse.infinite == by_rows.line_reuse.references // 32
    assert by_columns.line_reuse.streaming_ratio == 1.0
    assert by_rows.footprint_bytes == by_columns.footprint_bytes == 4 * 256 * 256
    # the sums are stored in every turn and not read in between
    for found in (rows, columns):
        assert sum(one.repeated for one in found.repeats.stores) == 8 * 256
