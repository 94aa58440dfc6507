"""Optimizers on code that compilers wrote, with made-up samples, and what they count in it."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.model import Advice, Silence
from gpa_lsp.diagnosis.advice.optimizers.loop_unrolling import choose_copies
from gpa_lsp.diagnosis.advice.optimizers.warp_balance import find_late_causes
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.divergent_branches import Parting, find_divergent_branches
from gpa_lsp.kernel.dataflow.expansions import find_called_routines
from gpa_lsp.kernel.dataflow.staged_copies import find_staged_copies
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import RuleResult, RuleSpeedup
from tests.advice.blamed_by_hand import blame_by_hand, write_subject
from tests.control_flow.divergence_regions import list_divergence_regions
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel
from tests.rows.written import write_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def make_up(name: str, sm: str, **circumstances: Any) -> Kernel:
    return make_up_kernel(FIXTURES / "cubins" / sm / f"{name}.cubin", Circumstances(**circumstances))


def match(optimizer: str, subject: Any) -> Any:
    found = list_optimizers()[optimizer].match(subject)
    assert not isinstance(found, Silence), found
    return found


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("sm", ARCHITECTURES)
@pytest.mark.parametrize("optimizer", ["async_copy", "loop_unrolling", "function_inlining", "code_reordering"])
def test_the_original_is_advised_and_its_twin_is_not(optimizer: str, sm: str) -> None:
    fixture, circumstances, estimate, words = {
        "async_copy": ("async_copy", {}, 1.2, "the load of `source[threadIdx.x]` at line 14 of original.cu"),
        "loop_unrolling": (
            *("loop_not_unrolled", {"turns": 16}, 1.2),
            "`#pragma unroll 4` in place of `#pragma unroll 1` at line 12",
        ),
        "function_inlining": ("device_calls", {}, 1.05, "remove `__noinline__`"),
        "code_reordering": (
            *("short_def_use", {}, 1.08),
            "Issue the load of `in[step * n + i]` at line 22 of original.cu one iteration ahead",
        ),
    }[optimizer]
    if (optimizer, sm) == ("async_copy", "sm_75"):
        pytest.skip("no asynchronous copies")
    before, after = (
        list_optimizers()[optimizer].advise(Subject(kernel, blame_kernel(kernel)))
        for kernel in (make_up(f"{fixture}_{role}", sm, **circumstances) for role in ("original", "improved"))
    )
    assert isinstance(before, Advice)
    assert before.speedup.estimate > estimate
    assert all(words in region.hint for region in before.regions[: 1 if optimizer != "function_inlining" else None])
    if optimizer == "async_copy":
        assert ("TMA" in before.regions[0].hint) == (sm != "sm_80")
    if optimizer == "function_inlining":
        routines = find_called_routines(make_up("device_calls_original", sm).rows)
        expected = {f"Inline `{one.name}` ({one.instructions} instructions)" for one in routines}
        assert {region.hint.partition(",")[0] for region in before.regions} == expected
    if isinstance(after, Advice):
        assert optimizer == "code_reordering"
        assert after.speedup.estimate - 1 < 0.3 * (before.speedup.estimate - 1)
    elif optimizer in ("loop_unrolling", "function_inlining"):
        assert after.stage.value == "not_matched"


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_atomic_in_the_loop_is_found(architecture):
    kernel = make_up_kernel(
        FIXTURES / "cubins" / architecture / "global_atomics_original.cubin", Circumstances(sectors=(20, 20))
    )
    instructions, graph = kernel.functions[0].instructions, kernel.functions[0].graph
    assert graph is not None
    (atomic,) = [row for row, text in enumerate(instructions.texts) if text.startswith("RED")]
    waiting = int(kernel.functions[0].all_samples[:, kernel.reasons.index("long_scoreboard")].argmax())
    found = match("atomic_contention", blame_by_hand(kernel, {(waiting, "long_scoreboard"): (atomic,)}))
    (region,) = found.regions
    assert region.hotspots[0].def_row == atomic
    assert region.samples == pytest.approx(sum(hotspot.samples for hotspot in region.hotspots))
    assert "at most 64 addresses: count in 256 B of shared memory" in found.hint


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_indexed_load_is_found_and_its_twin_has_none(architecture):
    folder = FIXTURES / "cubins" / architecture
    kernel = make_up_kernel(folder / "constant_indexed_original.cubin", Circumstances())
    instructions = kernel.functions[0].instructions
    (load,) = [row for row, text in enumerate(instructions.texts) if "c[0x3][R" in text]
    (use,) = [
        row
        for row in range(load + 1, load + 8)
        if instructions.control.wait_mask[row] >> int(instructions.control.write_barrier[load]) & 1
    ]
    found = match("constant_cache_misses", blame_by_hand(kernel, {(use, "short_scoreboard"): (load,)}))
    assert found.regions[0].hotspots[0].def_row == load
    assert "shared memory" in found.hint
    twin = make_up_kernel(folder / "constant_indexed_improved.cubin", Circumstances()).functions[0].instructions
    assert not any("c[0x3][R" in text for text in twin.texts)


LEAVING = """
MOV R4, RZ           # l.cu:3 | selected=1   | x=100 {name}=3200
turn:
FADD R5, R5, R6      # l.cu:5 | wait=400     | x=400 {name}=6400
@P0 BRA turn         # l.cu:4 | selected=200 | x=400 {name}={branch} divergent_branch_targets=90
STG.E [R2.64], R5    # l.cu:7 | selected=1   | x=100 {name}=3200
EXIT                 # l.cu:8 | selected=1   | x=100 {name}=3200
"""


@pytest.mark.parametrize(("name", "branch"), [("thread_executions", 6400), ("thread_executions_true", 3300)])
def test_loops_of_different_length_run_with_the_threads_that_are_left(name, branch):
    """Count only threads whose guard holds, as older profilers do, too."""
    subject = write_subject(LEAVING.format(name=name, branch=branch), {})
    (branch_found,) = find_divergent_branches(subject.rows)
    assert (branch_found.kind, branch_found.threads) == (Parting.TURNS, 32.0)
    assert branch_found.rows.tolist() == [1, 2]
    assert branch_found.loss.tolist() == [0.5, 0.5]


def test_losses_of_a_row_never_add_up_to_more_than_its_work():
    """Many branches in a row and in each other, threads falling."""
    blocks = "\n".join(
        f"@P0 BRA out  # m.cu:{number} | wait=9 | x=100 thread_executions={threads} divergent_branch_targets=50"
        for number, threads in enumerate(range(3200, 100, -100), start=1)
    )
    subject = write_subject(f"{blocks}\nout:\nEXIT  # m.cu:99 | wait=1 | x=100 thread_executions=3200", {})
    total = np.zeros(len(subject.rows))
    branches = find_divergent_branches(subject.rows)
    for branch in branches:
        assert (branch.loss > 0).all()
        total[branch.rows] += branch.loss
    assert len(branches) > 20
    assert 0.9 < total.max() <= 1.0


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_in_real_code_the_sides_are_what_lies_between_the_branch_and_the_meeting_point(architecture):
    path = FIXTURES / "cubins" / architecture / "branch_divergence_original.cubin"
    subject = blame_by_hand(make_up_kernel(path, Circumstances(lanes=16)), {})
    found = match("branch_divergence", subject)
    graph, instructions = subject.rows.functions[0].graph, subject.rows.functions[0].instructions
    (meeting,) = list_divergence_regions(instructions, graph)
    inside = {use for region in found.regions for hotspot in region.hotspots if (use := hotspot.use_row) is not None}
    assert inside
    assert all(meeting.set_instruction < row < graph.first_instruction[meeting.target_block] for row in inside)
    assert all(
        set(graph.blocks_of_loop(loop)) <= set(graph.block_of_instruction[sorted(inside)])
        for loop in range(len(graph.loops))
    )
    assert "line 11" in found.regions[0].hint


ONE_OF_EIGHT = """
MOV R7, RZ                     # b.cu:17 | selected=90          | x=100
tile:
@P0 BRA ready                  # b.cu:19 | selected=8           | x=800
FMUL R4, R4, R5                # b.cu:21 | selected=1           | x=100
inner:
FFMA R4, R4, R5, R6            # b.cu:9 | wait={work} selected=9 | x=2400
@P1 BRA inner                  # b.cu:8 | selected=10           | x=2400
STS [R7], R4                   # b.cu:22 | selected=1           | x=100
ready:
BAR.SYNC.DEFER_BLOCKING 0x0    # b.cu:24 | selected=8           | x=800
LDS R2, [R8]                   # b.cu:25 | barrier=700/600      | x=800
FADD R3, R2, R3                # b.cu:26 | selected=8           | x=800
BAR.SYNC.DEFER_BLOCKING 0x0    # b.cu:27 | selected=8           | x=800
@P2 BRA tile                   # b.cu:18 | barrier=40/30        | x=800
EXIT                           # b.cu:30 | selected=8           | x=100
"""


AT_BARRIERS = {(7, "barrier"): (6,), (10, "barrier"): (9,)}


def test_warps_that_get_to_late_code_are_counted_before_the_loop_inside_it():
    """The inner loop's body executes more often than the barrier, but only an eighth of the warps enters it."""
    late = find_late_causes(write_subject(ONE_OF_EIGHT.format(work=80), AT_BARRIERS), [6, 9])
    assert late.keys() == {6}
    assert (late[6].row, late[6].warps_ratio, late[6].samples) == (3, pytest.approx(1 / 8), 101)
    assert late[6].explained_samples == pytest.approx(101 * 7)


