"""Kind of an input that is predicted, simulated or timed: :func:`find_kind`."""

from enum import Enum
from pathlib import Path

from gpa_lsp.foundation.errors import InputError

SUFFIXES = (".cu", ".cuh")  # Of sources; of two with one name the first is meant


class InputKind(Enum):
    """Kind of file that holds the code."""

    SOURCE = "source"
    BUILD = "build"  # A program, library, object, fat binary or cubin, or a file of PTX
    REPORT = "report"  # A profile: the code that was measured, with the launches
    TRACE = "trace"  # A folder that ``gpa-lsp predict trace`` wrote


def find_kind(path: Path) -> InputKind:
    """Kind of a path.

    Raises:
        InputError: there is nothing, or something that is none of them.
    """
    if path.suffix.lower() in SUFFIXES:
        return InputKind.SOURCE
    if (path / "trace.json").exists():
        return InputKind.TRACE
    if path.is_dir():
        remedy = f"give a source in it ({', '.join(SUFFIXES)})"
        raise InputError("is a folder without a trace", path=path, remedy=remedy)
    if not path.is_file():
        raise InputError("there is no such file", path=path, remedy=f"give a source ({', '.join(SUFFIXES)})")
    from gpa_lsp.code.binary.containers import recognise_container  # these import numpy, which --help does without
    from gpa_lsp.execution.compiler.ptx_files import is_ptx_file
    from gpa_lsp.profile.read import list_suffixes

    if path.name.lower().endswith(list_suffixes()):
        return InputKind.REPORT
    if recognise_container(path) is None and not is_ptx_file(path):
        message = "is neither a CUDA C++ source, nor compiled device code, nor a report"
        remedy = f"give a file that ends in {', '.join(SUFFIXES)}, an object, library, program, fat binary or cubin, a file of PTX, or a report"
        raise InputError(message, path=path, remedy=remedy)
    return InputKind.BUILD
