"""The device code of a source that has host code too, by NVRTC: for machines without nvcc or a host compiler.

Host functions are overwritten with blanks (:mod:`gpa_lsp.compiler.host_code`), kernel templates are instantiated as the host code launches them
(:mod:`gpa_lsp.compiler.launches`). What the compiler then still complains of and is not marked as device code — member functions for the host,
types with members of the C++ library, headers that are not there — is left out as well, a few times over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpa_lsp.compiler.host_code import HostCode, blank_out, find_host_code, find_removable
from gpa_lsp.compiler.job import CompileJob
from gpa_lsp.compiler.launches import Instantiations, find_instantiations
from gpa_lsp.compiler.missing_headers import find_missing_header
from gpa_lsp.compiler.model import CompiledUnit
from gpa_lsp.compiler.nvrtc import NAME_MAP, DeviceText, compile_with_nvrtc
from gpa_lsp.errors import ProblemSeverity

_MOST_ROUNDS = 5
HOST_LEFT_OUT = "host code was left out"


@dataclass(slots=True)
class _Attempt:
    """What is compiled, and what has been left out of it so far."""

    spans: list[tuple[int, int]]
    expressions: list[str]
    empty_headers: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    removed_lines: list[int] = field(default_factory=list)


def compile_device_part(job: CompileJob, host: HostCode | None = None) -> CompiledUnit:
    """Compile what NVRTC can of a source.

    Args:
        job: what.
        host: its host code, where it was looked for already.

    Returns:
        The unit; its notes say what was left out. Where there are errors in device code, those of the first attempt.

    Raises:
        MissingToolError: NVRTC is not installed.
        ToolError: it crashed, did not end in time, or was cancelled.
        UnsupportedInputError: this NVRTC does not know the architecture.
    """
    host = host or find_host_code(job.content, job.headers)
    if host is None:
        unit = compile_with_nvrtc(job)
        return replace(
            unit,
            notes=(
                *unit.notes,
                "the source is too large to tell host code from device code; all of it was compiled as device code",
            ),
        )
    asked = find_instantiations(host.tree)
    attempt = _Attempt(spans=list(host.spans), expressions=list(asked.expressions))
    first = unit = _compile(job, host, attempt)
    seconds = unit.seconds
    for _ in range(_MOST_ROUNDS):
        if not unit.has_failed or not _leave_out_more(job, host, attempt, unit):
            break
        unit = _compile(job, host, attempt)
        seconds += unit.seconds
    if unit.has_failed:
        return replace(first, seconds=seconds, notes=tuple(_write_notes(host, asked, None)))
    return replace(unit, seconds=seconds, notes=tuple(_write_notes(host, asked, attempt)))


def _compile(job: CompileJob, host: HostCode, attempt: _Attempt) -> CompiledUnit:
    text = DeviceText(
        content=blank_out(job.content, _merge(attempt.spans)),
        expressions=tuple(attempt.expressions),
        empty_headers=tuple(attempt.empty_headers),
        is_host_left_out=host.has_host,
    )
    return compile_with_nvrtc(job, text)


def _merge(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _leave_out_more(job: CompileJob, host: HostCode, attempt: _Attempt, unit: CompiledUnit) -> bool:
    """Leave out what the errors of an attempt are about, where it is no device code; False when there is nothing of that kind."""
    has_changed = False
    for message in unit.messages:
        if message.severity is not ProblemSeverity.ERROR:
            continue
        if message.path is not None and message.path.name == NAME_MAP:
            has_changed |= _drop_expression(attempt, message.text, message.line)
            continue
        header = find_missing_header(message.text)
        if header is not None and header not in attempt.empty_headers and not _is_own(job, header):
            attempt.empty_headers.append(header)
            has_changed = True
            continue
        is_here = message.path == job.path and message.line is not None
        span = find_removable(host, message.line or 0, message.column) if is_here else None
        if span is not None and not any(start <= span[0] and span[1] <= end for start, end in attempt.spans):
            attempt.spans.append(span)
            attempt.removed_lines.append(message.line or 0)
            has_changed = True
    return has_changed


def _is_own(job: CompileJob, name: str) -> bool:
    """A header is included in quotes: it is the project's own, and missing it is an error and no matter of the host's libraries."""
    quoted = f'"{name}"'.encode()
    return any(quoted in text for text in (job.content, *job.headers))


def _drop_expression(attempt: _Attempt, text: str, line: int | None) -> bool:
    """An instantiation the compiler refuses; where it does not say which, all of them."""
    squeezed = text.replace(" ", "")
    refused = [one for one in attempt.expressions if f'"{one.replace(" ", "")}"' in squeezed]
    if not refused and "Error in parsing name expression" not in text:
        return False
    for one in refused or list(attempt.expressions):
        attempt.expressions.remove(one)
        attempt.refused.append(one)
    return True


def _write_notes(host: HostCode, asked: Instantiations, attempt: _Attempt | None) -> list[str]:
    notes = []
    if host.has_host:
        notes.append(f"{HOST_LEFT_OUT}: NVRTC compiles device code alone")
    if attempt is not None and attempt.empty_headers:
        notes.append(f"headers that were not found were taken as empty: {', '.join(attempt.empty_headers[:5])}")
    if attempt is not None and attempt.removed_lines:
        lines = ", ".join(map(str, sorted(set(attempt.removed_lines))[:8]))
        notes.append(f"what only host code can use was left out on lines {lines}")
    notes += [
        f"{name} is a template, and no launch in this file says with which arguments; it was not compiled"
        for name in asked.untold[:5]
    ]
    refused = attempt.refused[:5] if attempt is not None else ()
    return [*notes, *(f"{one} could not be compiled from this file alone" for one in refused)]
