"""Device code of existing builds."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.execution.compiler.model import CompilerKind
from gpa_lsp.execution.compiler.ptx_files import read_build
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError


@pytest.fixture
def built(fixtures: Path) -> Path:
    return fixtures / "containers" / "built"


def test_a_fat_binary_gives_its_ptx_and_images(built: Path) -> None:
    units = read_build(built / "scale.fatbin")
    assert [(unit.compute_capability, unit.kind, unit.source) for unit in units] == [
        ((8, 0), CompilerKind.BUILT, None),
        ((9, 0), CompilerKind.BUILT, None),
    ]
    assert [unit.ptx is not None and f".target sm_{unit.compute_capability[0]}0" in unit.ptx for unit in units] == [
        True,
        True,
    ]


def test_one_architecture_of_several(built: Path) -> None:
    [unit] = read_build(built / "scale.fatbin", compute_capability=(9, 0))
    assert read_cubin(unit.cubin).sm == 90
    with pytest.raises(UnsupportedInputError, match="sm_75"):
        read_build(built / "scale.o", compute_capability=(7, 5))


def test_an_object_and_a_library_give_the_ptx_their_images_keep(built: Path) -> None:
    for file, architectures in (("scale.o", [(8, 0), (9, 0)]), ("libscale.so", [(7, 5), (9, 0), (8, 0), (12, 0)])):
        units = read_build(built / file)
        assert [unit.compute_capability for unit in units] == architectures
        assert all(unit.ptx is not None and ".entry" in unit.ptx and unit.notes == () for unit in units)


def test_an_image_of_several_units_comes_with_the_ptx_of_each(built: Path) -> None:
    units = read_build(built / "two_units_linked.sm_90.cubin")
    assert len(units) == 2
    texts = [unit.ptx or "" for unit in units]
    assert [("_Z9two_units" in text, "_Z8one_unit" in text) for text in texts] == [(True, False), (False, True)]
    assert units[0].cubin == units[1].cubin


def test_embedded_ptx_has_lines_and_chains_again(built: Path) -> None:
    [unit] = read_build(built / "inline_chain_nvrtc13.sm_90.cubin")
    lines = unit.ptx.splitlines()
    place = next(line for line in lines if "inlined_at" in line)
    assert ".loc" in place
    files = {line.split()[1]: line.split()[2] for line in lines if line.strip().startswith(".file")}
    assert any("original.cu" in name for name in files.values())
    assert any("curves.cuh" in name for name in files.values())
    label = place.split("function_name ")[1].split(",")[0]
    content = lines[lines.index(f"{label}:") + 1]
    name = bytes(int(number) for number in content.removeprefix(".b8 ").split(",")).rstrip(b"\0").decode()
    assert name.startswith("_Z")


@pytest.mark.parametrize(
    "name", ["jump_table_nvrtc12.sm_70.cubin", "recursion_nvrtc12.sm_70.cubin", "relocatable_main_unit.sm_90.cubin"]
)
def test_restored_ptx_keeps_every_line_of_the_embedded_one(built: Path, name: str) -> None:
    from gpa_lsp.code.binary.embedded_ptx import read_ptx_text

    [unit] = read_build(built / name)
    kept = [
        line
        for line in read_ptx_text(read_cubin(unit.cubin))
        if line and not line.startswith((".section", "{", "}", "$L__info", ".b8"))
    ]
    restored = unit.ptx.splitlines()
    assert [line for line in restored if line in set(kept)] == kept
    assert sum(line.strip().startswith(".loc") for line in restored) > 3


def test_what_has_no_device_code_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "text.o").write_text("nothing")
    (tmp_path / "short.cubin").write_bytes((built / "scale.o").read_bytes()[:200])
    for name in ("text.o", "short.cubin", "gone.o"):
        with pytest.raises(InputError):
            read_build(tmp_path / name)


def test_damaged_files_give_clear_errors(built: Path, tmp_path: Path) -> None:
    whole = (built / "scale.fatbin").read_bytes()
    path = tmp_path / "damaged.fatbin"
    for position in range(0, len(whole), 97):
        path.write_bytes(whole[:position] + b"\xff\x7f\x80\xff" + whole[position + 4 :])
        try:
            assert read_build(path)
        except InputError:
            continue