@pytest.mark.parametrize(("cause", "named"), [(2, 2), (0, 3)], ids=["in the late code", "before it"])
def test_late_code_is_named_by_what_it_waits_for(cause, named):
    text = ONE_OF_EIGHT.format(work=80)
    late = find_late_causes(write_subject(text, {**AT_BARRIERS, (3, "wait"): (cause,)}), [6])
    assert (late[6].row, late[6].samples) == (named, 101)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("role", "is_late"), [("original", True), ("improved", False)])
def test_in_real_code_the_work_of_the_first_warp_is_found(architecture, role, is_late):
    path = FIXTURES / "cubins" / architecture / f"barrier_imbalance_{role}.cubin"
    function = make_up_kernel(path, Circumstances()).functions[0]
    graph, instructions = function.graph, function.instructions
    skipped = [
        row
        for region in list_divergence_regions(instructions, graph)
        for row in range(region.set_instruction + 2, int(graph.first_instruction[region.target_block]) - 1)
    ]
    kernel = make_up_kernel(
        path, Circumstances(imbalance=400, executes=lambda row, times: times // 8 if row in skipped else times)
    )
    instructions = kernel.functions[0].instructions
    barriers = [row for row, text in enumerate(instructions.texts) if text.startswith("BAR")]
    causes = {(row + 1, "barrier"): (row,) for row in barriers}
    late = find_late_causes(blame_by_hand(kernel, causes), barriers)
    assert bool(late) is is_late
    if is_late:
        assert late.keys() == {barriers[0]}
        assert late[barriers[0]].warps_ratio == pytest.approx(1 / 8)
        assert late[barriers[0]].row in skipped
        found = match("warp_balance", blame_by_hand(kernel, causes))
        assert found.regions[0].hotspots[0].def_row == late[barriers[0]].row


@pytest.mark.parametrize("present", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("latency_ratio", [0.1, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("iterations", [4.0, 6.0, 100.0, float("inf")])
def test_copies_stay_within_what_there_is(present: int, latency_ratio: float, iterations: float) -> None:
    copies = choose_copies(present=present, iterations=iterations, latency_ratio=latency_ratio, most=1000)
    assert copies <= min(16, iterations)
    assert copies & (copies - 1) == 0


LOCAL = """
    LDG.E R7, [R2.64]                       # k.cu:6 | selected=5
    MOV R20, 0x40                           # k.cu:6 | selected=5
    CALL.REL.NOINC `($kernel$_Z5blendf)     # k.cu:6 | long_scoreboard=200/180 selected=5
    STG.E [R2.64], R7                       # k.cu:6 | branch_resolving=30 selected=5
    EXIT                                    # k.cu:7
$kernel$_Z5blendf:
    FMUL R8, R7, R7                         # k.cu:3 | branch_resolving=30 selected=5
    FMUL R7, R8, 0.5                        # k.cu:3 | wait=40 selected=5
    RET.REL.NODEC R20 `(kernel)             # k.cu:3 | wait=40 selected=5
"""


def test_routines_know_their_calls() -> None:
    text = LOCAL.replace("STG.E [R2.64], R7                       #", "CALL.REL.NOINC `($kernel$_Z5blendf)     #")
    (routine,) = find_called_routines(write_kernel(text).rows)
    assert (routine.name, routine.sites, routine.rows, routine.instructions) == ("blend", (2, 3), range(5, 8), 3)
    assert not routine.is_recursive
    assert not routine.is_internal
    assert not routine.is_separate


STAGED = """
loop:
    LDG.E.128.CONSTANT R4, [R2.64]      # k.cu:3 | selected=10
    IADD3 R2, R2, 0x1000, RZ            # k.cu:2 | selected=10
    STS.128 [R20], R4                   # k.cu:3 | long_scoreboard=400/380 mio_throttle=20 selected=10
    BAR.SYNC 0x0                        # k.cu:4 | selected=10
    LDS R8, [R21]                       # k.cu:5 | selected=10
    FADD R9, R9, R8                     # k.cu:5 | short_scoreboard=30 selected=10
    BAR.SYNC 0x0                        # k.cu:6 | selected=10
    @!P0 BRA loop                       # k.cu:2 | selected=10
    EXIT                                # k.cu:8
"""


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"LDG.E.128.CONSTANT": "LDG.E.CONSTANT", "STS.128": "STS"}, 1),
        ({"LDG.E.128.CONSTANT": "LDG.E.64.CONSTANT", "STS.128": "STS.64"}, 1),
        ({"LDG.E.128.CONSTANT": "LDG.E.U8.CONSTANT", "STS.128": "STS.U8"}, 0),  # of no size that can be copied
        ({"STS.128 [R20], R4": "STS [R4], R20"}, 0),  # a loaded address
        ({"FADD R9, R9, R8": "FADD R9, R4, R8"}, 0),  # needed in a register, too
        ({"128.CONSTANT": "128.STRONG.SYS"}, 0),  # volatile
        (
            {"IADD3 R2, R2, 0x1000, RZ": "IADD3 R2, R8, 0x1000, RZ", "LDS R8, [R21]": "LDS R2, [R21]"},
            0,
        ),  # needs the tile before
    ],
)
def test_what_is_a_staged_copy(changes: dict[str, str], count: int) -> None:
    text = STAGED
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert len(find_staged_copies(write_kernel(text).rows)) == count


