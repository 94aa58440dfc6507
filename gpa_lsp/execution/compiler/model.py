"""Results and settings of compilations: :class:`CompiledUnit`, :class:`CompilerFlags`, :class:`CompileSettings`."""

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import ProblemSeverity


class CompilerKind(StrEnum):
    """Origin of the code; the values are words for people."""

    NVRTC = "NVRTC"
    NVCC = "nvcc"
    # Nothing was compiled: PTX and cubin come out of an object, library or program that was built before
    BUILT = "an existing build"


class CompilerMessage(Struct, frozen=True, kw_only=True):
    """A compiler's message about a source."""

    severity: ProblemSeverity  # error, warning or note (remark)
    text: str  # what it says, without place and severity
    path: Path | None = None  # the file it is about, as the compiler names it; None when it names none
    line: int | None = None  # 1-based; None when it names none
    column: int | None = None  # 1-based, in characters; None when it names none
    number: str | None = None  # the compiler's own number of the message, e.g. ``20``; None when it gives none.


class CompilerFlags(Struct, frozen=True, kw_only=True):
    """Flags of a compile command that affect device code. None can run a program or write a file."""

    directory: Path  # relative paths in the flags are relative to it
    includes: tuple[Path, ...] = ()  # folders searched for headers, in order
    system_includes: tuple[Path, ...] = ()  # folders searched after ``includes``, in order
    forced_includes: tuple[Path, ...] = ()  # headers read before the source
    # ``NAME``, ``NAME=VALUE`` as after ``-D``; ``-NAME`` for one undefined by ``-U``; in the order of the command
    macros: tuple[str, ...] = ()
    standard: str | None = None  # e.g. ``c++17``; None for the compiler's default.
    # device optimisation flags kept as they are (``--use_fast_math``, ``-maxrregcount=64``, ``--fmad=false`` …)
    optimisation: tuple[str, ...] = ()
    # language flags kept as they are (``--extended-lambda``, ``--expt-relaxed-constexpr``, ``-rdc=true`` …)
    language: tuple[str, ...] = ()
    # that the command asks for, ascending; empty when it names none
    compute_capabilities: tuple[tuple[int, int], ...] = ()
    architectures: tuple[str, ...] = ()  # names among them that say more than a number, e.g. ``sm_90a``.
    # words of the command that were left out because they decide nothing here or are not allowed, for the log
    dropped: tuple[str, ...] = ()
    # where the flags come from, for people, e.g. ``build/compile_commands.json``; empty when somebody gave them.
    origin: str = ""
    # of these flags, one sentence each ("no compile command names this file; the flags are those of …")
    doubts: tuple[str, ...] = ()


class CompiledUnit(Struct, frozen=True, kw_only=True):
    """Device code of one source for one architecture."""

    source: Path | None  # the file whose text was compiled; None for an existing build
    kind: CompilerKind  # what made the code
    compiler: str  # name and version for people, e.g. ``NVRTC 13.0``.
    compute_capability: tuple[int, int]  # it was compiled for
    ptx: str | None  # the PTX text; None when there is none (an existing build without PTX)
    cubin: bytes | None  # the device image; None when there is none
    # warnings and notes of a compilation that went well, errors of one that failed (then ``ptx`` and ``cubin`` are None)
    messages: tuple[CompilerMessage, ...] = ()
    # True when host functions were blanked out so that a device-only compiler could read the file
    is_host_left_out: bool = False
    seconds: float = 0.0  # wall time of the compiler
    # doubts a reader must know, one sentence each ("include flags are unknown: no compile_commands.json names this file")
    notes: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """The compiler gave no code."""
        return self.ptx is None and self.cubin is None


class CompilerChoice(StrEnum):
    """Compiler to use; the values are those of the setting."""

    # NVRTC for sources of device code alone; nvcc for those with host code, where it and a host compiler are installed
    AUTOMATIC = "automatic"
    NVRTC = "nvrtc"  # Always NVRTC; host code is left out
    NVCC = "nvcc"  # Always nvcc


class CompileSettings(Struct, frozen=True, kw_only=True):
    """Limits and choices."""

    choice: CompilerChoice = CompilerChoice.AUTOMATIC  # of the compiler
    limit_s: float = 60.0  # seconds of processor time a compiler may take; it is ended then
    memory_limit_bytes: int = 8 << 30  # address space of each process of nvcc
    # folder whose programs are never run, whatever ``PATH`` says; None for the source's own folder
    workspace: Path | None = None
    keeps_units: bool = True  # what was compiled before is given again while nothing it depends on has changed


DEFAULT_SETTINGS = CompileSettings()


def choose_compile_settings(source: Path, roots: Iterable[Path], limit_s: float) -> CompileSettings:
    """Settings for a file; its workspace is the innermost of some folders that holds it."""
    around = [root for root in roots if source.is_relative_to(root)]
    return CompileSettings(limit_s=limit_s, workspace=max(around, key=lambda root: len(root.parts), default=None))


# Where neither caller nor command says one: the oldest that all compilers since CUDA 11 know and whose models here are complete
DEFAULT_COMPUTE_CAPABILITY = (8, 0)

_NAME = re.compile(r"\b(?:sm|compute|lto)_(\d{2,3})([af])?\b")
_OLDEST, _NEWEST = 30, 299


def read_architectures(values: Iterable[str]) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Architectures that ``-arch``, ``-code`` and ``-gencode`` values ask for.

    Returns:
        The compute capabilities, ascending, and the names that say more than a number (``sm_90a``: instructions of that one architecture).
        Machine code counts; PTX (``compute_…``) only where no machine code is asked for.

    >>> read_architectures(["arch=compute_75,code=[sm_75,compute_75]", "sm_90a"])
    (((7, 5), (9, 0)), ('sm_90a',))
    >>> read_architectures(["compute_80"])
    (((8, 0),), ())
    """
    machine: dict[int, str] = {}
    virtual: dict[int, str] = {}
    for value in values:
        for found in _NAME.finditer(value):
            number = int(found[1])
            if _OLDEST <= number <= _NEWEST:
                kept = virtual if found.group().startswith("compute") else machine
                kept[number] = max(kept.get(number, ""), found[2] or "")
    chosen = machine or virtual
    capabilities = tuple(divmod(number, 10) for number in sorted(chosen))
    return capabilities, tuple(f"sm_{number}{letter}" for number, letter in sorted(chosen.items()) if letter)


def name_target(capability: tuple[int, int], architectures: tuple[str, ...] = ()) -> str:
    """Compiler's name of an architecture.

    >>> name_target((8, 6)), name_target((9, 0), ("sm_90a",))
    ('sm_86', 'sm_90a')
    """
    plain = f"sm_{capability[0]}{capability[1]}"
    return next((name for name in architectures if name.rstrip("af") == plain), plain)
