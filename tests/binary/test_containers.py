"""Files that hold device code: all kinds of them, and files that hold none."""

import os
import stat
import sys
from pathlib import Path

import pytest

from gpa_lsp.code.binary import containers
from gpa_lsp.code.binary.byte_reader import FileBytes
from gpa_lsp.code.binary.containers import Container, extract_images, find_cubins, recognise_container
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.errors import InputError, MissingToolError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.processes.watched_command import TimeLimits
from tests.binary.elf_builder import ENTRY, ElfBuilder
from tests.binary.seeds import CONTAINERS, FIXTURES, read_fixture
from tests.binary.test_fatbin import LZ4, block, entry
from tests.patience import LIMIT_S, in_bounded_time

CUBIN = CONTAINERS / "two_units_linked.sm_90.cubin"


def make_cubin(sm: int) -> bytes:
    builder = ElfBuilder(sm=sm)
    builder.add(f".text.k{sm}", bytes(32), info=1)
    builder.add_symbol(f"k{sm}", f".text.k{sm}", other=ENTRY, size=32)
    return builder.build()


def make_program(**sections: bytes) -> bytes:
    builder = ElfBuilder(abi=0, machine=62)
    for name, data in sections.items():
        builder.add(name.replace("nv_fatbin", ".nv_fatbin"), data)
    return builder.build()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("two_units_linked.sm_90.cubin", Container.CUBIN),
        ("scale.fatbin", Container.FATBIN),
        ("scale.o", Container.HOST_ELF),
        ("libscale.so", Container.HOST_ELF),
    ],
)
def test_recognise(name: str, kind: Container) -> None:
    assert recognise_container(CONTAINERS / name) is kind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"!<arch>\n", Container.ARCHIVE),
        (b"MZ\x90", Container.WINDOWS),
        (b"\x7fEL", None),
        (b"", None),
        (b"text", None),
    ],
)
def test_recognise_by_first_bytes(head: bytes, kind: Container | None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(head)
    assert recognise_container(path) is kind


def test_raw_cubin() -> None:
    (cubin,) = find_cubins(CUBIN)
    assert cubin == read_fixture(CUBIN)


def test_cubin_with_something_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "padded.cubin"
    path.write_bytes(CUBIN.read_bytes() + b"padding")
    (cubin,) = find_cubins(path)
    assert cubin.sha256 == read_fixture(CUBIN).sha256


def test_fixtures_with_several_images() -> None:
    assert [cubin.sm for cubin in find_cubins(CONTAINERS / "scale.fatbin")] == [80, 90]
    assert [cubin.sm for cubin in find_cubins(CONTAINERS / "scale.o")] == [80, 90]
    (cubin,) = find_cubins(CONTAINERS / "scale.o", sm=90)
    assert cubin.sm == 90
    assert cubin.path == CONTAINERS / "scale.o"
    assert cubin.has_lines


def test_shared_library_with_lz4_entries() -> None:
    if find_tool("cuobjdump") is None:
        pytest.skip("cuobjdump is not installed")
    assert sorted(cubin.sm for cubin in find_cubins(CONTAINERS / "libscale.so")) == [75, 80, 90, 120]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["scale.fatbin", "scale.o", "libscale.so"])
def test_same_images_as_cuobjdump_extracts(name: str) -> None:
    if find_tool("cuobjdump") is None:
        pytest.skip("cuobjdump is not installed")
    extracted = list(extract_images(CONTAINERS / name, "-xelf", limit_bytes=1 << 24))
    found = find_cubins(CONTAINERS / name)
    assert len(extracted) == len(found)
    assert sorted(cubin.image.rstrip(b"\0") for cubin in found) == sorted(image.rstrip(b"\0") for image in extracted)


def test_linked_code_hides_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(make_program(nv_fatbin=block(entry(make_cubin(80))), __nv_relfatbin=block(entry(make_cubin(90)))))
    assert [list(cubin.functions) for cubin in find_cubins(path)] == [["k80"]]
    path.write_bytes(make_program(__nv_relfatbin=block(entry(make_cubin(90)))))
    assert [list(cubin.functions) for cubin in find_cubins(path)] == [["k90"]]


def test_images_without_functions_and_for_old_gpus_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "program"
    empty = ElfBuilder(sm=90).build()
    path.write_bytes(make_program(nv_fatbin=block(entry(empty), entry(b"old", sm=61), entry(make_cubin(75), sm=75))))
    assert [list(cubin.functions) for cubin in find_cubins(path)] == [["k75"]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (make_program(), "there is no device code"),
        (block(entry(b".version 8.0", kind=1)), "PTX but no machine code"),
        (block(entry(b"old", sm=61)), "for sm_61, none for sm_70 or later"),
    ],
)
def test_no_machine_code(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    with pytest.raises(UnsupportedInputError, match=complaint) as caught:
        find_cubins(path)
    assert str(path) in str(caught.value)
    assert "-gencode" in str(caught.value)


def test_wanted_architecture_is_missing() -> None:
    with pytest.raises(UnsupportedInputError, match="for sm_80, sm_90, none for sm_100"):
        find_cubins(CONTAINERS / "scale.fatbin", sm=100)


def test_source_file() -> None:
    with pytest.raises(UnsupportedInputError, match="not a file with device code"):
        find_cubins(FIXTURES / "containers" / "scale.cu")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        find_cubins(tmp_path / "nothing")


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="not a file with device code"):
        find_cubins(tmp_path / "empty")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes there")
