"""The code a program registered, unpacked and parsed when it is first needed: :class:`LoadedModule`."""

import hashlib
import os
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.containers import FATBIN_MAGIC
from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.elf import ELF_MAGIC
from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.source_parameters import SourceParameter, read_source_parameters
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.compiler.ptx_files import is_ptx_file, list_built_ptx, read_build
from gpa_lsp.execution.emulator.emulate import find_static_shared_bytes
from gpa_lsp.execution.emulator.resident import ResidentMemory, ResidentModule
from gpa_lsp.execution.launches.pointer_uses import find_pointer_uses
from gpa_lsp.execution.launches.type_names import find_type
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.files import atomic_write

_POINTER_BYTES = 8
# Reported if the code was never assembled; only occupancy and attributes depend on it
_UNKNOWN_REGISTERS = 32

REBUILD = (
    "build it with -cudart shared -gencode arch=compute_80,code=compute_80, or give its build command with --build"
)


class FunctionFacts(Struct, frozen=True, kw_only=True):
    """Properties of a kernel that its program can ask for."""

    kernel: PtxFunction  # as parsed
    registers: int  # of a thread
    static_shared_bytes: int  # of a block
    most_threads: int  # of a block
    sources: tuple[SourceParameter, ...]  # names and types of the parameters, where the source is at hand; else empty

    def name_arrays(self, parameters: bytes, memory: ResidentMemory) -> dict[int, tuple[str, int]]:
        """The allocations, also freed ones, that parameters point to: base → the parameter's name, and the bytes of an element."""
        uses = find_pointer_uses(self.kernel)
        found: dict[int, tuple[str, int]] = {}
        for number, parameter in enumerate(self.kernel.parameters):
            if parameter.size_bytes != _POINTER_BYTES:
                continue
            start = parameter.offset_bytes
            address = int.from_bytes(parameters[start : start + _POINTER_BYTES], "little")
            region = memory.find(address) or memory.find_freed(address)
            if region is None:
                continue
            use = uses.get(parameter.name)
            source = self.sources[number] if self.sources else None
            declared = None if source is None else find_type(source.type)
            size = declared.bytes if declared is not None else 1 if use is None or use.type is None else use.type.bytes
            name = source.name if source is not None and source.name else f"argument {number + 1}"
            found.setdefault(region.base, (name, size))
        return found


class LoadedModule:
    """One fat binary of the program.

    Args:
        path: where its bytes were put.
        memory: where its variables go.
        capability: of the GPU the program sees; newer code does not run on it.

    Attributes:
        content: those bytes.
        unit: the code that was chosen.

    Raises:
        GpaError: it holds no PTX that runs on this GPU.
    """

    def __init__(self, path: Path, memory: ResidentMemory, capability: tuple[int, int]) -> None:
        self.path = path
        self.content = path.read_bytes()  # the file is gone once the program was ended
        units = [unit for unit in read_build(path, assembles=False) if unit.ptx is not None]
        fitting = [unit for unit in units if unit.compute_capability <= capability]
        if units and not fitting and not is_ptx_file(path):  # there may also be code for older GPUs
            fitting = [unit for unit in list_built_ptx(path) if unit.compute_capability <= capability]
        if not units:
            raise GpaError(f"its kernels come as machine code only, without PTX; {REBUILD}")
        if not fitting:
            oldest = min(unit.compute_capability for unit in units)
            wanted = ".".join(map(str, oldest))
            raise GpaError(f"its PTX is for compute capability {wanted} and newer; choose such a GPU with --machine")
        self.unit: CompiledUnit = max(fitting, key=lambda unit: unit.compute_capability)
        self.resident = ResidentModule(parse_ptx(self.unit.ptx or "", name=f"the PTX of {path.name}"), memory)
        self._functions = {} if self.unit.cubin is None else read_cubin(self.unit.cubin).functions

    def describe(self, name: str) -> FunctionFacts | None:
        """A kernel; None where there is none of this name."""
        kernel = next((entry for entry in self.resident.module.entries if entry.name == name), None)
        if kernel is None:
            return None
        compiled = self._functions.get(name)
        return FunctionFacts(
            kernel=kernel,
            registers=(compiled.registers if compiled is not None else None) or _UNKNOWN_REGISTERS,
            static_shared_bytes=find_static_shared_bytes(self.resident.module, kernel),
            most_threads=kernel.max_threads or 1024,
            sources=read_sources(kernel),
        )


def find_source(kernel: PtxFunction) -> Path | None:
    """The file a kernel is written in; None if it has no line table."""
    chain = next((one.chain for one in kernel.instructions if one.chain), None)
    return None if chain is None else Path(chain[-1].file)


def read_sources(kernel: PtxFunction) -> tuple[SourceParameter, ...]:
    """Names and types of the parameters, where the source is at hand and has as many of them."""
    path = find_source(kernel)
    if path is None:
        return ()
    try:
        found = read_source_parameters(path.name, path.read_text(encoding="utf-8", errors="replace"), kernel.name)
    except OSError:
        return ()
    return found if len(found) == len(kernel.parameters) else ()


_NAME_DIGITS = 12
_TRITON_CACHE_VARIABLE = "TRITON_CACHE_DIR"
_TRITON_HOME_VARIABLE = "TRITON_HOME"
_MOST_SEARCHED = 20_000


def place_image(content: bytes, folder: Path) -> Path:
    """Write a fat binary, machine code or PTX to a file named by what it holds.

    Of machine code from Triton, the PTX beside it in Triton's cache is taken.

    Raises:
        GpaError: it cannot be written.
    """
    suffix = ".fatbin" if content.startswith(FATBIN_MAGIC) else ".cubin" if content.startswith(ELF_MAGIC) else ".ptx"
    if suffix == ".cubin":
        ptx = _find_triton_ptx(content)
        content, suffix = (content, suffix) if ptx is None else (ptx, ".ptx")
    path = folder / f"{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}{suffix}"
    try:
        with atomic_write(path, encoding=None) as stream:
            stream.write(content.rstrip(b"\0") if suffix == ".ptx" else content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _find_triton_ptx(cubin: bytes) -> bytes | None:
    """PTX that Triton cached beside a cubin; None if its cache does not have it.

    The end of a loaded image is only estimated, so the cached one may be slightly longer. Newest folders are searched first.
    """
    named = os.environ.get(_TRITON_CACHE_VARIABLE)
    home = Path(os.environ.get(_TRITON_HOME_VARIABLE, "~")).expanduser()
    try:
        folders = sorted(
            os.scandir(named or home / ".triton" / "cache"), key=lambda one: one.stat().st_mtime, reverse=True
        )
        for folder in folders[:_MOST_SEARCHED]:
            for path in Path(folder.path).glob("*.cubin"):
                if 0 <= path.stat().st_size - len(cubin) < 4096 and path.read_bytes()[: len(cubin)] == cubin:
                    return path.with_suffix(".ptx").read_bytes()
    except OSError:
        return None
    return None
