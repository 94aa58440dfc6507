"""A configuration is predicted as it would be alone, whatever was predicted before it."""

from pathlib import Path

import pytest

from gpa_lsp.basis.errors import Problem
from gpa_lsp.prediction.exploration import evaluators
from gpa_lsp.prediction.exploration.evaluators import ProbingEvaluator, Resources, VariedLaunch
from gpa_lsp.prediction.exploration.model import Configuration
from gpa_lsp.prediction.machines import choose_product, choose_volume_device
from gpa_lsp.volumes.model import VolumeMode

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
        description=VariedLaunch(text=text, path=Path("k.launch.toml"), number=0),
        resources=Resources(device=device, mode=VolumeMode.CORRECTED, registers=16, static_shared_bytes=4096),
    )


def test_configurations_do_not_depend_on_those_before_them():
    together = build()(SPACE)
    assert together[0] == together[4]
    assert together[1] == together[5]
    assert len({one.seconds for one in together[:4]}) == 4
    for configuration, found in zip(SPACE, together, strict=True):
        evaluators._parse.cache_clear()
        assert build()([configuration]) == [found]


@pytest.mark.parametrize(
    ("old", "new"), [("ld.global.f32 %f0, [%d3]", "mov.f32 %f0, 0f00000000"), ("100_000", "50_000")]
)
def test_what_changed_is_seen(old, new):
    """In the code, and in the description, under the same names."""
    before = build()(SPACE[:1])
    changed = build(ptx=PTX.replace(old, new), text=LAUNCH.replace(old, new))(SPACE[:1])
    assert changed != before
    evaluators._parse.cache_clear()
    assert changed == build(ptx=PTX.replace(old, new), text=LAUNCH.replace(old, new))(SPACE[:1])
    assert before == build()(SPACE[:1])
