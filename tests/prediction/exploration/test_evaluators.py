"""A configuration is predicted as it would be alone, whatever was predicted before it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.prediction.exploration import subjects
from gpa_lsp.execution.prediction.exploration.explore import evaluate_each
from gpa_lsp.execution.prediction.exploration.model import Configuration
from gpa_lsp.execution.prediction.exploration.subjects import (
    PROBE_BUDGET,
    ProbingEvaluator,
    Resources,
    VariedLaunch,
    choose_launch,
)
from gpa_lsp.execution.prediction.launch_sources import DescriptionText, LaunchChoice
from gpa_lsp.execution.prediction.launched_code import CodeModule
from gpa_lsp.execution.prediction.static_source import choose_product, choose_volume_device
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import InputError, Problem

PTX = """.version 8.0 .target sm_80 .address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
  .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .f32 %f<3>;
  .shared .align 4 .b8 tile[4096];
  ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1]; ld.param.u32 %r0, [k_param_2];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p1, %r4, %r0; @%p1 exit;
  mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d1, %d2; ld.global.f32 %f0, [%d3];
  mov.u32 %r5, tile; shl.b32 %r6, %r3, 2; add.u32 %r7, %r5, %r6; st.shared.f32 [%r7], %f0; ld.shared.f32 %f1, [%r7];
  add.u64 %d4, %d0, %d2; st.global.f32 [%d4], %f1; ret;
}
"""
LAUNCH = """
[[launch]]
kernel = "k"
threads = 100_000
block = 128
arguments = [
  { name = "out", type = "float", count = 100_000 },
  { name = "in", type = "float", count = 100_000 },
  { name = "n", type = "unsigned", value = 100_000 },
]
"""
SPACE = tuple(Configuration(block=(x, 1, 1)) for x in (128, 64, 1024, 96, 128, 64))


def build(*, ptx: str = PTX, text: str = LAUNCH) -> ProbingEvaluator:
    device = choose_volume_device(choose_product("A100 SXM4 40GB", (8, 0)), VolumeMode.CORRECTED)
    assert not isinstance(device, Problem)
    return ProbingEvaluator(
        ptx=ptx,
        name="k.cu",
        description=VariedLaunch(description=DescriptionText(path=Path("k.launch.toml"), text=text), number=0),
        resources=Resources(device=device, mode=VolumeMode.CORRECTED, registers=16, static_shared_bytes=4096),
    )


def test_configurations_do_not_depend_on_those_before_them():
    together = evaluate_each(build(), SPACE)
    assert together[0] == together[4]
    assert together[1] == together[5]
    assert len({one.seconds for one in together[:4]}) == 4
    for configuration, found in zip(SPACE, together, strict=True):
        subjects._parse.cache_clear()
        assert build()(configuration) == found


@pytest.mark.parametrize(
    ("old", "new"), [("ld.global.f32 %f0, [%d3]", "mov.f32 %f0, 0f00000000"), ("100_000", "50_000")]
)
def test_what_changed_is_seen(old, new):
    """Code and description keep their names."""
    before = build()(SPACE[0])
    changed = build(ptx=PTX.replace(old, new), text=LAUNCH.replace(old, new))(SPACE[0])
    assert changed != before
    subjects._parse.cache_clear()
    assert changed == build(ptx=PTX.replace(old, new), text=LAUNCH.replace(old, new))(SPACE[0])
    assert before == build()(SPACE[0])


ROWS = """.version 8.0 .target sm_80 .address_size 64
.visible .entry copy(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
  .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .f32 %f<3>;
  ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1]; ld.param.u32 %r0, [k_param_2];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ntid.y; mov.u32 %r7, %tid.y; mad.lo.u32 %r8, %r5, %r6, %r7;
  setp.ge.u32 %p1, %r4, %r0; @%p1 exit;
  mad.lo.u32 %r9, %r8, %r0, %r4; mul.wide.u32 %d2, %r9, 4; add.u64 %d3, %d1, %d2; ld.global.f32 %f0, [%d3];
  add.u64 %d4, %d0, %d2; st.global.f32 [%d4], %f0; ret;
}
"""
ROWS_LAUNCH = """
[[launch]]
kernel = "copy"
threads = [2000, 4096]
block = [32, 8]
arguments = [
  { name = "out", type = "float", count = 8_192_000 },
  { name = "in", type = "float", count = 8_192_000 },
  { name = "n", type = "unsigned", value = 2000 },
]
"""


@pytest.mark.parametrize("fold", [(1, 2, 1), (1, 4, 1), (2, 1, 1)])
def test_a_fold_is_counted_once(fold):
    """Guarded along x, open along y: a copy moves its arrays whatever a thread covers."""
    evaluate = replace(build(ptx=ROWS, text=ROWS_LAUNCH), resources=replace(build().resources, static_shared_bytes=0))
    plain, folded = (evaluate(Configuration(block=(32, 8, 1), fold=one)) for one in ((1, 1, 1), fold))
    array_bytes = 2000 * 4096 * 4
    for one in (plain, folded):
        assert one.why_not == ""
        assert (one.dram_load_bytes, one.dram_store_bytes) == pytest.approx((array_bytes, array_bytes), rel=0.01)
        assert one.l2_load_bytes == pytest.approx(array_bytes, rel=0.01)
        assert one.seconds >= 2 * array_bytes / evaluate.resources.device.dram_bytes_per_s
    assert folded.seconds == pytest.approx(plain.seconds, rel=0.1)


def test_the_fold_of_a_launch_is_the_one_that_is_described():
    text = ROWS_LAUNCH.replace("threads = [2000, 4096]", "threads = [2000, 24]\nfold = [1, 5]")
    code = CodeModule(None, parse_ptx(ROWS, name="k.cu"), lambda: None)
    chosen = choose_launch(
        code, Path("k.cu"), None, LaunchChoice(path=Path("k.launch.toml"), text=text, is_single=True)
    )
    assert (chosen.launch.grid, chosen.description.own_fold) == ((63, 1, 1), (1, 5, 1))


def test_a_fold_the_code_has_already_is_not_added_again():
    own = replace(build(ptx=ROWS, text=ROWS_LAUNCH).description, own_fold=(1, 2, 1))
    assert own.find_further_fold(Configuration(block=(32, 1, 1), fold=(1, 4, 1))) == (1, 2, 1)
    with pytest.raises(InputError, match="covers 1x2x1 elements"):
        own.find_further_fold(Configuration(block=(32, 1, 1)))


def test_arrays_may_take_as_much_memory_as_is_given():
    large = LAUNCH.replace("count = 100_000", "count = 100_000_000")
    bounded = (replace(build(text=large), budget=replace(PROBE_BUDGET, memory_bytes=size << 20)) for size in (700, 900))
    small, wide = (evaluate_each(one, [Configuration(block=(128, 1, 1))])[0] for one in bounded)
    assert "need 763 MiB, but only 700 MiB may be used" in small.why_not
    assert wide.why_not == "" and wide.seconds is not None


def test_addresses_that_follow_no_formula_are_not_folded():
    """A thread that makes its neighbours' updates is not predicted, as their loads are not known."""
    mixed = PTX.replace(
        "add.u64 %d3, %d1, %d2;", "xor.b32 %r8, %r4, 1; mul.wide.u32 %d5, %r8, 4; add.u64 %d3, %d1, %d5;"
    )
    plain, folded = evaluate_each(build(ptx=mixed), [SPACE[0], replace(SPACE[0], fold=(4, 1, 1))])
    assert plain.seconds is not None
    assert folded.seconds is None and "no formula of the thread's place" in folded.why_not
