"""Tiles on their way to shared memory."""

from typing import Any

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.matches import HidingMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.async_copy import OPTIMIZER
from gpa_lsp.diagnosis.advice.subject import Subject, build_subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.staged_copies import find_groups_pending, find_staged_copies
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.advice.subjects import make_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel
from tests.rows.written import write_kernel

SOURCE = """__global__ void k(const float4* in) {
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = in[t * 256 + threadIdx.x];
    __syncthreads();
    sum += tile[j].x;
    __syncthreads();
  }
}
"""

LOOP = """
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
CAUSES = {(2, "long_scoreboard"): (0,), (5, "short_scoreboard"): (4,)}


def write(text: str = LOOP, causes: Any = None, **kernel: Any) -> Subject:
    return write_subject(text, CAUSES if causes is None else causes, **{"sources": {"k.cu": SOURCE}, **kernel})


def match(subject: Subject) -> HidingMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, HidingMatch), found
    return found


def silence(subject: Subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


def test_a_tile_copied_through_registers_each_turn_matches() -> None:
    found = match(write())
    (region,) = found.regions
    assert (region.scope.kind, region.scope.line) == (ScopeKind.LOOP, 2)
    # The wait for the load, and everything else at the store, which goes.
    assert region.samples == 400 + 20 + 10
    assert region.latency_samples == 380 + 20
    assert region.active_samples == found.active_samples == 8 * 10 + 20
    assert (region.hotspots[0].def_row, region.hotspots[0].use_row) == (0, 2)


def test_the_hint_names_the_copy_and_its_size() -> None:
    (region,) = match(write()).regions
    assert region.hint == (
        "Each iteration of the loop at line 2 of k.cu is stalled on the load of `in[t * 256 + threadIdx.x]` at line 3 of k.cu, which goes through "
        "registers to shared memory (line 3 of k.cu). Copy it one iteration ahead into a second buffer with `__pipeline_memcpy_async` or "
        "`cuda::memcpy_async`: 16 bytes per thread."
    )


def test_from_compute_capability_9_on_a_large_tile_can_go_at_once() -> None:
    hint = match(write(compute_capability=(9, 0))).regions[0].hint
    assert "tile (2,048 bytes per block)" in hint
    assert "TMA" in hint
    assert "TMA" not in match(write(compute_capability=(9, 0), block=(64, 1, 1))).regions[0].hint


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)])
def test_older_devices_cannot(capability: tuple[int, int]) -> None:
    found = silence(write(compute_capability=capability))
    assert found.stage is SilenceStage.NOT_MATCHED
    assert found.message == f"asynchronous copies need compute capability 8.0; this is {capability[0]}.{capability[1]}"


def test_a_value_that_is_changed_on_the_way_does_not_match() -> None:
    text = LOOP.replace("STS.128 [R20], R4  ", "STS [R20], R10     ").replace(
        "IADD3 R2, R2, 0x1000, RZ            #", "FADD R10, R4, R5 #"
    )
    assert silence(write(text)).message == "no value goes unchanged from global to shared memory"


def test_a_loaded_address_is_no_copy() -> None:
    assert not find_staged_copies(write_kernel(LOOP.replace("STS.128 [R20], R4", "STS [R4], R20")).rows)


def test_a_value_that_is_needed_in_registers_too_stays() -> None:
    assert not find_staged_copies(write_kernel(LOOP.replace("FADD R9, R9, R8", "FADD R9, R4, R8")).rows)


@pytest.mark.parametrize(
    ("opcodes", "count"), [(("LDG.E", "STS"), 1), (("LDG.E.U8", "STS.U8"), 0), (("LDG.E.64", "STS.64"), 1)]
)
def test_only_sizes_that_can_be_copied_count(opcodes: tuple[str, str], count: int) -> None:
    text = LOOP.replace("LDG.E.128.CONSTANT", opcodes[0] + ".CONSTANT").replace("STS.128", opcodes[1])
    assert len(find_staged_copies(write_kernel(text).rows)) == count


def test_a_volatile_load_is_no_copy() -> None:
    assert not find_staged_copies(write_kernel(LOOP.replace("128.CONSTANT", "128.STRONG.SYS")).rows)


def test_several_loads_can_fill_one_store() -> None:
    text = LOOP.replace(
        "    LDG.E.128.CONSTANT R4, [R2.64]      #",
        "    LDG.E.64.CONSTANT R6, [R2.64+0x8] # k.cu:3\n    LDG.E.64.CONSTANT R4, [R2.64]      #",
    )
    (copy,) = find_staged_copies(write_kernel(text).rows)
    assert (copy.load_rows, copy.store_row, copy.bytes_moved) == ((0, 1), 3, 16)
    half = text.replace("LDG.E.64.CONSTANT R6", "LDG.E.64.CONSTANT R10")
    assert not find_staged_copies(write_kernel(half).rows)


def test_a_load_that_needs_the_tile_before_cannot_be_started_ahead() -> None:
    text = LOOP.replace("IADD3 R2, R2, 0x1000, RZ            #", "IADD3 R2, R8, 0x1000, RZ #").replace(
        "LDS R8, [R21] ", "LDS R2, [R21] "
    )
    assert not find_staged_copies(write_kernel(text).rows)


def test_a_copy_outside_loops_has_no_next_tile() -> None:
    text = LOOP.replace("    @!P0 BRA loop                       # k.cu:2 | selected=10\n", "")
    found = silence(write(text))
    assert found.stage is SilenceStage.GATED
    assert (
        found.message == "1 copy to shared memory through registers, but outside loops: there is no next tile to start"
    )


def test_a_copy_nobody_waits_for_does_not_match() -> None:
    text = LOOP.replace("long_scoreboard=400/380 mio_throttle=20 ", "")
    assert silence(write(text, {})).message == "1 copy to shared memory through registers, but no warp is stalled there"


ASYNC = """
loop:
    LDGSTS.E.BYPASS.128 [R20], [R2.64]  # k.cu:3 | selected=10
    LDGDEPBAR                           # k.cu:3 | selected=10
    IADD3 R2, R2, 0x1000, RZ            # k.cu:2 | selected=10
    DEPBAR.LE SB0, {pending}            # k.cu:4 | selected=10
    BAR.SYNC 0x0                        # k.cu:4 | long_scoreboard=300/290 selected=10
    LDS R8, [R21]                       # k.cu:5 | selected=10
    FADD R9, R9, R8                     # k.cu:5 | selected=10
    BAR.SYNC 0x0                        # k.cu:6 | selected=10
    @!P0 BRA loop                       # k.cu:2 | selected=10
    EXIT                                # k.cu:8
