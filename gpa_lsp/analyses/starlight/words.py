"""Rates, intensities and places in the sentences of this analysis."""

from gpa_lsp.analyses.starlight.counting import LineSamples
from gpa_lsp.device.model import OperationKind

_MOST_NAME = 40
"""Characters of a mangled name."""

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def say_rate(rate_per_s: float, kind: OperationKind) -> str:
    """Operations per second with three digits.

    >>> say_rate(1.2345e12, OperationKind.FP32), say_rate(8e8, OperationKind.INT32), say_rate(0, OperationKind.FP64)
    ('1.23 TFLOP/s', '800 MIOP/s', '0 FLOP/s')
    """
    unit = f"{kind.operation}/s"
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(rate_per_s) >= size), (1.0, ""))
    return f"{_shorten(rate_per_s / size)} {prefix}{unit}"


def say_intensity(intensity: float, kind: OperationKind) -> str:
    """Operations per byte with three digits.

    >>> say_intensity(0.8765, OperationKind.FP32), say_intensity(1234.5, OperationKind.INT32)
    ('0.876 FLOP/B', '1234 IOP/B')
    """
    return f"{_shorten(intensity)} {kind.operation}/B"


def say_place(line: LineSamples) -> str:
    """``file.cu:12`` without folders; for an instruction without a line its offset, and its function where that is not the kernel."""
    if line.line is not None:
        name = line.line.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name}:{line.line.line}"
    function = "" if line.is_own else f" of {line.function[:_MOST_NAME]}"
    return f"instruction {line.pc_offset:#x}{function}"


def _shorten(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