def test_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        find_cubins(tmp_path / "pipe")


@pytest.mark.parametrize("head", [b"", CUBIN.read_bytes(), make_program(), block(entry(make_cubin(80)))])
def test_huge_sparse_file_is_cheap(head: bytes, tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(2 << 30)
    try:
        with in_bounded_time():
            assert find_cubins(path)
    except InputError as error:
        assert str(path) in str(error)


def test_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    """A program may be rebuilt under the reader: short answers, no bus error."""
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    with FileBytes(path) as data:
        path.write_bytes(b"short")
        assert data[:50_000] == b"short"
        assert data.find(b"x", 0, 100_000) == -1


def test_search_over_the_border_of_two_chunks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes((1 << 20) - 2) + b"magic" + bytes(50))
    with FileBytes(path) as data:
        assert data.find(b"magic", 0, len(data)) == (1 << 20) - 2
        assert data.find(b"magic", 0, (1 << 20) + 2) == -1


def lz4_container(folder: Path) -> Path:
    path = folder / "packed.fatbin"
    path.write_bytes(block(entry(b"lz4", flags=LZ4, unpacked=100)))
    return path


def fake_tool(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    tool = folder / "cuobjdump"
    tool.write_text(f"#!{sys.executable}\n{script}")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("GPA_LSP_CUOBJDUMP", str(tool))


def test_cuobjdump_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPA_LSP_CUOBJDUMP", str(tmp_path / "missing"))
    with pytest.raises(MissingToolError, match="taking the device code out of packed"):
        find_cubins(lz4_container(tmp_path))


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for the tool is a script")


@posix_only
def test_images_from_the_tool_in_its_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(make_cubin(80))
    (tmp_path / "other").write_bytes(make_cubin(90))
    fake_tool(
        monkeypatch,
        tmp_path,
        "import shutil, sys\n"
        "assert sys.argv[1:3] == ['-xelf', 'all']\n"
        f"shutil.copy({str(tmp_path / 'other')!r}, 'x.10.sm_90.cubin')\n"
        f"shutil.copy({str(tmp_path / 'image')!r}, 'x.9.sm_80.cubin')\n",
    )
    assert [cubin.sm for cubin in find_cubins(lz4_container(tmp_path))] == [80, 90]


@posix_only
@pytest.mark.parametrize(
    ("script", "clock_s", "expected"),
    [
        ("import sys; print('it broke'); sys.exit(3)", LIMIT_S, (ToolError, "exit status 3")),
        ("import time; time.sleep(3600)", 2.0, (ToolError, "reading .*: timed out after 2 s")),
        (
            "open('a.1.sm_80.cubin', 'wb').write(bytes(200_000)); import time; time.sleep(3600)",
            LIMIT_S,
            (InputError, "unpacks to more than"),
        ),
        ("open('a.1.sm_80.cubin', 'wb').write(bytes(200_000))", LIMIT_S, (InputError, "unpacks to more than")),
    ],
)
def test_tool_that_misbehaves(
    script: str,
    clock_s: float,
    expected: tuple[type[Exception], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    error, complaint = expected
    fake_tool(monkeypatch, tmp_path, script)
    limits = TimeLimits(processor_s=LIMIT_S, clock_s=clock_s)
    with pytest.raises(error, match=complaint):
        list(extract_images(lz4_container(tmp_path), "-xelf", limit_bytes=100_000, longest_run=limits))


@posix_only
def test_tool_that_finds_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_tool(monkeypatch, tmp_path, "import sys; print('File x does not contain device code'); sys.exit(255)")
    path = tmp_path / "library.a"
    path.write_bytes(b"!<arch>\n")
    with pytest.raises(InputError, match="no device code"):
        find_cubins(path)


def test_images_that_unpack_to_too_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(containers, "_UNPACKED_PER_BYTE", 0)
    monkeypatch.setattr(containers, "_UNPACKED_AT_LEAST", 100)
    path = tmp_path / "a.fatbin"
    path.write_bytes(block(entry(make_cubin(80), sm=80)))
    with pytest.raises(InputError, match="many times its own size"):
        find_cubins(path)


def test_real_tool_on_a_program_without_device_code() -> None:
    if find_tool("cuobjdump") is None:
        pytest.skip("cuobjdump is not installed")
    assert list(extract_images(Path(sys.executable).resolve(), "-xelf", limit_bytes=1 << 24)) == []
