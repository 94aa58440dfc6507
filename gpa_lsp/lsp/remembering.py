"""What the history is told about a kernel that was read for the editor."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpa_lsp.history.recording import SourceFile, Surroundings
from gpa_lsp.lsp.session import MeasuredKernel


def describe_surroundings(
    kernel: MeasuredKernel, files: Iterable[SourceFile], *, roots: Sequence[Path], read_ns: int
) -> Surroundings:
    """Where and when a kernel was read.

    Args:
        kernel: as the editor keeps it.
        files: of its profile, as found on this machine.
        roots: workspace folders; texts of files below them are kept.
        read_ns: when the files were read, since 1970.
    """
    found: Mapping[str, SourceFile] = {file.compiled_path: file for file in files}
    caused = {place: causes.caused_samples for place, causes in kernel.causes.items()}
    return Surroundings(
        measured_ns=kernel.measured_ns,
        read_ns=read_ns,
        files=found,
        body=None if kernel.body is None else kernel.body[0],
        roots=tuple(Path(os.path.realpath(root)) for root in roots),
        caused_samples=caused or None,
    )
