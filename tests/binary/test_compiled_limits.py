"""Launch bounds, register caps and spill marks of the fixtures, against their sources and their instructions."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.cubin import read_compiled_limits
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.kernel.join import list_unmeasured_kernels

CUBINS = Path(__file__).parents[2] / "fixtures" / "cubins"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def read(name: str) -> Cubin:
    (cubin,) = find_cubins(CUBINS / f"{name}.cubin")
    return cubin


def test_the_launch_bounds_of_the_source_are_read() -> None:
    for architecture in ARCHITECTURES:
        found = read_compiled_limits(read(f"{architecture}/register_spill_original"))
        (limits,) = found.values()
        assert (limits.most_threads, limits.register_cap) == (1024, 64)
        (wider,) = read_compiled_limits(read(f"{architecture}/register_spill_improved")).values()
        assert (wider.most_threads, wider.register_cap) == (256, 255)
        (free,) = read_compiled_limits(read(f"{architecture}/local_array_original")).values()
        assert (free.most_threads, free.is_block_required) == (None, False)


@pytest.mark.parametrize(
    "name", ["register_spill_original", "register_spill_improved", "local_array_original", "recursion_original"]
)
def test_spill_marks_are_the_spills(name: str) -> None:
    """The spill fixture accesses local memory for spills only; the others for an array and for saved registers."""
    for architecture in ARCHITECTURES:
        cubin = read(f"{architecture}/{name}")
        limits = read_compiled_limits(cubin)
        for kernel in list_unmeasured_kernels(cubin)[0]:
            function = kernel.functions[0]
            assert function.instructions is not None
            texts = function.instructions.texts
            local = {16 * row for row, text in enumerate(texts) if "STL" in text or "LDL" in text}
            expected = local if name == "register_spill_original" else set()
            assert set(limits[kernel.mangled_name].spill_offsets) == expected
            assert bool(local) == (name != "register_spill_improved")


def test_damaged_marks_are_passed_over() -> None:
    cubin = read("sm_80/register_spill_original")
    (name,) = cubin.functions
    sound = read_compiled_limits(cubin)[name]
    offset = sound.spill_offsets[0]
    pair = (1).to_bytes(4, "little") + offset.to_bytes(4, "little")
    assert cubin.image.count(pair) == 1
    for damage in (offset + 1, 0xFFFFFFF0):
        image = cubin.image.replace(pair, (1).to_bytes(4, "little") + damage.to_bytes(4, "little"))
        found = read_compiled_limits(replace(cubin, image=image))[name]
        assert found.spill_offsets == sound.spill_offsets[1:]
