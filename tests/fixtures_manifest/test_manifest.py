"""The manifest tells the truth about the files beside it. Nothing here needs NVIDIA's tools."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from .manifest import FIXTURES, Row, hash_file, list_artefacts, read_manifest, read_recipes, read_rows

BUILT_WHEN_RUN = ("programs/", "edits/")
"""Whole programs and families of edits are built where they are run; nothing of them is kept."""

REQUIRED_PATTERNS = {
    "register_spill",
    "integer_division",
    "double_constant",
    "fp64_heavy",
    "barrier_imbalance",
    "strided_access",
    "bank_conflict",
    "short_def_use",
    "loop_not_unrolled",
    "device_calls",
    "huge_body",
    "few_blocks",
    "tiny_blocks",
    "math_functions",
    "async_copy",
    "tensor_core",
}
MACHINE_PATHS = re.compile(rb"/(?:work|root|home|tmp|usr|var|mnt)/|tmpxft|site-packages")


def cubin_rows() -> list[Row]:
    return [row for row in read_rows() if row["kind"].endswith("cubin")]


def test_files_and_manifest_name_each_other() -> None:
    paths = [row["path"] for row in read_rows()]
    assert len(paths) == len(set(paths))
    assert sorted(paths) == list_artefacts()


def test_hashes_and_sizes_match() -> None:
    wrong = [row["path"] for row in read_rows() if hash_file(row["path"]) != row["sha256"]]
    wrong += [row["path"] for row in read_rows() if (FIXTURES / row["path"]).stat().st_size != row["size_bytes"]]
    assert wrong == []


def test_hashes_of_sources_match() -> None:
    recorded = {(source["path"], source["sha256"]) for row in read_rows() for source in row["sources"]}
    assert recorded == {(path, hash_file(path)) for path, _ in recorded}


def test_every_source_is_built() -> None:
    recorded = {source["path"] for row in read_rows() for source in row["sources"]}
    found = {path.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/**/*.cu*")}
    present = {path for path in found if not path.startswith(BUILT_WHEN_RUN)} - set(list_artefacts())
    assert present == recorded


def test_every_row_has_its_provenance() -> None:
    for row in read_rows():
        assert re.fullmatch(r"(nvcc|nvlink|nvrtc) \d+\.\d+(\.\d+)?", row["tool"]), row["path"]
        assert row["sources"] and row["architectures"], row["path"]
        assert row["path"] in row["commands"][-1], row["path"]
        assert any(source["path"] in " ".join(row["commands"]) for source in row["sources"]), row["path"]


def test_required_patterns_are_there_for_the_four_architectures() -> None:
    recipes = read_recipes()
    assert set(recipes) >= REQUIRED_PATTERNS
    for pattern in REQUIRED_PATTERNS:
        assert recipes[pattern]["architectures"] == ["sm_75", "sm_80", "sm_90", "sm_120"], pattern


@pytest.mark.parametrize("pattern", sorted(read_recipes()))
def test_pattern_has_both_twins_for_each_architecture_it_claims(pattern: str) -> None:
    recipe = read_recipes()[pattern]
    roles = [role for role in ("original", "improved") if role in recipe]
    assert roles == (["original"] if pattern == "inline_chain" else ["original", "improved"])
    claimed = {(role, sm) for role in roles for sm in recipe[role].get("architectures", recipe["architectures"])}
    rows = [row for row in read_rows() if row.get("pattern") == pattern]
    assert {(row["role"], sm) for row in rows for sm in row["architectures"]} == claimed
    for row in rows:
        twin = recipe[row["role"]]
        assert row["launch"]["grid"] == twin["grid"] and row["launch"]["block"] == twin["block"]
        assert row["path"] == f"cubins/{row['architectures'][0]}/{pattern}_{row['role']}.cubin"
        expectations = {key for key in twin if key.startswith(("expects", "absent", "at_"))}
        assert {key: row[key] for key in expectations} == {key: twin[key] for key in expectations}


@pytest.mark.parametrize("path", [row["path"] for row in cubin_rows()])
def test_cubin_holds_its_kernels(path: str) -> None:
    row = next(row for row in cubin_rows() if row["path"] == path)
    with (FIXTURES / path).open("rb") as stream:
        elf = ELFFile(stream)
        assert elf["e_machine"] == "EM_CUDA"
        assert elf["e_type"] == ("ET_REL" if row["kind"] == "relocatable cubin" else "ET_EXEC")
        flags = elf["e_flags"]
        # CUDA 12 and older (ABI version 7) keep the architecture in the lowest byte, CUDA 13 in the next one.
        number = flags & 0xFF if elf.header["e_ident"]["EI_ABIVERSION"] <= 7 else flags >> 8 & 0xFF
        assert row["architectures"] == [f"sm_{number}"]
        symbols = {
            symbol.name
            for section in elf.iter_sections()
            if isinstance(section, SymbolTableSection)
            for symbol in section.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
        }
        sections = {section.name: section for section in elf.iter_sections()}
        names = [kernel["name"] for kernel in row["kernels"]]
        assert names and len(names) == len(set(names))
        assert symbols.issuperset(names)
        assert all(sections[f".text.{name}"].data_size > 0 for name in names)
        assert any(name.startswith(".nv_debug_ptx_txt") for name in sections)
        assert row["sources"][0]["path"].rpartition("/")[2].encode() in sections[".debug_line"].data()


@pytest.mark.parametrize("path", list_artefacts())
def test_artefact_names_no_path_of_the_machine_that_built_it(path: str) -> None:
    assert MACHINE_PATHS.findall((FIXTURES / path).read_bytes()) == []


def test_line_tables_name_the_build_folder() -> None:
    manifest = read_manifest()
    for row in cubin_rows():
        folder = f"{manifest['build_folder']}/{row['sources'][0]['path'].rpartition('/')[0]}"
        assert folder.encode() in (FIXTURES / row["path"]).read_bytes(), row["path"]


def resource(pattern: str, role: str, name: str) -> list[int]:
    """One resource of a pattern's kernel, an entry an architecture."""
    rows = [row for row in read_rows() if row.get("pattern") == pattern and row["role"] == role]
    return [row["kernels"][0][name] for row in rows]


