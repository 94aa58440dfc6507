"""One launch more of what was timed, with the collector in the process that makes it: :func:`sample_launches`. Times stay those that were taken
without it."""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.execution.local_gpu.sampled_launches import LAUNCHES
from gpa_lsp.execution.prediction.launch_timing import LaunchTimings, make_document
from gpa_lsp.foundation.errors import GpaError, Problem, ProblemSeverity
from gpa_lsp.foundation.packed_records import pack_records
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, Ending
from gpa_lsp.foundation.whole_files import atomic_write
from gpa_lsp.profile.collector.choosing import Selection
from gpa_lsp.profile.collector.library import Cupti, find_cupti
from gpa_lsp.profile.collector.run import CollectedRun, CollectorSettings, collect

TOOL = "gpa-lsp profile --launch --sampler cupti"
_MODULE = "gpa_lsp.execution.local_gpu.sampled_launches"
_ALL = Selection(launches=0)
_SPARE_S = 120.0  # For starting Python and CUPTI, loading code and filling arrays


class SampledTimings(Struct, frozen=True, kw_only=True):
    """What became of sampling; a profile was written in any case."""

    samples: tuple[int, ...]  # of each launch, in order; empty where none was sampled
    problems: tuple[Problem, ...]  # why not, and what else its reader is told
    is_forbidden: bool = False  # the driver does not let us sample


def sample_launches(
    timings: LaunchTimings, output: Path, *, cupti: Cupti | None = None, period_exponent: int | None = None
) -> SampledTimings:
    """Launch each again, sampled, and write times and samples as one profile; times alone where nothing can be sampled.

    Args:
        timings: at least one.
        output: the profile.
        cupti: with which CUPTI; None looks for one.
        period_exponent: 2 to its power are the cycles between two samples; None lets CUPTI choose.

    Raises:
        GpaError: the profile cannot be written.
    """
    plain = make_document(timings)
    try:
        _refuse_systems()
        run, words = _run(timings, output, cupti or find_cupti(), period_exponent)
    except GpaError as error:
        return _give_up(plain, output, str(error))
    launches = _choose(json.loads(output.read_bytes())["launches"] if run.profile and run.profile.launches else [])
    problems = () if run.profile is None else run.profile.problems
    is_whole = [one["kernel"] for one in launches] == [one.mangled_name for one in timings.launches]
    if not is_whole or not all("samples" in one for one in launches):
        return _give_up(plain, output, _explain(run, words), is_forbidden=run.is_forbidden)
    document = json.loads(output.read_bytes())
    document["tool_version"] = TOOL
    document["launches"] = [_lay_over(one, timed) for one, timed in zip(launches, plain["launches"], strict=True)]
    message = "times are those of launches without a collector; samples are of one launch more"
    document["problems"] = [*document["problems"], {"severity": "note", "message": message}]
    _write(document, output)
    return SampledTimings(samples=tuple(_count(one) for one in launches), problems=problems)


def _refuse_systems() -> None:
    if sys.platform != "linux":
        raise GpaError("launches are sampled on Linux alone")


def _run(timings: LaunchTimings, output: Path, cupti: Cupti, period_exponent: int | None) -> tuple[CollectedRun, str]:
    """What became of the process that launches, and what it complained of."""
    jobs = [one.job for one in timings.launches]
    limit_s = _SPARE_S + sum(2 * LAUNCHES * one.settings.launch_seconds for one in jobs)
    settings = CollectorSettings(period_exponent=period_exponent, limit_s=limit_s)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        held, complaints = Path(name) / "jobs", Path(name) / "complaints"
        held.write_bytes(pack_records(tuple(jobs)))
        with Path(os.devnull).open("r+b") as nothing, complaints.open("wb") as errors:
            streams = (nothing.fileno(), nothing.fileno(), errors.fileno())
            run = collect(isolate_module(_MODULE, str(held)), settings, cupti, output, _ALL, streams=streams)
        return run, complaints.read_text(errors="replace").strip()


def _choose(launches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last one of each."""
    return list(launches[LAUNCHES - 1 :: LAUNCHES])


def _lay_over(sampled: dict[str, Any], timed: dict[str, Any]) -> dict[str, Any]:
    """A sampled launch with its time; who launched it is nobody's concern, since it was us."""
    found = {**sampled, "duration_ns": timed["duration_ns"]}
    found.pop("call_stack", None)
    return found


def _count(launch: dict[str, Any]) -> int:
    return sum(counts["all"] for row in launch["samples"] for counts in row["by_reason"].values())


def _explain(run: CollectedRun, words: str) -> str:
    if run.profile is not None and run.profile.problems:
        first = run.profile.problems[0]
        return f"{first.message}{f'; {first.remedy}' if first.remedy else ''}"
    if words:
        return words.splitlines()[-1]
    return run.end.words or (run.end.ending.value if run.end.ending is not Ending.ENDED else "CUPTI gave no samples")


def _give_up(document: dict[str, Any], output: Path, reason: str, *, is_forbidden: bool = False) -> SampledTimings:
    _write(document, output)
    problem = Problem(severity=ProblemSeverity.WARNING, message=f"timed alone, not sampled: {reason}")
    return SampledTimings(samples=(), problems=(problem,), is_forbidden=is_forbidden)


def _write(document: dict[str, Any], output: Path) -> None:
    try:
        with atomic_write(output) as stream:
            json.dump(document, stream)
    except OSError as error:
        raise GpaError(f"{output} cannot be written: {error.strerror or error}") from error
