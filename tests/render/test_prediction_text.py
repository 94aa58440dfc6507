"""Predictions as text and JSON: facts made by hand, so that every word can be checked."""

import json
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.document.prediction_json import make_kernel_prediction
from gpa_lsp.document.prediction_view import build_access_table, build_launch, describe_execution, describe_launch
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.execution.emulator.model import Fault, FaultKind
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.fault_answer import answer_faults
from gpa_lsp.execution.prediction.model import Execution, KernelPrediction
from gpa_lsp.execution.traces.line_facts import AccessLineFact
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.locations import Frame

FACT = AccessLineFact(
    file="/home/me/k.cu", line=7, is_nested=False, kind=AccessGroupKind.LOADS, space=Space.GLOBAL, origin="emulated",
    arrays=("in",), requests=1024, lanes_per_request=32.0, lines_per_request=8.0, sectors_per_request=32.0,
    ideal_sectors_per_request=4.0, sectors=32768, share_ratio=0.9, patterns=(), strides_bytes=(),
    wavefronts_per_request=0.0, ideal_wavefronts_per_request=0.0, reuse=None, l1_hit_ratio=0.25, l2_hit_ratio=None,
    repeated_ratio=0.0,
)  # fmt: skip
SHARED = replace(
    FACT, line=9, space=Space.SHARED, arrays=(), sectors=0, wavefronts_per_request=16.0,
    ideal_wavefronts_per_request=1.0, l1_hit_ratio=None,
)  # fmt: skip
FAULTS = (
    Fault(
        kind=FaultKind.SHARED_RACE, message="two threads", count=3, block=1, thread=(2, 0, 0),
        chain=(Frame(file="/home/me/k.cu", line=9),), other_chain=(Frame(file="/home/me/h.cuh", line=2),),
    ),
    Fault(kind=FaultKind.TIME_BUDGET, message="not done after 1 s", is_fatal=True),
)  # fmt: skip


def build_kernel() -> KernelPrediction:
    return KernelPrediction(
        mangled_name="_Z1kIfEvPT_",
        name="void k<float>(float*)",
        launch=LaunchDescription(kernel="k", block=(32, 8, 1), grid=(64, 1, 1), title="small"),
        machine="A100",
        registers=20,
        shared_bytes=4096,
        warps_per_sm=48,
        execution=Execution(
            grid_blocks=64, executed_blocks=16, is_complete=False, warp_instructions=2000, lane_instructions=48000,
            seconds=0.5, analysis_seconds=4.5, peak_bytes=1 << 20, why="one wave of the A100", printed="hello\n",
        ),
        faults=FAULTS,
        accesses=(SHARED, FACT, replace(FACT, is_nested=True, line=70)),
        branches=(),
        volumes=None,
        recovered=None,
        answers=(answer_faults(FAULTS), Answer(analysis="a", title="A title", summary="A summary.")),
        problems=(Problem(severity=ProblemSeverity.WARNING, message="a doubt"),),
    )  # fmt: skip


def test_a_kernel_as_text() -> None:
    text = write_plain([build_launch(build_kernel(), Path("/home/me"))], 120)
    lines = text.splitlines()
    assert lines[:5] == [
        "k<float>",
        "  “small”: grid 64, block 32×8, 20 registers, 4 KiB of shared memory, 48 warps per SM; predicted for the A100",
        "  void k<float>(float*)",
        "  emulated: 16 of 64 blocks, and no further, 2,000 warp instructions with 24 active lanes on average, in 500 ms;",
        "    analysed in 4.50 s",
    ]
    assert "  warning: a doubt" in lines
    assert "  1 fault of the program in what was executed." in lines
    assert "  ! Race on shared memory at line 9 of k.cu: two threads." in lines
    assert "  - Time budget reached: not done after 1 s." in lines
    assert "    race on shared memory  k.cu:9  h.cuh:2               3  1            2, 0, 0" in lines
    assert lines[-2:] == ["What the kernel printed", "  hello"]


def test_lines_with_most_traffic_come_first_and_inlined_ones_once() -> None:
    facts = build_kernel().accesses
    rows = write_plain([build_access_table(facts, Path("/home/me"))]).splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["k.cu:7", "k.cu:9"]
    assert rows[0].split()[1:] == ["global", "loads", "in", "1,024", "8", "32", "4", "25", "%"]
    assert rows[1].split()[1:] == ["shared", "loads", "1,024", "1", "16"]
    short = write_plain([build_access_table(facts)], max_rows=1).splitlines()
    assert short[-1] == "and 1 more"
    assert short[1].startswith("/home/me/k.cu:7")


def test_nothing_is_made_up_where_nothing_is_known() -> None:
    bare = replace(build_kernel(), registers=None, shared_bytes=0, warps_per_sm=None, machine="")
    assert describe_launch(bare) == "“small”: grid 64, block 32×8"
    nothing = replace(bare.execution, warp_instructions=0, lane_instructions=0, executed_blocks=0)
    assert describe_execution(nothing).startswith("emulated: 0 of 64 blocks, and no further, 0 warp instructions")


def test_a_kernel_as_json() -> None:
    found = json.loads(json.dumps(make_kernel_prediction(build_kernel())))
    assert (found["kernel"], found["volumes"], found["launch"]["block"]) == ("void k<float>(float*)", None, [32, 8, 1])
    race, ending = found["faults"]
    assert race["chain"] == [{"file": "/home/me/k.cu", "line": 9, "function": None}]
    assert (race["thread"], ending["chain"], ending["is_fatal"]) == ([2, 0, 0], None, True)
    assert [one["line"] for one in found["accesses"]] == [9, 7, 70]
    assert found["accesses"][1]["l1_hit_ratio"] == 0.25 and found["accesses"][1]["l2_hit_ratio"] is None


def test_lines_fit_80_columns_without_what_matters_least() -> None:
    text = write_plain([build_access_table([replace(FACT, requests=1_048_576)])], width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "sectors/req" in text and "not shown at this width: " in text
