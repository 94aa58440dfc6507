"""What went wrong in the program that was measured, for people."""

from collections.abc import Iterable, Iterator, Sequence

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import format_bytes, format_count_of
from gpa_lsp.profile.collector.records import CollectedProcess, Trouble, TroubleKind

_FORBIDDEN = frozenset({35, 40})  # CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and the same on a virtual GPU
# CUPTI_ERROR_NOT_SUPPORTED, VIRTUALIZED_DEVICE_NOT_SUPPORTED, OLD_PROFILER_API_INITIALIZED, LEGACY_PROFILER_NOT_SUPPORTED
_UNSUPPORTED = frozenset({27, 33, 36, 38})
_ALREADY_SUBSCRIBED = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
_NOT_FOUND = "libcupti.so"


def is_forbidden(processes: Iterable[CollectedProcess]) -> bool:
    """Whether the driver did not let us sample."""
    troubles = (trouble for process in processes for trouble in process.troubles)
    return any(
        trouble.kind in (TroubleKind.ENABLE, TroubleKind.CONFIGURE) and trouble.number in _FORBIDDEN
        for trouble in troubles
    )


def is_buffer_full(processes: Iterable[CollectedProcess]) -> bool:
    """Whether samples were lost because a buffer of the GPU ran full."""
    return any(trouble.kind is TroubleKind.BUFFER_FULL for process in processes for trouble in process.troubles)


def describe_troubles(processes: Sequence[CollectedProcess]) -> list[Problem]:
    """Each trouble once, whatever number of processes had it; and what ended too soon."""
    troubles = dict.fromkeys(trouble for process in processes for trouble in process.troubles)
    found = [_describe(trouble) for trouble in troubles]
    return list(dict.fromkeys([*found, *_describe_ends(processes)]))


def _describe_ends(processes: Sequence[CollectedProcess]) -> Iterator[Problem]:
    for process in processes:
        if process.lost_bytes:
            message = f"process {process.process_id} was ended in the middle of a record; {format_bytes(process.lost_bytes)} are left out"
            yield Problem(severity=ProblemSeverity.NOTE, message=message)
        elif not process.is_complete and not any(
            one.kind in (TroubleKind.SUBSCRIBER, TroubleKind.NO_CUPTI) for one in process.troubles
        ):
            message = f"process {process.process_id} did not end by itself; its last tenth of a second may be missing"
            yield Problem(severity=ProblemSeverity.NOTE, message=message)


def _describe(trouble: Trouble) -> Problem:
    number = trouble.number
    if trouble.kind in (TroubleKind.NO_CUPTI, TroubleKind.SUBSCRIBER):
        return _describe_start(trouble)
    if trouble.kind in (TroubleKind.ENABLE, TroubleKind.CONFIGURE):
        return _describe_refusal(trouble)
    if trouble.kind is TroubleKind.BUFFER_FULL:
        message = "the GPU's buffer for samples ran full; sampling began again, and the samples in between are lost"
        return _warn(message, "take fewer samples (--sampling-interval), or measure a shorter part of the program")
    if trouble.kind is TroubleKind.ROWS:
        message = (
            "what is written of a run was as large as it may become, or the disk was full; what came later is missing"
        )
        return _warn(message, "measure a shorter part of the program, or make room in the cache folder")
    if trouble.kind is TroubleKind.PATHS:
        return _warn(
            "launches come from more places than are told apart; of some the calling context is not known", None
        )
    if trouble.kind is TroubleKind.DRAIN and trouble.where == "contexts":
        return _warn(
            f"of more than {number} contexts at once the first are sampled; launches in the others were timed", None
        )
    if trouble.kind is TroubleKind.ACTIVITY and trouble.where == "dropped":
        return _warn(f"CUPTI dropped the times of {format_count_of(number, 'kernel')}", None)
    return _warn(f"{trouble.where or 'the collector'} failed (error {number}); some samples or times are missing", None)


def _describe_start(trouble: Trouble) -> Problem:
    number = trouble.number
    if trouble.kind is TroubleKind.NO_CUPTI:
        what = "no CUPTI was found" if trouble.where == _NOT_FOUND else f"CUPTI, or the driver, lacks {trouble.where}"
        return _fail(
            f"nothing was measured: {what}", "pip install 'gpa-lsp[cupti]' of the release of CUDA that the program uses"
        )
    if number != _ALREADY_SUBSCRIBED:
        message = f"nothing was measured: CUPTI did not start (its error {number})"
        return _fail(message, "name a CUPTI that is no newer than the driver in GPA_LSP_CUPTI")
    message = f"nothing was measured: another profiler is at work in the program (CUPTI's error {number}), and CUPTI serves one"
    return _fail(message, "switch it off: torch.profiler, Proton, Nsight Systems")


def _describe_refusal(trouble: Trouble) -> Problem:
    if trouble.number in _FORBIDDEN:
        message = (
            "the driver lets only administrators read the GPU's performance counters: kernels were timed, not sampled"
        )
        return _warn(
            message, "gpa-lsp profile says how it is allowed; timing, emulation and simulation need no permission"
        )
    if trouble.number in _UNSUPPORTED:
        message = f"CUPTI cannot sample here (error {trouble.number}): kernels were timed, not sampled"
        return _warn(
            message, "MPS, MIG, WSL, virtual GPUs and programs that use an older profiling interface are not supported"
        )
    message = f"{trouble.where} failed with CUPTI's error {trouble.number}: kernels were timed, not sampled"
    return _warn(message, "end other profilers on this GPU, or name another CUPTI in GPA_LSP_CUPTI")


def _fail(message: str, remedy: str) -> Problem:
    return Problem(severity=ProblemSeverity.ERROR, message=message, remedy=remedy)


def _warn(message: str, remedy: str | None) -> Problem:
    return Problem(severity=ProblemSeverity.WARNING, message=message, remedy=remedy)