def launch(pattern: str, role: str, name: str) -> list[int]:
    row = next(row for row in read_rows() if row.get("pattern") == pattern and row["role"] == role)
    dimensions: list[int] = row["launch"][name]
    return dimensions


def test_patterns_that_show_in_resources_or_launch_and_not_in_opcodes() -> None:
    assert min(resource("low_occupancy", "original", "shared_static_bytes")) == 48 * 1024
    assert max(resource("low_occupancy", "improved", "shared_static_bytes")) == 256
    assert min(resource("register_spill", "original", "spill_store_bytes")) > 0
    assert max(resource("register_spill", "improved", "spill_store_bytes")) == 0
    assert max(resource("local_array", "original", "spill_store_bytes")) == 0
    assert min(resource("local_array", "original", "stack_frame_bytes")) == 64
    assert launch("few_blocks", "original", "grid") == [16, 1, 1]
    assert launch("few_blocks", "improved", "grid") == [64, 16, 1]
    assert launch("tiny_blocks", "original", "block") == [32, 1, 1]
    assert launch("tiny_blocks", "improved", "block") == [256, 1, 1]


def test_folder_stays_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*") if path.is_file()) < 8_000_000


def test_build_script_agrees_and_notices_a_change(tmp_path: Path) -> None:
    command = [sys.executable, str(FIXTURES / "build.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "all files are as the manifest says\n")

    for name in ("build.py", "manifest.toml"):
        (tmp_path / name).write_bytes((FIXTURES / name).read_bytes())
    done = subprocess.run(
        [sys.executable, str(tmp_path / "build.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cubins/sm_90/register_spill_original.cubin: missing\n" in done.stderr


def test_readme_names_every_pattern_and_container() -> None:
    text = (FIXTURES / "README.md").read_text()
    missing = [pattern for pattern in read_recipes() if f"| `{pattern}` |" not in text]
    containers = [Path(row["path"]).name for row in read_rows() if row["path"].startswith("containers/")]
    missing += [name for name in containers if name not in text and "_nvrtc12." not in name and "two_units" not in name]
    assert missing == []


def test_recording_commands_cover_every_pair() -> None:
    command = [sys.executable, str(FIXTURES / "record.py"), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    twins = sum(("original" in recipe) + ("improved" in recipe) for recipe in read_recipes().values())
    assert sum(line.startswith("driver ") for line in lines) == len(read_recipes())
    assert sum(line.startswith("ncu ") for line in lines) == twins
    assert all(f"cubins/sm_90/{pattern}_original.cubin" in done.stdout for pattern in read_recipes())
