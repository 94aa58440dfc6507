"""Reading the tables of device images: our fixtures, images made by hand, and NVIDIA's own word."""

import re
import subprocess
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.model import SubFunction
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from tests.binary.elf_builder import (
    ENTRY,
    NO_BITS,
    NV_CALLGRAPH,
    NV_INFO,
    REL,
    RELA,
    ElfBuilder,
    pack_attribute,
    pack_rel,
    pack_rela,
)
from tests.binary.seeds import CONTAINERS, FIXTURES, find_fixture_cubins, read_fixture


def two_functions(*, abi: int = 8, sm: int = 90, machine: int = 190) -> ElfBuilder:
    """Kernel ``k`` with local function ``$k$slow`` at 0x40, and device function ``f``."""
    builder = ElfBuilder(abi=abi, sm=sm, machine=machine)
    registers = 24 << 24 if abi < 8 else 0
    barriers = 3 << 20 if abi < 8 else 0
    builder.add(".text.k", bytes(128 + 5), flags=6 | barriers, info=1 | registers)
    builder.add(".text.f", bytes(64), flags=6, info=3 | registers)
    builder.add_symbol("k", ".text.k", other=ENTRY, size=128)
    builder.add_symbol("$k$slow", ".text.k", info=2, value=0x40, size=48)
    builder.add_symbol("f", ".text.f", size=64)
    builder.add_symbol("vprintf")
    return builder


def test_functions_of_an_image_made_by_hand() -> None:
    builder = two_functions()
    builder.add(
        ".nv.info",
        pack_attribute(0x2F, 1, 26) + pack_attribute(0x11, 1, 16) + pack_attribute(0x12, 1, 0xFFFFFFFF) + pack_attribute(0x2F, 3, 9),
        kind=NV_INFO,
    )  # fmt: skip
    builder.add(".nv.info.k", b"\x02\x4c\x04\x00" + pack_attribute(0x34, 16, 0, 2, 32, 48), kind=NV_INFO, info=1)
    builder.add(".nv.shared.k", kind=NO_BITS, size=1280, info=1)
    cubin = read_cubin(builder.build(), path=Path("k.cubin"))
    assert (cubin.sm, cubin.has_lines, cubin.has_ptx_lines) == (90, False, False)
    assert list(cubin.functions) == ["k", "f"]
    kernel, device = cubin.functions.values()
    assert (kernel.is_entry, kernel.registers, kernel.barriers, kernel.frame_bytes) == (True, 26, 4, 16)
    assert (kernel.stack_bytes, kernel.shared_static_bytes, kernel.size_bytes) == (None, 1280, 128)
    assert kernel.sub_functions == (SubFunction(name="$k$slow", start_offset=0x40, size_bytes=48),)
    assert kernel.indirect_branch_targets == {16: (32, 48)}
    assert (device.is_entry, device.registers, device.barriers, device.stack_bytes) == (False, 9, None, None)
    assert kernel.code == bytes(128)


def test_older_layout_keeps_registers_and_barriers_in_the_section() -> None:
    kernel = read_cubin(two_functions(abi=7, sm=86).build()).functions["k"]
    assert (kernel.registers, kernel.barriers) == (24, 3)
    assert read_cubin(two_functions(abi=7, sm=86).build()).sm == 86


def test_image_dumped_after_loading() -> None:
    builder = two_functions()
    builder.symbols[0] = type(builder.symbols[0])(
        name="k", section=".text.k", other=ENTRY, value=0x7F5E16FB2900, size=128
    )
    kernel = read_cubin(builder.build()).functions["k"]
    assert kernel.is_entry
    assert kernel.sub_functions == (SubFunction(name="$k$slow", start_offset=0x40, size_bytes=48),)


@pytest.mark.parametrize("with_addend", [False, True])
def test_only_relocations_of_call_targets_are_calls(with_addend: bool) -> None:
    builder = two_functions()
    moves = [(0, 56, 3), (16, 57, 3)]
    calls = [(32, 75 if with_addend else 58, 4), (112, 58, 3)]
    if with_addend:
        builder.add(".rela.text.k", pack_rela([(*row, 0) for row in moves + calls]), kind=RELA, info=1)
    else:
        builder.add(".rel.text.k", pack_rel(moves + calls), kind=REL, info=1)
    assert read_cubin(builder.build()).functions["k"].call_symbols == {32: "vprintf", 112: "f"}


def test_two_local_functions_of_one_name() -> None:
    builder = ElfBuilder()
    builder.add(".text.slow", bytes(16), info=1)
    second = builder.add(".text.slow", bytes(32), info=2)
    builder.add(".text.k", bytes(16), info=3)
    builder.add_symbol("slow", ".text.slow", info=2, size=16)
    builder.add_symbol("slow", second, info=2, size=32)
    builder.add_symbol("k", ".text.k", other=ENTRY, size=16)
    builder.add(".rela.text.k", pack_rela([(0, 75, 2, 0)]), kind=RELA, info=3)
    cubin = read_cubin(builder.build())
    assert list(cubin.functions) == ["slow", "slow@2", "k"]
    assert cubin.functions["slow@2"].size_bytes == 32
    assert cubin.functions["k"].call_symbols == {0: "slow@2"}


