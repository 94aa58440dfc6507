"""What compiling gives: :class:`CompiledUnit`."""

from enum import StrEnum
from pathlib import Path

from gpa_lsp.basis.errors import ProblemSeverity
from gpa_lsp.basis.lazy_dataclass import dataclass


class CompilerKind(StrEnum):
    """What made the code; the values are words for people."""

    NVRTC = "NVRTC"
    NVCC = "nvcc"
    BUILT = "an existing build"
    """Nothing was compiled: PTX and cubin come out of an object, library or program that was built before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerMessage:
    """One thing a compiler says of a source.

    Attributes:
        severity: error, warning or note (remark).
        text: what it says, without place and severity.
        path: the file it is about, as the compiler names it; None when it names none.
        line: 1-based; None when it names none.
        column: 1-based, in characters; None when it names none.
        number: the compiler's own number of the message, e.g. ``20``; None when it gives none.
    """

    severity: ProblemSeverity
    text: str
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    number: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerFlags:
    """The part of a compile command that decides what device code says. Nothing here can run a program or write a file.

    Attributes:
        directory: relative paths in the flags are relative to it.
        includes: folders searched for headers, in order.
        system_includes: folders searched after ``includes``, in order.
        forced_includes: headers read before the source.
        macros: ``NAME``, ``NAME=VALUE`` as after ``-D``; ``-NAME`` for one undefined by ``-U``; in the order of the command.
        standard: e.g. ``c++17``; None for the compiler's default.
        optimisation: device optimisation flags kept as they are (``--use_fast_math``, ``-maxrregcount=64``, ``--fmad=false`` …).
        language: language flags kept as they are (``--extended-lambda``, ``--expt-relaxed-constexpr``, ``-rdc=true`` …).
        compute_capabilities: that the command asks for, ascending; empty when it names none.
        architectures: names among them that say more than a number, e.g. ``sm_90a``.
        dropped: words of the command that were left out because they decide nothing here or are not allowed, for the log.
        origin: where the flags come from, for people, e.g. ``build/compile_commands.json``; empty when somebody gave them.
        doubts: of these flags, one sentence each ("no compile command names this file; the flags are those of …").
    """

    directory: Path
    includes: tuple[Path, ...] = ()
    system_includes: tuple[Path, ...] = ()
    forced_includes: tuple[Path, ...] = ()
    macros: tuple[str, ...] = ()
    standard: str | None = None
    optimisation: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    compute_capabilities: tuple[tuple[int, int], ...] = ()
    architectures: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    origin: str = ""
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledUnit:
    """Device code of one source for one architecture.

    Attributes:
        source: the file whose text was compiled; None for an existing build.
        kind: what made the code.
        compiler: name and version for people, e.g. ``NVRTC 13.0``.
        compute_capability: it was compiled for.
        ptx: the PTX text; None when there is none (an existing build without PTX).
        cubin: the device image; None when there is none.
        messages: warnings and notes of a compilation that went well, errors of one that failed (then ``ptx`` and ``cubin`` are None).
        is_host_left_out: True when host functions were blanked out so that a device-only compiler could read the file.
        seconds: wall time of the compiler.
        notes: doubts a reader must know, one sentence each ("include flags are unknown: no compile_commands.json names this file").
    """

    source: Path | None
    kind: CompilerKind
    compiler: str
    compute_capability: tuple[int, int]
    ptx: str | None
    cubin: bytes | None
    messages: tuple[CompilerMessage, ...] = ()
    is_host_left_out: bool = False
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """The compiler gave no code."""
        return self.ptx is None and self.cubin is None
