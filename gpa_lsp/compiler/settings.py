"""How a source is compiled, apart from its own flags."""

from enum import StrEnum
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass


class CompilerChoice(StrEnum):
    """Which compiler is taken; the values are those of the setting."""

    AUTOMATIC = "automatic"
    """NVRTC for sources of device code alone; nvcc for those with host code, where it and a host compiler are installed."""
    NVRTC = "nvrtc"
    """Always NVRTC; host code is left out."""
    NVCC = "nvcc"
    """Always nvcc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSettings:
    """Limits and choices.

    Attributes:
        choice: of the compiler.
        limit_s: seconds of processor time a compiler may take; it is ended then.
        memory_limit_bytes: address space of each process of nvcc.
        workspace: folder whose programs are never run, whatever ``PATH`` says; None for the source's own folder.
        keeps_units: what was compiled before is given again while nothing it depends on has changed.
    """

    choice: CompilerChoice = CompilerChoice.AUTOMATIC
    limit_s: float = 60.0
    memory_limit_bytes: int = 8 << 30
    workspace: Path | None = None
    keeps_units: bool = True


DEFAULT_SETTINGS = CompileSettings()
DEFAULT_COMPUTE_CAPABILITY = (8, 0)
"""Where neither caller nor command says one: the oldest that all compilers since CUDA 11 know and whose models here are complete."""
