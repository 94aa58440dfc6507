"""Call paths through functions that are really called: one load, reached in several ways, each with its own pattern."""

import json
from pathlib import Path

import pytest

from gpa_lsp.execution.emulator.model import Trace, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.trace_files import TraceWriter, read_pieces
from gpa_lsp.execution.traces.code_centric import list_path_accesses, list_path_branches
from gpa_lsp.execution.traces.line_facts import list_branch_facts, list_line_facts
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.paper_answer import measure_paper_divergence
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.errors import InputError
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, zeros
from tests.traces.analysing import analyse_trace
from tests.traces.kernels.running import FOLDER, floats, trace_kernel

BLOCKS, WARPS = 3, 6
CONTEXT = TraceContext(sm_count=2, blocks_per_sm=2, l1_bytes=16 << 10, l2_bytes=1 << 20)
CALLED = LaunchDescription(
    kernel="called", block=(64, 1, 1), grid=(BLOCKS, 1, 1), arguments=(floats("values", 2048), floats("result", 64))
)
LINES = (FOLDER / "called.cu").read_text(encoding="utf-8").splitlines()


def find_line(words: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if words in line)


LOAD, COLUMN, RECURSION = find_line("return values"), find_line("row * 32"), find_line("return load(values, index) +")
FIRST, SECOND, THIRD = (find_line(f"sum {words}") for words in ("= load(", "+= load_column", "+= sum_down"))
TURNS = 3
"""Of the recursion that load: at thread + 128, thread + 64 and thread; the next one finds its index negative in every lane of a warp or in none."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return trace_kernel("called", CALLED)[1]


@pytest.fixture(scope="module")
def analyses(trace: Trace) -> TraceAnalyses:
    return analyse_trace(trace, context=CONTEXT)


def test_facts_of_a_line_have_the_columns_of_what_is_there(analyses: TraceAnalyses) -> None:
    facts = [one for one in list_line_facts(analyses) if one.line == LOAD]
    assert {one.columns for one in facts} == {(LINES[LOAD - 1].index("return") + 1,)}
    assert all(one.columns == () for one in list_line_facts(analyses) if one.is_nested)


def test_each_way_to_a_load_is_counted_by_itself(analyses: TraceAnalyses) -> None:
    found = {
        tuple(frame.line for frame in one.place.path): (one.totals.requests, one.totals.sectors_per_request)
        for one in list_path_accesses(analyses)
        if one.kind.value == "loads"
    }
    assert found == {
        (FIRST, LOAD): (WARPS, 4),
        (SECOND, COLUMN, LOAD): (WARPS, 32),
        (THIRD, RECURSION, LOAD): (WARPS, 4),
        (THIRD, RECURSION, RECURSION, LOAD): ((TURNS - 1) * WARPS, 4),
    }
    assert all(one.place.is_whole for one in list_path_accesses(analyses))


def test_executions_are_numbered_along_each_way(trace: Trace) -> None:
    loads = [one for one in trace.instructions if one.calls and one.kind is not None]
    assert len({one.same_as for one in loads}) == 1
    executions = {
        tuple(trace.instructions[call].chain[0].line for call in one.calls): sorted(
            set(trace.accesses.execution[trace.accesses.instruction == one.index].tolist())
        )
        for one in loads
    }
    assert executions == {
        (FIRST,): [0],
        (COLUMN, SECOND): [0],
        (RECURSION, THIRD): [0],
        (RECURSION, RECURSION, THIRD): list(range(TURNS - 1)),
    }


def test_what_is_called_counts_at_the_lines_that_call_it(analyses: TraceAnalyses) -> None:
    nested = {one.line: one.requests for one in list_line_facts(analyses) if one.is_nested}
    assert nested == {
        COLUMN: WARPS,
        RECURSION: TURNS * WARPS,
        FIRST: WARPS,
        SECOND: WARPS,
        THIRD: TURNS * WARPS,
    }
    branches = {(one.line, one.is_nested): one.executions for one in list_branch_facts(analyses)}
    assert branches[find_line("if (index"), False] == (TURNS + 1) * WARPS == branches[THIRD, True]


def test_a_line_says_who_calls_its_function(analyses: TraceAnalyses) -> None:
    own = {
        one.sectors_per_request: dict(one.callers)
        for one in list_line_facts(analyses)
        if (one.line, one.is_nested) == (LOAD, False)
    }
    assert own == {
        32: {f"called.cu:{SECOND} → called.cu:{COLUMN}": 1.0},
        4: {
            f"called.cu:{THIRD} → called.cu:{RECURSION} → called.cu:{RECURSION}": 0.5,
            f"called.cu:{FIRST}": 0.25,
            f"called.cu:{THIRD} → called.cu:{RECURSION}": 0.25,
        },
    }
    (store,) = (one for one in list_line_facts(analyses) if one.kind.value == "stores")
    assert store.callers == ()


def test_ways_beyond_the_most_are_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.emulator.engine.tracing._MOST_PATHS", 1)
    analyses = analyse_trace(trace_kernel("called", CALLED)[1], context=CONTEXT)
    found = {
        one.place.write(analyses.short_files): one.totals.requests
        for one in list_path_accesses(analyses)
        if one.kind.value == "loads"
    }
    unknown = (1 + TURNS) * WARPS
    assert found == {f"called.cu:{FIRST} → called.cu:{LOAD}": WARPS, f"… → called.cu:{LOAD}": unknown}
    (own,) = (one for one in list_line_facts(analyses) if (one.line, one.is_nested) == (LOAD, False))
    assert own.callers == (("…", unknown / (unknown + WARPS)), (f"called.cu:{FIRST}", WARPS / (unknown + WARPS)))
    (few,) = (one for one in list_path_branches(analyses) if one.executions)
    assert few.place.write(analyses.short_files) == f"… → called.cu:{find_line('if (index')}"


def test_instructions_beyond_the_most_keep_their_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.emulator.engine.tracing._MOST_INSTRUCTIONS", 2)
    emulation, trace = trace_kernel("called", CALLED)
    assert len(trace.instructions) == len(emulation.instructions) + 2
    assert sum(one.totals.requests for one in list_path_accesses(analyse_trace(trace, context=CONTEXT))) == (
        (2 + TURNS) * WARPS + WARPS
    )


def test_a_saved_trace_keeps_them(trace: Trace, tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace") as writer:
        writer.add(trace)
    (piece,) = read_pieces(tmp_path / "trace")
    assert piece.instructions == trace.instructions
    head = tmp_path / "trace" / "trace.json"
    number = len(trace.instructions) - 1
    document = json.loads(head.read_text())
    document["instructions"][number]["calls"] = [number]
    head.write_text(json.dumps(document))
    with pytest.raises(InputError, match="does not come before it"):
        next(read_pieces(tmp_path / "trace"))


def test_the_papers_log_knows_no_callers() -> None:
    """Half of the warp calls a load from one place, half from another: one load of all lanes, as the analyser counts."""
    before = ".func load (.param .b64 from) { .reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [from]; ld.global.u32 %r1, [%d1]; ret; }"
    call = "{ .param .b64 a; st.param.b64 [a], %d31; call load, (a); }"
    body = f"{GLOBAL_THREAD} setp.lt.u32 %p1, %r52, 16; @%p1 bra LOW; {call} bra.uni DONE; LOW: {call} DONE: mov.u32 %r1, 0;"
    trace = run_text(body, {"in": zeros(32), "out": zeros(32)}, before=before, trace=TraceSettings()).trace
    assert trace is not None
    assert len(trace.accesses) == 2
    assert len(set(trace.accesses.instruction.tolist())) == 2
    groups = measure_paper_divergence(trace).groups
    assert {number: int(count) for number, count in enumerate(groups) if count} == {1: 1}
