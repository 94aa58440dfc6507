"""What a program needs, read from its file before it is started: :func:`examine_program`."""

from pathlib import Path

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.elf import ELF_MAGIC, SYMBOL_DTYPE, ElfImage, read_elf
from gpa_lsp.code.binary.file_bytes import FileBytes
from gpa_lsp.execution.programs.loaded_code import REBUILD
from gpa_lsp.foundation.errors import InputError

_RUNTIME = "libcudart.so."
_DEVICE_CODE = (".nv_fatbin", ".nvFatBinSegment", "__nv_relfatbin")
_DYNAMIC = 6  # ``sh_type`` of ``.dynamic``
_NEEDED = 1  # ``d_tag`` of a library that is asked for
_DYNAMIC_DTYPE = np.dtype([("tag", "<i8"), ("value", "<u8")])
_LIBRARIES = {
    "libcublasLt.so": "cuBLAS",
    "libcudnn.so": "cuDNN",
    "libcusparse.so": "cuSPARSE",
    "libcusolver.so": "cuSOLVER",
    "libnccl.so": "NCCL",
    "libtorch_cuda.so": "PyTorch",
}


class ProgramFile(Struct, frozen=True, kw_only=True):
    """A program."""

    path: Path  # of it
    runtime: str | None  # the runtime library it asks for, such as ``libcudart.so.13``; None where it asks for none
    libraries: tuple[str, ...] = ()  # NVIDIA's libraries of machine code it uses, whose kernels cannot run here
    needed: tuple[str, ...] = ()  # names of all libraries it asks for
    undefined: tuple[str, ...] = ()  # names it expects of them


def examine_program(path: Path) -> ProgramFile:
    """Read what a program needs.

    Raises:
        InputError: it cannot be read; or it was built in a way that cannot run here, and how to build it.
    """
    with FileBytes(path) as data:
        if data[:4] != ELF_MAGIC:
            return ProgramFile(path=path, runtime=None)
        elf = read_elf(data, path=path)
        needed = _list_needed(elf)
        undefined = _list_undefined(elf)
    runtime = next((name for name in needed if name.startswith(_RUNTIME)), None)
    if runtime is None and any(name in elf.section_names for name in _DEVICE_CODE):
        raise InputError(
            "brings NVIDIA's runtime library with it (nvcc's default), so no other can take its place",
            path=path,
            remedy=REBUILD,
        )
    libraries = dict.fromkeys(
        _LIBRARIES[stem] for name in needed if (stem := name.partition(".so")[0] + ".so") in _LIBRARIES
    )
    return ProgramFile(
        path=path, runtime=runtime, libraries=tuple(libraries), needed=tuple(needed), undefined=undefined
    )


def _list_undefined(elf: ElfImage) -> tuple[str, ...]:
    """What it expects of libraries."""
    index = elf.find_section(".dynsym")
    if index is None:
        return ()
    content = elf.section_bytes(index)
    symbols = np.frombuffer(content, SYMBOL_DTYPE, count=len(content) // SYMBOL_DTYPE.itemsize)
    strings = elf.read_strings(int(elf.sections[index]["link"]))
    return tuple(strings.read(offset) for offset in symbols["name"][symbols["section"] == 0].tolist() if offset)


def _list_needed(elf: ElfImage) -> list[str]:
    """The libraries it asks for."""
    found = []
    for index in np.flatnonzero(elf.sections["type"] == _DYNAMIC):
        content = elf.section_bytes(int(index))
        rows = np.frombuffer(content, _DYNAMIC_DTYPE, count=len(content) // _DYNAMIC_DTYPE.itemsize)
        strings = elf.read_strings(int(elf.sections[index]["link"]))
        found += [strings.read(offset) for offset in rows["value"][rows["tag"] == _NEEDED].tolist()]
    return found
