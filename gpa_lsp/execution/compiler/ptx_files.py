"""PTX files and built binaries → :class:`~gpa_lsp.execution.compiler.model.CompiledUnit`.

Where ptxas is at hand it makes the device image of it, so that registers, spills and static findings are known as well; nothing needs it.
"""

import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import FileBytes
from gpa_lsp.code.binary.containers import find_cubins, read_built_ptx
from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompiledUnit, CompilerKind
from gpa_lsp.foundation.errors import InputError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, TimeLimits, run_command

_TOOL = "ptxas"
_HEAD_BYTES = 64 << 10
_MOST_BYTES = 64 << 20  # As much as the emulator parses
_LARGEST_IMAGE_BYTES = 512 << 20
_BEGIN = re.compile(rb"(?>(?:\s|//[^\n]*+\n|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/)*)\.version\s+\d+\.\d+")
_TARGET = re.compile(r"^[ \t]*+\.target[ \t]+(sm_(\d{2,3})([af]?))", re.MULTILINE)
_MAKER = re.compile(r"^//.*?(Cuda compilation tools, release \d+\.\d+|LLVM NVPTX)", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*+(?:\.(?:visible|weak|extern)\s+)*\.entry\s+([\w$.]+)", re.MULTILINE)
_LONGEST_CHOICE = 64 << 10  # Characters of names that are passed to ptxas; Linux allows twice as many in an argument
_NO_IMAGE = "registers, spills and static findings are unknown"

_Assembled = tuple[bytes | None, tuple[str, ...]]  # Image, reports and notes
# Of the mangled names of kernels those that are asked for; none where they are unknown: then all
ChooseEntries = Callable[[Sequence[str]], Collection[str]]


def is_ptx_file(path: Path) -> bool:
    """Whether a file begins with ``.version``, after comments.

    Raises:
        InputError: it cannot be read.
    """
    with FileBytes(path) as data:
        return _BEGIN.match(data[:_HEAD_BYTES]) is not None


def list_entries(text: str) -> tuple[str, ...]:
    """Mangled names of the kernels in a PTX text, found without parsing it."""
    return tuple(_ENTRY.findall(text))


def read_ptx_file(
    path: Path,
    *,
    compute_capability: tuple[int, int] | None = None,
    assembles: bool = True,
    choose_entries: ChooseEntries | None = None,
) -> CompiledUnit:
    """Code of a PTX file.

    Args:
        path: for which :func:`is_ptx_file`.
        compute_capability: to assemble it for; None for the one it names.
        choose_entries: kernels that the image is to have, with the functions they call; None for all. Assembling is most of the work, and
            grows with each of them.

    Raises:
        InputError: it cannot be read, is too large, or names no target.
        UnsupportedInputError: it does not run on that architecture.
    """
    with FileBytes(path) as data:
        if len(data) > _MOST_BYTES:
            message = f"is larger than {format_bytes(_MOST_BYTES)}, the limit for PTX"
            raise InputError(message, path=path, remedy="give the PTX of fewer kernels")
        text = data[:].decode("utf-8", "replace")
    target = _TARGET.search(text)
    if target is None:
        raise InputError("names no .target sm_XX", path=path, remedy="give the whole text that the compiler wrote")
    own = int(target[2])
    sm = own if compute_capability is None else compute_capability[0] * 10 + compute_capability[1]
    if not _runs_on(own, target[3], sm):
        also = {"": " and newer", "a": " alone", "f": " and its family"}[target[3]]
        message = f"is PTX for {target[1]}{also}, not for sm_{sm}"
        raise UnsupportedInputError(message, path=path, remedy=f"choose --arch sm_{own}, or compile for sm_{sm}")
    entries = () if choose_entries is None else tuple(choose_entries(list_entries(text)))
    named = target[1] if sm == own else f"sm_{sm}{target[3]}"
    image, notes = _assemble(path, named, entries) if assembles else (None, ())
    maker = _MAKER.search(text[:_HEAD_BYTES])
    return CompiledUnit(
        source=None,
        kind=CompilerKind.BUILT,
        compiler=maker[1].replace("Cuda compilation tools, release", "CUDA") if maker else "PTX",
        compute_capability=divmod(sm, 10),
        ptx=text,
        cubin=image,
        notes=notes,
    )


def _runs_on(own: int, suffix: str, sm: int) -> bool:
    """Whether PTX runs on an architecture: ``a`` on its own only, ``f`` on its family's newer ones, others on all newer.

    Source: PTX ISA, directive ``.target``.
    """
    if suffix == "a":
        return sm == own
    return sm >= own and (suffix != "f" or sm // 10 == own // 10)


def assemble_ptx(text: str, architecture: str, choose_entries: ChooseEntries | None = None) -> _Assembled:
    """Cubin of a PTX text, and no notes; or None and the reason.

    Args:
        architecture: as ptxas names it: ``sm_90``.
        choose_entries: as for :func:`read_ptx_file`.
    """
    entries = () if choose_entries is None else tuple(choose_entries(list_entries(text)))
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        path = Path(name) / "module.ptx"
        path.write_text(text, encoding="utf-8")
        return _assemble(path, architecture, entries)


def _assemble(path: Path, architecture: str, entries: Sequence[str] = ()) -> _Assembled:
    """Cubin of a file, with all kernels or the given ones and their callees."""
    tool = find_tool(_TOOL)
    if tool is None:
        return None, (f"there is no ptxas to assemble it (pip install nvidia-cuda-nvcc): {_NO_IMAGE}",)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        image = folder / "image.cubin"
        named = ",".join(entries)
        only = ["-e", named] if 0 < len(named) <= _LONGEST_CHOICE else []
        command = [str(tool), "-lineinfo", "-arch", architecture, *only, "-o", str(image), str(path.resolve())]
        limits = RunLimits(
            time=TimeLimits.for_work(DEFAULT_SETTINGS.limit_s),
            memory_limit_bytes=DEFAULT_SETTINGS.memory_limit_bytes,
            largest_file_bytes=_LARGEST_IMAGE_BYTES,
        )
        try:
            is_well, output = run_command(_TOOL, command, folder=folder, environment={}, limits=limits)
        except ToolError as error:
            return None, (f"{error}: {_NO_IMAGE}",)
        if not is_well or not image.is_file():
            words = " ".join(output.split())[:300]
            return None, (f"ptxas did not assemble it ({words or 'without a message'}): {_NO_IMAGE}",)
        return image.read_bytes(), ()


_PRODUCER = re.compile(r"Cuda compilation tools, release (\d+\.\d+)")
_HEAD_CHARACTERS = 2000
_NO_PTX = "there is no PTX in it, so it cannot be emulated; build with -lineinfo, or with code=compute_XX as well"
_NO_LINES = "there is no line table in it; build with -lineinfo"


class _BuiltPtx(Struct, frozen=True, kw_only=True):
    text: str
    sm: int
    entries: frozenset[str]


def read_build(
    path: Path,
    *,
    compute_capability: tuple[int, int] | None = None,
    assembles: bool = True,
    choose_entries: ChooseEntries | None = None,
) -> tuple[CompiledUnit, ...]:
    """Device code in a built file.

    Args:
        compute_capability: only code for this one; None for all.
        choose_entries: kernels that this image is to have; None for all.

    Returns:
        One unit per image, in file order, with the PTX of the same kernels beside it: that of the fat binary for the same architecture, else the
        text that ``-lineinfo`` keeps in the image, else that for an older architecture. The text in the image is one per unit that was linked, so
        that such an image comes several times. PTX without an image of its own comes last.

    Raises:
        InputError: the file cannot be read, is damaged, or holds no device code for the architecture.
        MissingToolError: it needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    if is_ptx_file(path):
        unit = read_ptx_file(
            path, compute_capability=compute_capability, assembles=assembles, choose_entries=choose_entries
        )
        return (unit,)
    sm = None if compute_capability is None else compute_capability[0] * 10 + compute_capability[1]
    built = [_describe(text) for text in read_built_ptx(path)]
    failure: InputError | None = None
    try:
        cubins = find_cubins(path, sm=sm)
    except UnsupportedInputError as error:
        cubins, failure = (), error
    if sm is not None:
        cubins = tuple(cubin for cubin in cubins if cubin.sm == sm)
    units: list[CompiledUnit] = []
    used: set[int] = set()
    for cubin in cubins:
        units += _pair(cubin, built, used)
    left = [one for index, one in enumerate(built) if index not in used and (sm is None or one.sm <= sm)]
    units += [build_unit(None, one.text, sm or one.sm) for one in left if one.entries]
    if not units:
        raise failure or UnsupportedInputError(
            "there is no device code for the architecture" if sm is not None else "there is no device code",
            path=path,
            remedy="build with -gencode arch=compute_XX,code=[sm_XX,compute_XX]",
        )
    return tuple(units)


def list_built_ptx(path: Path) -> tuple[CompiledUnit, ...]:
    """All PTX in a built file, for every architecture and without images.

    Raises:
        InputError: the file cannot be read, or is damaged.
    """
    return tuple(build_unit(None, one.text, one.sm) for one in map(_describe, read_built_ptx(path)) if one.entries)


def _describe(text: str) -> _BuiltPtx:
    target = _TARGET.search(text)
    return _BuiltPtx(text=text, sm=int(target[2]) if target else 0, entries=frozenset(list_entries(text)))


def _pair(cubin: Cubin, built: Sequence[_BuiltPtx], used: set[int]) -> list[CompiledUnit]:
    """An image with the PTX of its kernels: the newest it can have come from."""
    kernels = {name.partition("@")[0] for name, function in cubin.functions.items() if function.is_entry}
    fitting = [index for index, one in enumerate(built) if one.sm <= cubin.sm and one.entries and one.entries & kernels]
    newest = max((built[index].sm for index in fitting), default=0)
    chosen = [index for index in fitting if built[index].sm == newest]
    # The same kernels' PTX for older architectures says nothing more.
    used.update(fitting)
    exact = [built[index].text for index in chosen]
    embedded = read_embedded_ptx(cubin) if newest != cubin.sm else ()
    texts: Sequence[str | None] = embedded or exact or (None,)
    return [build_unit(cubin, text, cubin.sm) for text in texts]


def build_unit(cubin: Cubin | None, ptx: str | None, sm: int) -> CompiledUnit:
    """Unit of an image and its PTX; notes say what is missing."""
    notes = [_NO_PTX] if ptx is None else []
    if cubin is not None and not cubin.has_lines:
        notes.append(_NO_LINES)
    producer = _PRODUCER.search(ptx[:_HEAD_CHARACTERS]) if ptx is not None else None
    return CompiledUnit(
        source=None,
        kind=CompilerKind.BUILT,
        compiler=f"CUDA {producer[1]}" if producer else "an existing build",
        compute_capability=divmod(sm, 10),
        ptx=ptx,
        cubin=cubin.image if cubin is not None else None,
        notes=tuple(notes),
    )
