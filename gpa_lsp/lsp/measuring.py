"""From a report to what the server keeps of it. Runs in the worker process, so that nothing of it delays an answer."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gpa_lsp.locations import Frame, InlineChain
from gpa_lsp.lsp.causes import find_causes, find_remedies
from gpa_lsp.lsp.session import MeasuredFile, MeasuredKernel
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.model import InstructionColumns, KernelReport, Report
from gpa_lsp.report.source_paths import SourceLocator

_HOTTEST_PER_LINE = 5
_MAX_SOURCE_BYTES = 8 << 20


def find_files(report: Report, locator: SourceLocator, profile_modified_ns: int) -> tuple[MeasuredFile, ...]:
    """The sources of a report that this machine has, by path as compiled.

    Args:
        report: of one profile.
        locator: finds files here.
        profile_modified_ns: stands in for the time of measuring where the report does not say it.
    """
    texts: dict[str, str | None] = {}
    measured_ns: dict[str, int] = {}
    for kernel in report.kernels:
        for compiled_path in _list_files(kernel):
            texts[compiled_path] = texts.get(compiled_path) or kernel.embedded_sources.get(compiled_path)
            measured_ns[compiled_path] = max(measured_ns.get(compiled_path, 0), _read_time(kernel, profile_modified_ns))
    found = (_find_file(path, text, measured_ns[path], locator) for path, text in sorted(texts.items()))
    return tuple(file for file in found if file is not None)


def _list_files(kernel: KernelReport) -> set[str]:
    return {row.file for row in kernel.lines if row.file is not None}


def _read_time(kernel: KernelReport, profile_modified_ns: int) -> int:
    return profile_modified_ns if kernel.measured_unix_s is None else kernel.measured_unix_s * 1_000_000_000


def _find_file(compiled_path: str, text: str | None, measured_ns: int, locator: SourceLocator) -> MeasuredFile | None:
    local_path = locator.locate(compiled_path, text)
    if local_path is None:
        return None
    if text is not None:
        lines: tuple[str, ...] | None = split_lines(text)
        saved_since = False
    else:
        lines, modified_ns = _read_source(local_path)
        saved_since = modified_ns > measured_ns
    return MeasuredFile(
        compiled_path=compiled_path,
        local_path=os.path.realpath(local_path),
        lines=lines,
        saved_since=saved_since,
    )


def _read_source(path: Path) -> tuple[tuple[str, ...] | None, int]:
    """A file's lines and its modification time in ns; (None, 0) when it cannot be read or is too large to be source."""
    try:
        status = path.stat()
        if status.st_size > _MAX_SOURCE_BYTES:
            return None, 0
        return split_lines(path.read_bytes().decode("utf-8", errors="replace")), status.st_mtime_ns
    except OSError:
        return None, 0


def measure_kernel(kernel: KernelReport, profile_modified_ns: int) -> MeasuredKernel:
    """What the server keeps of a kernel."""
    slim = replace(kernel, embedded_sources={}, instructions=_share_frames(kernel.instructions))
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
