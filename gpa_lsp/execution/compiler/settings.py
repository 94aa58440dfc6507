"""How a source is compiled, apart from its own flags."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct


class CompilerChoice(StrEnum):
    """Which compiler is taken; the values are those of the setting."""

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
# Where neither caller nor command says one: the oldest that all compilers since CUDA 11 know and whose models here are complete
DEFAULT_COMPUTE_CAPABILITY = (8, 0)
