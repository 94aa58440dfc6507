"""Process that compiles sources and examines their code, so that it delays no answer."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.model import WarpPattern
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings, list_static_checks
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import describe_request
from gpa_lsp.diagnosis.analyses.static.model import describe_resources
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.static_view import build_static_kernel
from gpa_lsp.editor.static.view import StaticJob, StaticKernel, StaticMark, StaticRequest, StaticResult
from gpa_lsp.execution.compiler.model import CompilerMessage, choose_compile_settings
from gpa_lsp.execution.prediction.static_source import SourceStatics, examine_source
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.foundation.processes.worker import Work
from gpa_lsp.kernel.names import demangle

_MOST_MESSAGES = 200  # One missing brace can make thousands

_MOST_MARKS = 1000


def _warm_up() -> None:
    from gpa_lsp.code.binary import disassembler  # noqa: F401
    from gpa_lsp.code.sources import cuda_declarations  # noqa: F401

    list_static_checks()


def do_job(job: StaticJob) -> StaticResult:
    """Compile a source and look at its code; what cannot be compiled is a result too."""
    started_s = time.process_time()
    try:
        found = examine_source(
            job.path,
            text=job.text,
            compute_capability=job.architecture,
            roots=job.roots,
            settings=choose_compile_settings(job.path, job.roots, job.limit_s),
        )
    except GpaError as error:
        return StaticResult(path=job.path, text=job.text, failure=str(error), seconds=time.process_time() - started_s)
    return make_result(found, text=job.text, seconds=time.process_time() - started_s)


def make_result(found: SourceStatics, *, text: str, seconds: float) -> StaticResult:
    """Make the result that the server keeps."""
    unit = found.unit
    messages = tuple(_drop_own_path(one, found.path) for one in unit.messages[:_MOST_MESSAGES])
    remarks = [*unit.notes, *(str(problem) for problem in found.problems)]
    if len(unit.messages) > _MOST_MESSAGES:
        remarks.append(
            f"{format_count(len(unit.messages) - _MOST_MESSAGES)} more messages of the compiler are left out"
        )
    return StaticResult(
        path=found.path,
        text=text,
        compiler=unit.compiler,
        has_failed=unit.has_failed,
        has_flags=found.flags is not None,
        messages=messages,
        kernels=tuple(_make_kernel(one, found) for one in found.kernels),
        marks=tuple(_make_marks(found)),
        requests=tuple(_make_requests(found)),
        seconds=seconds,
        remarks=tuple(remarks),
    )


def _drop_own_path(message: CompilerMessage, source: Path) -> CompilerMessage:
    is_here = message.path is not None and os.path.realpath(message.path) == os.path.realpath(source)
    return replace(message, path=None) if is_here else message


def _make_kernel(kernel: KernelFindings, found: SourceStatics) -> StaticKernel:
    statics, place = kernel.statics, kernel.place
    return StaticKernel(
        mangled_name=statics.mangled_name,
        name=demangle(statics.mangled_name),
        line=place.line if place is not None and place.file == str(found.path) else None,
        words=describe_resources(statics),
        page="\n".join(write_markdown([build_static_kernel(kernel, found.unit.compiler)], level=1)),
    )


def _make_marks(found: SourceStatics) -> Iterator[StaticMark]:
    """One per line, check and message, whichever instantiations it is in; the weightiest come first."""
    merged: dict[tuple[object, ...], tuple[StaticMark, list[str]]] = {}
    findings = sorted((one for kernel in found.kernels for one in kernel.findings), key=lambda one: -one.weight)
    for finding in findings:
        mark = _make_mark(finding, str(found.path))
        if mark is None:
            continue
        key = (mark.line, mark.check, mark.message, mark.origin)
        _, kernels = merged.setdefault(key, (mark, []))
        if finding.kernel not in kernels:
            kernels.append(finding.kernel)
    for mark, kernels in list(merged.values())[:_MOST_MARKS]:
        yield replace(mark, kernels=tuple(kernels))


def _make_mark(finding: StaticFinding, source: str) -> StaticMark | None:
    """Mark on the innermost line of the source that the finding's code came through; None where it came through none."""
    line, origin = finding.line, None
    if finding.file != source:
        frame = find_frame_in(finding.chain, source.__eq__)
        if frame is None:
            return None
        line = frame.line
        origin = (finding.file, finding.line) if finding.file is not None and finding.line else None
    if line is None:
        return None
    return StaticMark(
        line=line,
        check=finding.check,
        message=finding.message,
        remedy=finding.remedy,
        certainty=finding.certainty.value,
        is_in_loop=finding.loop_depth > 0,
        is_costly=finding.is_costly,
        kernels=(finding.kernel,),
        origin=origin,
    )


def _make_requests(found: SourceStatics) -> Iterator[StaticRequest]:
    """One per line and words, whichever instantiations it is in."""
    merged: dict[tuple[int, str], dict[str, None]] = {}
    for kernel in found.kernels:
        for access in () if kernel.warps is None else kernel.warps.found.accesses:
            frame = find_frame_in(access.instruction.chain, str(found.path).__eq__)
            if frame is not None and kernel.warps is not None and access.pattern is not WarpPattern.UNKNOWN:
                key = (frame.line, describe_request(kernel.warps, access))
                merged.setdefault(key, {})[kernel.statics.mangled_name] = None
    for (line, words), kernels in sorted(merged.items())[:_MOST_MARKS]:
        yield StaticRequest(line=line, words=words, kernels=tuple(kernels))


def _explain(job: StaticJob, reason: str) -> StaticResult:
    return StaticResult(path=job.path, text=job.text, failure=f"{job.path}: {reason}")


WORK = Work(do=lambda job, tell: do_job(job), prepare=_warm_up, explain=_explain)
