"""From a report to what the server keeps of it. Runs in the worker process, so that nothing of it delays an answer."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpa_lsp.binary.source_stamps import SourceStamp
from gpa_lsp.errors import InputError
from gpa_lsp.locations import Frame, InlineChain
from gpa_lsp.lsp.causes import find_causes, find_remedies
from gpa_lsp.lsp.discovery import make_stamp
from gpa_lsp.lsp.session import MeasuredFile, MeasuredKernel
from gpa_lsp.profile.opening import open_regular_file
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.model import InstructionColumns, KernelReport, Report
from gpa_lsp.report.profiled_sources import is_as_compiled
from gpa_lsp.report.source_paths import SourceLocator

_HOTTEST_PER_LINE = 5
_MAX_SOURCE_BYTES = 8 << 20


FindCopy = Callable[[str, int], Sequence[str] | None]
"""(local path, time of measuring in ns since 1970) → the lines of the source at that time, where somebody kept them."""


def forget_copies(local_path: str, measured_ns: int) -> None:
    """For who keeps no texts."""
    del local_path, measured_ns


def find_files(
    report: Report, locator: SourceLocator, profile_modified_ns: int, find_copy: FindCopy = forget_copies
) -> tuple[MeasuredFile, ...]:
    """The sources of a report that this machine has, by path as compiled.

    Args:
        report: of one profile.
        locator: finds files here.
        profile_modified_ns: stands in for the time of measuring where the report does not say it.
        find_copy: knows texts of earlier.
    """
    sources: dict[str, _Source] = {}
    for kernel in report.kernels:
        measured_ns = _read_time(kernel, profile_modified_ns)
        for compiled_path in _list_files(kernel):
            known = sources.setdefault(compiled_path, _Source())
            known.text = known.text if known.text is not None else kernel.embedded_sources.get(compiled_path)
            known.stamp = known.stamp or kernel.source_stamps.get(compiled_path)
            known.measured_ns = max(known.measured_ns, measured_ns)
    found = (_find_file(path, source, locator, find_copy) for path, source in sorted(sources.items()))
    return tuple(file for file in found if file is not None)


@dataclass(slots=True)
class _Source:
    """What a profile says of a source.

    Attributes:
        text: its own copy.
        stamp: what the compiler saw.
        measured_ns: when the last of its kernels was measured.
    """

    text: str | None = None
    stamp: SourceStamp | None = None
    measured_ns: int = 0


def _list_files(kernel: KernelReport) -> set[str]:
    return {row.file for row in kernel.lines if row.file is not None}


def _read_time(kernel: KernelReport, profile_modified_ns: int) -> int:
    return profile_modified_ns if kernel.measured_unix_s is None else kernel.measured_unix_s * 1_000_000_000


def _find_file(compiled_path: str, source: _Source, locator: SourceLocator, find_copy: FindCopy) -> MeasuredFile | None:
    local_path = locator.locate(compiled_path, source.text)
    may_read = local_path is not None
    local_path = local_path or locator.locate_outside(compiled_path)
    if local_path is None:
        return None
    real_path = os.path.realpath(local_path)
    status = _read_status(local_path)
    if status is None:
        return None
    lines = split_lines(source.text) if source.text is not None else find_copy(real_path, source.measured_ns)
    is_copy = lines is not None
    if lines is None and may_read:
        lines = _read_source(local_path, status)
    return MeasuredFile(
        compiled_path=compiled_path,
        local_path=real_path,
        lines=None if lines is None else tuple(lines),
        saved_since=not is_copy and status.st_mtime_ns > source.measured_ns,
        is_verified=is_copy or is_as_compiled(status, source.measured_ns, source.stamp),
        stamp=make_stamp(status),
        is_outside=not may_read,
    )


def _read_status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _read_source(path: Path, status: os.stat_result) -> tuple[str, ...] | None:
    """A file's lines; None when it cannot be read or is too large to be source."""
    try:
        if status.st_size > _MAX_SOURCE_BYTES:
            return None
        stream, _ = open_regular_file(path)
        with stream:
            return split_lines(stream.read(_MAX_SOURCE_BYTES).decode("utf-8", errors="replace"))
    except (OSError, InputError):
        return None


def measure_kernel(kernel: KernelReport, profile_modified_ns: int) -> MeasuredKernel:
    """What the server keeps of a kernel."""
    slim = replace(kernel, embedded_sources={}, source_stamps={}, instructions=_share_frames(kernel.instructions))
    return MeasuredKernel(
        report=slim,
        measured_ns=_read_time(kernel, profile_modified_ns),
        hottest=find_hottest(kernel.instructions),
        body=find_body(kernel),
        causes=find_causes(kernel),
        remedies=find_remedies(kernel),
    )


def find_hottest(instructions: InstructionColumns) -> dict[tuple[str, int], tuple[int, ...]]:
    """(file, line) → the sampled instructions with that line anywhere in their inline chain, most samples first, a few at most."""
    samples = instructions.all_samples.sum(axis=1)
    hottest: dict[tuple[str, int], list[int]] = {}
    for index in (-samples).argsort(kind="stable"):
        chain_index = int(instructions.chain_index[index])
        if samples[index] == 0 or chain_index < 0:
            continue
        for place in {(frame.file, frame.line) for frame in instructions.chains[chain_index]}:
            found = hottest.setdefault(place, [])
            if len(found) < _HOTTEST_PER_LINE:
                found.append(int(index))
    return {place: tuple(found) for place, found in hottest.items()}


def find_body(kernel: KernelReport) -> tuple[str, tuple[int, ...]] | None:
    """The lines of the kernel's own body: of the outermost frames of its instructions, in the file most of them are in."""
    columns = kernel.instructions
    if kernel.mangled_name not in columns.functions:
        return None
    own = columns.function_index == columns.functions.index(kernel.mangled_name)
    chains = set(columns.chain_index[own & (columns.chain_index >= 0)].tolist())
    outermost = [columns.chains[chain][-1] for chain in chains]
    places = [(frame.file, frame.line) for frame in outermost if frame.line > 0]
    if not places:
        return None
    ((file, _),) = Counter(file for file, _ in places).most_common(1)
    return file, tuple(sorted({line for place_file, line in places if place_file == file}))


def _share_frames(instructions: InstructionColumns) -> InstructionColumns:
    """The same columns with equal frames being one object: a tenth of the bytes in the pipe, and of the time to unpickle them."""
    known: dict[Frame, Frame] = {}
    return replace(instructions, chains=tuple(_share_chains(instructions.chains, known)))


def _share_chains(chains: Iterable[InlineChain], known: dict[Frame, Frame]) -> Iterable[InlineChain]:
    for chain in chains:
        yield tuple(known.setdefault(frame, frame) for frame in chain)
