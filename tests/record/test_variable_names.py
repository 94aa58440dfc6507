"""Names of variables that the library in a program finds in what is loaded, whatever lies there."""

import ctypes
import subprocess
from pathlib import Path

import pytest

from gpa_lsp.execution.record import run
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.conftest import ROOT

_TAKER = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)
PTX = """.version 8.0
.target sm_80 .address_size 64
.visible .global .align 4 .u32 first;
\t.global .align 16 .b8 second[64] = {1, 2};
.extern .const .f32 third = 0f3F800000;
.weak .global .attribute(.managed) .align 4 .u32 fourth[2];
.const .align 8 .u64 $str = {fifth}; .global .u8 eighth;
.visible .entry k(.param .u64 .ptr .global .align 1 sixth) {
  .reg .b32 %r<3>;
  .shared .align 4 .b8 seventh[4];
  ld.global.u32 %r1, [first];
  ret;
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = find_c_compiler()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    path = tmp_path_factory.mktemp("names") / "names.so"
    source = Path(run.__file__).with_name("variable_names.c")
    subprocess.run([compiler, "-std=gnu11", "-O1", "-fPIC", "-shared", source, "-o", path], check=True)
    return ctypes.CDLL(str(path))


def _list_names(reader: ctypes.CDLL, image: bytes) -> list[str]:
    found: list[str] = []
    take = _TAKER(lambda owner, name, length: found.append(ctypes.string_at(name, length).decode(errors="replace")))
    buffer = ctypes.create_string_buffer(image, max(len(image), 1))
    reader.list_variable_names(buffer, ctypes.c_size_t(len(image)), ctypes.c_uint64(1), take)
    return found


def test_of_ptx(reader: ctypes.CDLL) -> None:
    names = _list_names(reader, PTX.encode())
    assert names == ["first", "second", "third", "fourth", "$str", "eighth"]


def _find_cubin() -> bytes:
    return next((ROOT / "fixtures" / "cubins").rglob("constant_indexed_original.cubin")).read_bytes()


def test_of_machine_code(reader: ctypes.CDLL) -> None:
    assert _list_names(reader, _find_cubin()) == ["table"]


@pytest.mark.parametrize("step", [97, 1013])
def test_damaged_machine_code_is_read_inside_of_it_only(reader: ctypes.CDLL, step: int) -> None:
    """A crash of the process shows reads outside, if there is no sanitizer."""
    content = bytearray(_find_cubin())
    for size in range(0, len(content), step):
        _list_names(reader, bytes(content[:size]))
    for place in range(0, len(content), step):
        content[place] ^= 0xFF
        _list_names(reader, bytes(content))
        content[place] ^= 0xFF


def test_what_is_neither_has_none(reader: ctypes.CDLL) -> None:
    for image in (b"", b"\x50\xed\x55\xba" + bytes(100), b"\0" * 20, b"\x7fELF", b".global", b".global .u32 "):
        assert _list_names(reader, image) == []
