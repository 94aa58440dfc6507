"""Accesses through a library's header belong to the line that calls it; the header follows in brackets."""

from msgspec.structs import replace

from gpa_lsp.execution.traces.code_centric import find_line_place, list_path_accesses
from gpa_lsp.execution.traces.line_facts import list_line_facts
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.locations import Frame
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import FILE, TraceWriter, lanes_by, make_instruction

LDG, LDCS, STEP, KERNEL = (
    Frame(file=file, line=line, function=function)
    for file, line, function in (
        ("/usr/local/cuda/include/sm_32_intrinsics.hpp", 134, "_Z5__ldgPKf"),
        ("/usr/local/cuda/include/sm_32_intrinsics.hpp", 200, "_Z6__ldcsPKf"),
        ("/src/step.cuh", 7, "step"),
        (FILE, 5, "_Z6kernelv"),
    )
)
CHAINS = ((LDG, STEP, KERNEL), (STEP, KERNEL), (LDCS, KERNEL), (LDG,))


def analyse() -> TraceAnalyses:
    instructions = tuple(
        replace(make_instruction(number), chain=chain, column=3) for number, chain in enumerate(CHAINS)
    )
    writer = TraceWriter(instructions)
    for number in range(len(CHAINS)):
        writer.access(number, lanes_by(4))
    return analyse_trace(writer.finish(), context=TraceContext(sm_count=1, blocks_per_sm=1))


def test_paths_end_at_the_users_line() -> None:
    found = sorted(one.place.write({}) for one in list_path_accesses(analyse()))
    assert found == sorted([
        f"{FILE}:5 → /src/step.cuh:7 (in {LDG.file}:134)",
        f"{FILE}:5 → /src/step.cuh:7",
        f"{FILE}:5 (in {LDG.file}:200)",
        f"{LDG.file}:134",
    ])  # fmt: skip
    said = [str(one.place.say({})) for one in list_path_accesses(analyse())]
    assert sum(one.endswith(f"(in {LDG.file}:134)") for one in said) == 1


def test_lines_are_the_users() -> None:
    analyses = analyse()
    found = sorted(find_line_place(analyses, one).write({}) for one in range(len(CHAINS)))
    assert found == sorted(["/src/step.cuh:7", "/src/step.cuh:7", f"{FILE}:5", f"{LDG.file}:134"])
    facts = {(one.file, one.line, one.is_nested): (one.requests, one.columns) for one in list_line_facts(analyse())}
    assert facts == {
        ("/src/step.cuh", 7, False): (2, (3,)),
        (FILE, 5, False): (1, ()),
        (FILE, 5, True): (2, ()),
        (LDG.file, 134, False): (1, (3,)),
    }
