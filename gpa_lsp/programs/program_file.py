"""What a program needs, read from its file before it is started: :func:`examine_program`."""

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.programs.loaded_code import REBUILD

_RUNTIME = "libcudart.so."
_DEVICE_CODE = (".nv_fatbin", ".nvFatBinSegment")
_LIBRARIES = {
    "libcublas.so": "cuBLAS",
    "libcublasLt.so": "cuBLAS",
    "libcudnn.so": "cuDNN",
    "libcufft.so": "cuFFT",
    "libcusparse.so": "cuSPARSE",
    "libcusolver.so": "cuSOLVER",
    "libcurand.so": "cuRAND",
    "libnccl.so": "NCCL",
    "libtorch_cuda.so": "PyTorch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFile:
    """A program.

    Attributes:
        path: of it.
        runtime: the runtime library it asks for, such as ``libcudart.so.13``; None where it asks for none.
        libraries: NVIDIA's libraries of machine code it uses, whose kernels cannot run here.
    """

    path: Path
    runtime: str | None
    libraries: tuple[str, ...]


def examine_program(path: Path) -> ProgramFile:
    """Read what a program needs.

    Args:
        path: a file; one that is no ELF file (a script) needs nothing that can be told.

    Raises:
        InputError: it cannot be read; or it brings NVIDIA's runtime with it, so that ours cannot take its place.
    """
    try:
        with path.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                return ProgramFile(path=path, runtime=None, libraries=())
            stream.seek(0)
            needed, has_code = _read_needs(ELFFile(stream))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from error
    except (ELFError, ValueError, KeyError) as error:
        raise InputError("is a damaged program", path=path) from error
    runtime = next((name for name in needed if name.startswith(_RUNTIME)), None)
    if has_code and runtime is None:
        raise InputError("brings NVIDIA's runtime library with it (nvcc's default), so no other can take its place", path=path, remedy=REBUILD)
    libraries = tuple(dict.fromkeys(_LIBRARIES[stem] for name in needed if (stem := name.partition(".so")[0] + ".so") in _LIBRARIES))
    return ProgramFile(path=path, runtime=runtime, libraries=libraries)


def _read_needs(elf: ELFFile) -> tuple[list[str], bool]:
    needed: list[str] = []
    has_code = False
    for section in elf.iter_sections():
        has_code |= section.name in _DEVICE_CODE
        if isinstance(section, DynamicSection):
            needed += [tag.needed for tag in section.iter_tags("DT_NEEDED")]
    return needed, has_code
