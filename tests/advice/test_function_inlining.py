"""Small functions that are called."""

from typing import Any

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.matches import HidingMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.function_inlining import OPTIMIZER
from gpa_lsp.diagnosis.advice.subject import Subject, build_subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.called_routines import find_called_routines
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel
from tests.rows.written import write_kernel

SOURCE = """__device__ __noinline__
float blend(float a) {
  return a * a * 0.5f;
}
__global__ void k(float* x) {
  x[i] = blend(x[i]);
}
"""

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
CAUSES = {
    (2, "long_scoreboard"): (0,),
    (3, "branch_resolving"): (7,),
    (5, "branch_resolving"): (2,),
    (6, "wait"): (5,),
    (7, "wait"): (6,),
}


def write(text: str = LOCAL, causes: Any = None, **kernel: Any) -> Subject:
    return write_subject(text, CAUSES if causes is None else causes, **{"sources": {"k.cu": SOURCE}, **kernel})


def match(subject: Subject) -> HidingMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, HidingMatch), found
    return found


def silence(subject: Subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence)
    return found


def test_a_called_function_and_its_call_site_match() -> None:
    found = match(write())
    (region,) = found.regions
    assert (region.scope.kind, region.scope.function) == (ScopeKind.FUNCTION, "$kernel$_Z5blendf")
    assert region.samples == 200 + 30 + 30 + 40 + 40
    assert region.latency_samples == 180 + 30 + 30 + 40 + 40
    # Every instruction is in the function or next to the call.
    assert region.active_samples == found.active_samples == 20 + 7 * 5
    assert [spot.use_row for spot in region.hotspots] == [2, 6, 7, 5, 3]


def test_the_hint_says_what_keeps_the_function_out() -> None:
    (region,) = match(write()).regions
    assert region.hint == (
        "Inline `blend` (3 instructions), called at line 6 of k.cu: remove `__noinline__` at line 1 of k.cu."
    )
    (unknown,) = match(write(sources={})).regions
    assert unknown.hint.endswith("declare it `__forceinline__`.")


SEPARATE = """
    LDG.E R7, [R2.64]                       # k.cu:6 | selected=5
    CALL.ABS.NOINC `(_Z5blendf)             # k.cu:6 | long_scoreboard=200/180 selected=5
    STG.E [R2.64], R7                       # k.cu:6 | selected=5
    EXIT                                    # k.cu:7
[_Z5blendf]
    FMUL R8, R7, R7                         # other.cu:3 | selected=5
    FMUL R7, R8, 0.5                        # other.cu:3 | wait=40 selected=5
    RET.ABS.NODEC R20 0x0                   # other.cu:3 | selected=5
"""
SEPARATE_CAUSES = {(1, "long_scoreboard"): (0,), (5, "wait"): (4,)}


def test_a_function_of_another_translation_unit_needs_the_linker() -> None:
    (region,) = match(write(SEPARATE, SEPARATE_CAUSES)).regions
    assert region.samples == 240
    assert "link with `-dlto`" in region.hint


def test_stalls_far_from_the_call_are_the_callers_own() -> None:
    filling = "    FADD R30, R31, R32                      # k.cu:6 | selected=1\n" * 40
    text = (
        "    LDG.E R9, [R4.64]  # k.cu:6 | selected=1\n    FADD R10, R9, R9   # k.cu:6 | long_scoreboard=70\n" + filling
    )
    causes = {
        (1, "long_scoreboard"): (0,),
        **{(row + 42, reason): tuple(cause + 42 for cause in by) for (row, reason), by in CAUSES.items()},
    }
    (region,) = match(write(text + LOCAL, causes)).regions
    assert region.samples == 200 + 30 + 30 + 40 + 40


def test_recursive_functions_cannot_be_inlined() -> None:
    text = LOCAL.replace("FMUL R7, R8, 0.5                        #", "CALL.REL.NOINC `($kernel$_Z5blendf)     #")
    found = silence(write(text))
    assert (found.stage, found.message) == (SilenceStage.GATED, "`blend` is recursive")