def test_call_table() -> None:
    builder = two_functions()
    pairs = [(0, -1), (1, 3), (1, 4), (0, -2), (3, 1), (0, -3), (1, 1), (0, -4), (1, 3)]
    data = b"".join(number.to_bytes(4, "little", signed=True) for pair in pairs for number in pair)
    builder.add(".nv.callgraph", data, kind=NV_CALLGRAPH)
    cubin = read_cubin(builder.build())
    assert cubin.calls == (("k", "f"), ("k", "vprintf"))
    assert cubin.indirect_calls == ((("k",), ("f",)),)


def test_images_before_volta() -> None:
    with pytest.raises(UnsupportedInputError, match="sm_61") as caught:
        read_cubin(two_functions(abi=7, sm=61).build(), path=Path("old.cubin"))
    assert str(caught.value).startswith("old.cubin: ")


def test_programs_are_no_cubins() -> None:
    with pytest.raises(UnsupportedInputError, match="machine 62"):
        read_cubin(two_functions(machine=62).build())


def test_branch_list_longer_than_its_record() -> None:
    builder = two_functions()
    builder.add(".nv.info.k", pack_attribute(0x34, 16, 0, 1 << 30), kind=NV_INFO, info=1)
    with pytest.raises(InputError, match=r"claims 1073741824 targets") as caught:
        read_cubin(builder.build())
    assert caught.value.place == "section .text.k"


def test_facts_of_fixtures() -> None:
    jumps = read_fixture(FIXTURES / "cubins" / "sm_80" / "jump_table_original.cubin").functions["_Z10jump_tablePKjPfii"]
    ((branch, targets),) = jumps.indirect_branch_targets.items()
    assert branch < min(targets)
    assert len(targets) == 15
    linked = read_fixture(CONTAINERS / "two_units_linked.sm_90.cubin")
    assert {name: function.is_entry for name, function in linked.functions.items()} == {
        "_Z9two_unitsPKfPfi": True,
        "_ZN5units4dampEff": False,
        "_Z8one_unitPfi": True,
    }
    assert linked.calls == (("_Z9two_unitsPKfPfi", "_ZN5units4dampEff"),)
    assert list(linked.functions["_Z9two_unitsPKfPfi"].call_symbols.values()) == ["_ZN5units4dampEff"]
    recursion = read_fixture(CONTAINERS / "recursion_nvrtc12.sm_70.cubin").functions["_Z9recursionPKjPjii"]
    assert [sub.name for sub in recursion.sub_functions] == ["$_Z9recursionPKjPjii$_Z11subtree_sumPKjii"]


def test_every_fixture_opens() -> None:
    for path in find_fixture_cubins():
        cubin = read_fixture(path)
        assert any(function.is_entry for function in cubin.functions.values()), path
        assert f"sm_{cubin.sm}" in str(path)
        for function in cubin.functions.values():
            assert function.registers is not None, path
            assert function.size_bytes % 16 == 0, path
            assert function.barriers is not None, path
            assert all(sub.start_offset + sub.size_bytes <= function.size_bytes for sub in function.sub_functions), path
            targets = [target for listed in function.indirect_branch_targets.values() for target in listed]
            assert all(target < function.size_bytes for target in targets), path


@pytest.mark.oracle
def test_resources_as_cuobjdump_says() -> None:
    tool = find_tool("cuobjdump")
    if tool is None:
        pytest.skip("cuobjdump is not installed")
    for path in find_fixture_cubins():  # it answers in no time
        said = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
        usage = {
            match[1]: {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", match[2])}
            for match in re.finditer(r"Function (\S+?):\s*\n\s*(REG:.*)", said)
        }
        cubin = read_fixture(path)
        assert set(usage) == set(cubin.functions), path
        for name, numbers in usage.items():
            function = cubin.functions[name]
            if function.is_entry:  # for device functions the tool says 0
                said_of_it = (numbers["REG"], numbers["SHARED"])
                assert (function.registers, function.shared_static_bytes) == said_of_it, (path, name)


def test_functions_compiled_for_a_debugger_are_told_from_the_others() -> None:
    """Debug information covers only the helper ``f``, which is linked with the optimized kernel ``k``."""
    optimized = read_cubin(two_functions().build())
    assert optimized.debug_functions == frozenset()
    builder = two_functions()
    builder.add(".nv_debug_info_reg_sass", b"f\0\x01\0\0\0" + bytes(16))
    builder.add(".nv_debug_info_reg_type", b"f\0\x02\0\0\0\x0e\x0e")
    assert read_cubin(builder.build()).debug_functions == {"f"}


@pytest.mark.parametrize("types", [None, b"f\0\x02", b"f", b"other\0\0\0\0\0"])
def test_where_an_image_does_not_say_which_functions_all_are(types: bytes | None) -> None:
    builder = two_functions()
    builder.add(".nv_debug_info_reg_sass", bytes(16))
    if types is not None:
        builder.add(".nv_debug_info_reg_type", types)
    assert read_cubin(builder.build()).debug_functions == {"k", "f"}