def test_several_loads_can_fill_one_store() -> None:
    text = STAGED.replace(
        "    LDG.E.128.CONSTANT R4, [R2.64]      #",
        "    LDG.E.64.CONSTANT R6, [R2.64+0x8] # k.cu:3\n    LDG.E.64.CONSTANT R4, [R2.64]      #",
    )
    (copy,) = find_staged_copies(write_kernel(text).rows)
    assert (copy.load_rows, copy.store_row, copy.bytes_moved) == ((0, 1), 3, 16)
    half = text.replace("LDG.E.64.CONSTANT R6", "LDG.E.64.CONSTANT R10")
    assert not find_staged_copies(write_kernel(half).rows)


def test_the_profilers_own_rule_is_quoted() -> None:
    kernel = write_kernel("""
        LDG.E R4, [R2.64]  # k.cu:5 | lg_throttle=100/90 | x=100 global_sectors=3200 global_sectors_ideal=400
        EXIT
    """)
    speedups = (RuleSpeedup(percent=31.25, is_global=True),)
    rule = RuleResult(identifier="UncoalescedGlobalAccess", name="", section="", speedups=speedups)
    launch = replace(kernel.launches[0], rules=(rule,))
    found = match("global_coalescing", blame_by_hand(replace(kernel, launches=(launch,)), {}))
    assert found.reasons[-1] == "Nsight Compute's own rule estimates 31 % of the run time"
