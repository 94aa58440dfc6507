"""All analyses of one trace: a matrix-vector product written by hand, with a divergent branch, shared memory and inlined code."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer, Weight
from gpa_lsp.execution.accesses.lane_addresses import LanePattern
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.ask import TraceAnalyser, answer_launches, answer_questions, list_questions
from gpa_lsp.execution.traces.code_centric import list_path_accesses, list_path_branches
from gpa_lsp.execution.traces.data_centric import list_array_facts
from gpa_lsp.execution.traces.line_facts import list_branch_facts, list_line_facts
from gpa_lsp.execution.traces.model import AccessGroupKind, AnalysisSettings, TraceContext, build_trace_context
from gpa_lsp.execution.traces.results import TraceAnalyses, list_measures, spread_listed
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.products import find_product
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

COLUMNS = 16
MATRIX = make_buffer("matrix", 64 * COLUMNS * 4)
VECTOR = make_buffer("vector", COLUMNS * 4, base=BASE + (1 << 16))
RESULT = make_buffer("result", 64 * 4, base=BASE + (1 << 17))
LOOP, ROW, ELEMENT, STORE, TILE = range(5)
INSTRUCTIONS = (
    make_instruction(LOOP, None, line=10),
    make_instruction(ROW, line=11),
    make_instruction(ELEMENT, line=3, callers=(11,)),
    make_instruction(STORE, AccessKind.STORE, line=12),
    make_instruction(TILE, space=Space.SHARED, line=13),
)
CONTEXT = TraceContext(gpu="a small GPU", sm_count=2, blocks_per_sm=1, l1_bytes=1 << 13, l2_bytes=1 << 16)
ALL = 0xFFFFFFFF


def write_product(blocks: range = range(2)) -> Trace:
    writer = TraceWriter(INSTRUCTIONS, (MATRIX, VECTOR, RESULT), grid=(2, 1, 1))
    for block in blocks:
        for column in range(COLUMNS):
            writer.access(ROW, lanes_by(4 * COLUMNS, base=BASE + 4 * column + 128 * COLUMNS * block), block=block)
            writer.access(ELEMENT, lanes_by(0, base=VECTOR.base + 4 * column), block=block)
            writer.branch(LOOP, ALL, ALL if column < COLUMNS - 1 else 0xFFFF, block=block)
        writer.access(TILE, lanes_by(8, base=0), block=block)
        writer.access(STORE, lanes_by(4, base=RESULT.base + 128 * block), block=block)
    return writer.finish()


@pytest.fixture(scope="module")
def analyses() -> TraceAnalyses:
    return analyse_trace(write_product(), context=CONTEXT)


def test_the_trace_is_conserved(analyses):
    requests = 2 * (2 * COLUMNS + 1)
    assert sum(one.totals.requests for one in analyses.accesses.instructions) == requests
    assert sum(one.totals.requests for one in analyses.accesses.arrays) == requests
    for reuse in (analyses.block_elements, analyses.block_lines, analyses.warp_lines, analyses.sm_lines):
        assert sum(one.histogram.references for one in reuse.groups) == reuse.total.references
        assert reuse.is_whole
    # per block: 16 lines of the matrix and one of the vector a column, one line stored
    assert analyses.block_lines.total.references == 2 * (16 * COLUMNS + COLUMNS + 1)
    assert analyses.sm_lines.total.references == 2 * (16 * COLUMNS + COLUMNS)
    loads = analyses.find_global_totals(AccessGroupKind.LOADS)
    assert analyses.caches.sum_column("l1_sectors") == loads.sectors
    assert analyses.caches.sum_column("store_sectors") == analyses.find_global_totals(AccessGroupKind.STORES).sectors


def test_pieces_give_what_the_whole_gives(analyses):
    pieces = [write_product(range(1)), write_product(range(1, 2))]
    found = analyse_trace(iter(pieces), context=CONTEXT)
    assert found.traced_blocks == analyses.traced_blocks == 2
    assert found.caches == analyses.caches
    assert found.branches == analyses.branches
    assert found.repeats == analyses.repeats
    assert found.block_lines.total.bins.tolist() == analyses.block_lines.total.bins.tolist()
    assert found.sampled_words == "all blocks"


def test_hits_follow_from_the_sizes(analyses):
    # a row of the matrix is two sectors, each of which serves eight columns; both blocks' lines fit into L1
    assert analyses.caches.l1_hit_ratio == pytest.approx(1 - (64 + 2) / (32 * COLUMNS + COLUMNS))
    small = analyse_trace(write_product(), context=replace(CONTEXT, l1_bytes=1024))
    assert small.caches.l1_hit_ratio < 0.1


def test_arrays(analyses):
    matrix, vector, result = list_array_facts(analyses)
    assert [one.name for one in (matrix, vector, result)] == ["matrix", "vector", "result"]
    assert matrix.patterns[0].pattern is LanePattern.STRIDED
    assert matrix.strides == ((64, 2 * COLUMNS),)
    assert (matrix.footprint_bytes, vector.footprint_bytes, result.footprint_bytes) == (4096, 64, 256)
    assert vector.patterns[0].pattern is LanePattern.BROADCAST
    assert (matrix.worst_pattern, vector.worst_pattern) == ("strided by 64 bytes", "")
    assert result.stores.sectors == 8
    assert matrix.touches_per_sector == 8.0
    assert vector.line_reuse.infinite == 2


def test_call_paths(analyses):
    paths = list_path_accesses(analyses)
    assert [str(one.place) for one in paths] == ["kernel.cu:11", "kernel.cu:11 → kernel.cu:3", "kernel.cu:12"]
    assert paths[0].arrays == ("matrix",)
    assert paths[0].totals.sectors_per_request == 32
    assert sum(one.share_ratio for one in paths) == pytest.approx(1.0)
    (branch,) = list_path_branches(analyses)
    assert (branch.executions, branch.divergent) == (2 * COLUMNS, 2)


def test_facts_of_lines(analyses):
    facts = {(one.line, one.is_nested): one for one in list_line_facts(analyses)}
    assert set(facts) == {(3, False), (11, False), (11, True), (12, False), (13, False)}
    row = facts[11, False]
    assert row.arrays == ("matrix",)
    assert (row.sectors_per_request, row.lines_per_request, row.ideal_sectors_per_request) == (32, 16, 4)
    assert row.strides_bytes == (64,)
    assert row.pattern_words == "strided by 64 bytes"
    assert row.l1_hit_ratio is not None and row.reuse is not None and row.reuse.references
    assert row.excess_ratio == 28 / 32
    tile = facts[13, False]
    assert (tile.wavefronts_per_request, tile.ideal_wavefronts_per_request) == (2, 1)
    assert facts[12, False].kind is AccessGroupKind.STORES
    assert facts[12, False].l1_hit_ratio is None


def test_facts_of_branches(analyses):
    (fact,) = list_branch_facts(analyses)
    assert (fact.line, fact.executions, fact.divergent, fact.one_way) == (10, 32, 2, "")
    always = analyse_trace(TraceWriter(INSTRUCTIONS).branch(LOOP, ALL, ALL).finish(), context=CONTEXT)
    (fact,) = list_branch_facts(always)
    assert fact.one_way == "always"


def check(answer: Answer) -> None:
    assert answer.title.endswith(("(emulated)", "(predicted)"))
    assert answer.summary.endswith(".")
    assert len(answer.marks) <= MOST_MARKS
    for table in answer.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    for bar in answer.bars:
        assert 0 <= bar.ratio <= 1
    for chart in answer.charts:
        for series in chart.series:
            assert len(series.xs) == len(series.ys)
            assert list(series.xs) == sorted(series.xs)


def test_every_question_has_an_answer(analyses):
    answers, problems = answer_questions(analyses)
    assert problems == ()
    assert [one.analysis for one in answers] == list(list_questions())
    for answer in answers:
        check(answer)
        assert answer.is_known
    memory = answers[0]
    assert memory.findings[0].weight is Weight.HIGH
    assert "at line 11 of kernel.cu touch 32 sectors per request; 4 would suffice" in memory.findings[0].text
    assert memory.findings[0].remedy


def test_questions_to_an_empty_trace():
    empty = analyse_trace(TraceWriter(INSTRUCTIONS).finish(), context=replace(CONTEXT, l1_bytes=None, l2_bytes=None))
    answers, problems = answer_questions(empty)
    assert problems == ()
    for answer in answers:
        check(answer)
    assert {one.analysis for one in answers if one.is_known} == {"traced_values"}
    assert list_line_facts(empty) == ()


def test_a_question_that_fails_is_a_problem(analyses, monkeypatch):
    broken = replace(next(iter(list_questions().values())), answer=lambda _: 1 / 0)
    monkeypatch.setattr("gpa_lsp.execution.traces.ask.list_questions", lambda: {"broken": broken})
    answers, (problem,) = answer_questions(analyses)
    assert answers == ()
    assert "ZeroDivisionError" in problem.message


def test_launches_are_compared(analyses):
    other = analyse_trace(write_product(range(1)), context=CONTEXT)
    spreads = {one.measure: one for one in spread_listed([list_measures(analyses), list_measures(other)])}
    requests = spreads["global loads: requests"]
    assert (requests.least, requests.most, requests.mean, requests.deviation) == (32, 64, 48, 16)
    assert spreads["global loads: sectors per request"].deviation == 0
    check(answer_launches(tuple(spreads.values()), 2, "emulated"))
    alike = answer_launches(spread_listed([list_measures(analyses)] * 2), 2, "emulated")
    assert "do not differ" in alike.summary


def test_pieces_of_other_launches_are_refused():
    analyser = TraceAnalyser(CONTEXT)
    with pytest.raises(InputError, match="no trace"):
        analyser.finish()
    analyser.add(write_product())
    with pytest.raises(InputError, match="different launches"):
        analyser.add(replace(write_product(), grid=(3, 1, 1)))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("instruction", 99, "instruction"), ("lane_mask", 0, "no lanes"), ("first_address", 10**9, "fewer addresses")],
)
def test_broken_traces_are_refused(column, value, words):
    trace = write_product()
    rows = getattr(trace.accesses, column).copy()
    rows[3] = value
    broken = replace(trace, accesses=replace(trace.accesses, **{column: rows}))
    with pytest.raises(InputError, match=words):
        analyse_trace(broken, context=CONTEXT)


def test_little_room_is_said_and_kept():
    settings = AnalysisSettings(block_references=8, wave_references=64, footprint_sectors=4, value_rows=4)
    found = analyse_trace(write_product(), context=CONTEXT, settings=settings)
    assert not found.repeats.is_whole
    assert found.accesses.footprints[0] is None
    assert any("left out" in one for one in found.caches.assumptions)
    answers, problems = answer_questions(found)
    assert problems == ()
    assert all(answer.title for answer in answers)


def test_contexts_come_from_the_tables():
    found = build_trace_context((8, 0), block_threads=(256, 1, 1), registers_per_thread=64, shared_bytes=16384)
    assert (found.sm_count, found.blocks_per_sm) == (108, 4)
    assert found.l1_bytes == 192 * 1024 - 100 * 1024
    assert found.l2_bytes == find_product(found.gpu).l2_bytes
    assert any("carve-out" in one for one in found.assumptions)
    with pytest.raises(InputError, match="can hold a block"):
        build_trace_context((8, 0), block_threads=(1024, 2, 1))
    with pytest.raises(InputError, match=r"compute capability 9\.0"):
        build_trace_context((8, 0), block_threads=(32, 1, 1), product=find_product("H100 PCIe"))


def test_addresses_above_all_arrays_and_at_the_top_of_memory():
    writer = TraceWriter((make_instruction(0),), (MATRIX,)).access(0, [0, 1 << 40, (1 << 63) - 64, BASE])
    found = analyse_trace(writer.finish(), context=CONTEXT)
    outside = [one for one in list_array_facts(found) if one.buffer is None]
    assert outside[0].loads.lanes == 3
    assert np.sum([one.totals.sectors for one in found.accesses.arrays]) == 4
    answers, _ = answer_questions(found)
    assert any("outside" in finding.text for answer in answers for finding in answer.findings)
