"""Device code that was built before → :class:`~gpa_lsp.execution.compiler.model.CompiledUnit`: nothing is compiled, and no source is needed."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.built_ptx import read_built_ptx
from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerKind
from gpa_lsp.execution.compiler.ptx_files import ChooseEntries, is_ptx_file, list_entries, read_ptx_file
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError

_TARGET = re.compile(r"^[ \t]*+\.target\s+sm_(\d{2,3})", re.MULTILINE)
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
    """The device code in a file that was built.

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
    """All PTX that was built into a file, for every architecture and without images.

    Raises:
        InputError: the file cannot be read, or is damaged.
    """
    return tuple(build_unit(None, one.text, one.sm) for one in map(_describe, read_built_ptx(path)) if one.entries)


def _describe(text: str) -> _BuiltPtx:
    target = _TARGET.search(text)
    return _BuiltPtx(text=text, sm=int(target[1]) if target else 0, entries=frozenset(list_entries(text)))


def _pair(cubin: Cubin, built: Sequence[_BuiltPtx], used: set[int]) -> list[CompiledUnit]:
    """An image with the PTX of its kernels: the newest that it can have come from."""
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
    """An image and its PTX as what a compiler gives; without one of them it says so in its notes."""
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