def test_large_functions_are_not_worth_it() -> None:
    filling = "    FADD R30, R31, R32                      # k.cu:3\n" * 200
    found = silence(write(LOCAL.replace("    RET", f"{filling}    RET"), {}))
    assert (found.stage, found.message) == (SilenceStage.GATED, "`blend` is too large (203 instructions)")


def test_instructions_that_come_late_already_forbid_more_code() -> None:
    found = silence(write(LOCAL.replace("k.cu:7", "k.cu:7 | no_instructions=400"), CAUSES))
    assert found.stage is SilenceStage.GATED
    assert found.message == "56 % of the not-issued samples are instruction fetch, which inlining would increase"


@pytest.mark.parametrize(
    "name", ["__cuda_sm20_div_rn_f64_full", "__cuda_sm70_shflsync_bfly_p", "__internal_accurate_pow"]
)
def test_the_compilers_own_routines_are_another_remedys(name: str) -> None:
    found = silence(write(LOCAL.replace("_Z5blendf", name)))
    assert found.stage is SilenceStage.NOT_MATCHED
    assert found.message == "the kernel calls no function of known code except 1 compiler routine"


def test_calls_through_pointers_name_no_function() -> None:
    found = silence(write("CALL.ABS R20 0x0\nFADD R8, R7, R7 # wait=9\nEXIT", {}))
    assert found.message == "the kernel calls no function of known code, but makes 1 indirect call"


def test_a_kernel_without_calls_does_not_match() -> None:
    found = silence(
        write("LDG.E R7, [R2.64]\nFADD R8, R7, R7 # long_scoreboard=9\nEXIT", {(1, "long_scoreboard"): (0,)})
    )
    assert (found.stage, found.message) == (SilenceStage.NOT_MATCHED, "the kernel calls no function of known code")


def test_a_function_nobody_waits_in_does_not_match() -> None:
    text = LOCAL.replace("branch_resolving=30", "").replace("wait=40", "").replace("long_scoreboard=200/180", "")
    found = silence(write(text, {}))
    assert (found.stage, found.message) == (SilenceStage.NOT_MATCHED, "no stalls in or around calls of `blend`")


def test_without_code_nothing_is_said() -> None:
    assert silence(forget_code(write())).stage is SilenceStage.NO_CODE


def test_routines_know_their_calls() -> None:
    text = LOCAL.replace("STG.E [R2.64], R7                       #", "CALL.REL.NOINC `($kernel$_Z5blendf)     #")
    (routine,) = find_called_routines(write_kernel(text).rows)
    assert (routine.name, routine.sites, routine.rows, routine.instructions) == ("blend", (2, 3), range(5, 8), 3)
    assert not routine.is_recursive
    assert not routine.is_internal
    assert not routine.is_separate


def test_copies_at_several_call_sites_are_a_caveat() -> None:
    text = LOCAL.replace("STG.E [R2.64], R7                       #", "CALL.REL.NOINC `($kernel$_Z5blendf)     #")
    assert "Inlining at every call site adds about 3 instructions." in match(write(text)).caveats


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_called_fixture_and_its_twin(sm: str) -> None:
    def advise(role: str) -> Advice | Silence:
        kernel = make_up_kernel(FIXTURES / "cubins" / sm / f"device_calls_{role}.cubin", Circumstances())
        return OPTIMIZER.advise(build_subject(kernel, blame_kernel(kernel)))

    before, after = advise("original"), advise("improved")
    assert isinstance(before, Advice)
    assert before.speedup.estimate > 1.05
    assert {region.hint.partition(",")[0] for region in before.regions} == {
        f"Inline `{name}` ({count} instructions)" for name, count in count_instructions(sm).items()
    }
    assert all("remove `__noinline__`" in region.hint for region in before.regions)
    assert isinstance(after, Silence)
    assert after.stage is SilenceStage.NOT_MATCHED


def count_instructions(sm: str) -> dict[str, int]:
    kernel = make_up_kernel(FIXTURES / "cubins" / sm / "device_calls_original.cubin", Circumstances())
    return {routine.name: routine.instructions for routine in find_called_routines(kernel.rows)}