"""


@pytest.mark.parametrize(
    ("pending", "advice"),
    [
        (
            "0x0",
            "It leaves 0 groups in flight; one more buffer allows 1 (`__pipeline_wait_prior(1)`).",
        ),
        (
            "0x1",
            "It leaves 1 group in flight; one more buffer allows 2 (`__pipeline_wait_prior(2)`).",
        ),
        ("0x3", "It already keeps 3 groups in flight: use larger tiles or do more work per tile."),
    ],
)
def test_asynchronous_copies_that_are_waited_for_get_more_stages(pending: str, advice: str) -> None:
    found = match(write(ASYNC.format(pending=pending), {(4, "long_scoreboard"): (1,)}))
    (region,) = found.regions
    assert (region.samples, region.latency_samples, region.active_samples) == (300, 290, 100)
    assert region.hint.startswith("The loop at line 2 of k.cu is stalled on its asynchronous copies at line 4 of k.cu")
    # Copies that may stay under way are not the ones that are waited for, however near they are.
    assert ("about 10 cycles after their start" in region.hint) == (pending == "0x0")
    assert region.hint.endswith(advice)


def test_copies_that_are_asynchronous_already_are_not_told_to_become_so() -> None:
    found = OPTIMIZER.advise(write(ASYNC.format(pending="0x1"), {(4, "long_scoreboard"): (1,)}))
    assert isinstance(found, Advice)
    assert found.title == "Start asynchronous copies earlier"
    assert "add a pipeline stage" in found.hint
    assert not any("aligned" in caveat for caveat in found.caveats)
    through_registers = OPTIMIZER.advise(write())
    assert isinstance(through_registers, Advice)
    assert through_registers.title == "Copy tiles asynchronously"
    assert any("aligned" in caveat for caveat in through_registers.caveats)


def test_bulk_copies_are_waited_for_at_a_barrier_object() -> None:
    text = """
    loop:
        UBLKCP.S.G [UR8], [UR4], UR6                  # k.cu:3 | selected=10
        SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R20], R21 # k.cu:4 | selected=10
        @!P1 BRA again                                # k.cu:4 | long_scoreboard=200 selected=10
    again:
        LDS R8, [R21]                                 # k.cu:5 | selected=10
        @!P0 BRA loop                                 # k.cu:2 | selected=10
        EXIT                                          # k.cu:8
    """
    found = match(write(text, {(2, "long_scoreboard"): (1,)}, compute_capability=(9, 0)))
    (region,) = found.regions
    assert region.latency_samples == 200
    assert region.hint.endswith("Start them an iteration earlier: add a pipeline stage.")


def test_the_fewest_pending_groups_of_a_loop_count() -> None:
    text = ASYNC.format(pending="0x2").replace("    IADD3 R2, R2, 0x1000, RZ            #", "    DEPBAR.LE SB0, 0x1 #")
    subject = make_subject(write_kernel(text))
    assert list(find_groups_pending(subject.rows).values()) == [1]


def test_asynchronous_copies_nobody_waits_for_are_fine() -> None:
    text = ASYNC.format(pending="0x1").replace("long_scoreboard=300/290 ", "")
    assert (
        silence(write(text, {})).message == "copies to shared memory are asynchronous, and no warp is stalled on them"
    )


def test_without_code_nothing_is_said() -> None:
    assert silence(forget_code(write())).stage is SilenceStage.NO_CODE


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("sm", ["sm_80", "sm_90", "sm_120"])
def test_the_staged_fixture_and_its_twin(sm: str) -> None:
    def advise(role: str) -> Advice | Silence:
        kernel = make_up_kernel(FIXTURES / "cubins" / sm / f"async_copy_{role}.cubin", Circumstances())
        return OPTIMIZER.advise(build_subject(kernel, blame_kernel(kernel)))

    before, after = advise("original"), advise("improved")
    assert isinstance(before, Advice)
    assert before.speedup.estimate > 1.2
    assert "the load of `source[threadIdx.x]` at line 14 of original.cu" in before.regions[0].hint
    assert ("TMA" in before.regions[0].hint) == (sm != "sm_80")
    assert isinstance(after, Silence)
