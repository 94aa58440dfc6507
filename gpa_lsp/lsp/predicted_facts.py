"""From a prediction to what the server keeps of it. Runs in the process that predicts."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from gpa_lsp.analyses.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.analyses.traces.remedies import find_remedy
from gpa_lsp.analyses.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from gpa_lsp.emulator.model import Fault, FaultKind
from gpa_lsp.errors import Problem
from gpa_lsp.figures import format_update_bytes
from gpa_lsp.lsp.predicted_results import (
    PredictedAccess,
    PredictedBranch,
    PredictedFault,
    PredictedLaunch,
    PredictedProblem,
)
from gpa_lsp.prediction.fault_answer import ENDINGS, REMEDIES
from gpa_lsp.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.render.numbers import format_count, format_count_of, format_dim3, format_duration_ns

_DISTANCES = (
    ("at once", 0, 0),
    ("within 7 lines", 1, 3),
    ("8 to 63 lines", 4, 6),
    ("64 to 511 lines", 7, 9),
    ("512 lines or more", 10, INFINITE_BIN - 1),
    ("first use", INFINITE_BIN, INFINITE_BIN),
)
"""(words, first and last bin of :class:`ReuseHistogram`)."""

_PACKAGING = re.compile(r" (?:PCIe|SXM|NVL|HBM|\d+ ?GB).*")
_LINE = re.compile(r"line (\d{1,9})\b")
_MOST_FACTS = 4000
_MOST_CALLERS = 4
_MOST_FAULTS = 200
_MOST_PROBLEMS = 100

_Fact = TypeVar("_Fact", AccessLineFact, BranchLineFact)


def list_launches(prediction: SourcePrediction) -> Iterator[PredictedLaunch]:
    """The launches in their order."""
    source = str(prediction.path)
    places = {one.statics.mangled_name: one.place for one in prediction.statics.kernels}
    counts: dict[str, int] = {}
    for kernel in prediction.kernels:
        counts[kernel.mangled_name] = counts.get(kernel.mangled_name, 0) + 1
    for kernel in prediction.kernels:
        place = places.get(kernel.mangled_name)
        title = name_launch(kernel) if counts[kernel.mangled_name] > 1 else ""
        yield PredictedLaunch(
            mangled_name=kernel.mangled_name,
            name=kernel.name,
            line=place.line if place is not None and place.file == source else None,
            words=describe_briefly(kernel, title),
            what=_describe_subject(kernel),
            described_line=kernel.launch.line,
        )


def name_launch(kernel: KernelPrediction) -> str:
    """What tells a launch from others of its kernel."""
    launch = kernel.launch
    if launch.title:
        return f"“{launch.title}”"
    return f"{format_dim3(launch.grid)} blocks of {format_dim3(launch.block)}"


def describe_briefly(kernel: KernelPrediction, title: str) -> str:
    """The words of a lens: what limits it, what it moves, how long it takes, and how much was emulated."""
    parts = []
    own = [fault for fault in kernel.faults if fault.kind not in ENDINGS]
    if own:
        parts.append(format_count_of(len(own), "fault"))
    volumes = kernel.volumes
    if volumes is not None:
        if volumes.limiter is not None:
            parts.append(
                f"{volumes.limiter.value} limits" if volumes.limiter.value[0].isupper() else volumes.limiter.value
            )
        moved = volumes.volumes
        loaded, stored = format_update_bytes(moved.dram_load), format_update_bytes(moved.dram_store)
        parts.append(f"{loaded} B loaded, {stored} B stored per update")
        if volumes.duration_ns is not None:
            machine = _PACKAGING.sub("", kernel.machine)
            parts.append(f"{format_duration_ns(volumes.duration_ns)} on {machine}")
    parts.append(f"emulated {count_blocks(kernel)}")
    return f"predicted{f' {title}' if title else ''}: {' · '.join(parts)}"


def count_blocks(kernel: KernelPrediction) -> str:
    """``64 of 1,024 blocks``."""
    run = kernel.execution
    total = format_count_of(run.grid_blocks, "block")
    counted = (
        f"all {total}" if run.executed_blocks == run.grid_blocks else f"{format_count(run.executed_blocks)} of {total}"
    )
    counted = "its block" if run.grid_blocks == run.executed_blocks == 1 else counted
    return counted if run.is_complete else f"{counted}, not to the end"


def _describe_subject(kernel: KernelPrediction) -> str:
    title = f"“{kernel.launch.title}”, " if kernel.launch.title else ""
    machine = f", predicted for the {kernel.machine}" if kernel.machine else ""
    return f"{title}block {format_dim3(kernel.launch.block)}, {count_blocks(kernel)}{machine}"


def list_accesses(prediction: SourcePrediction) -> tuple[PredictedAccess, ...]:
    """Those of lines of the source, most sectors first."""
    found = _list_own(prediction, lambda kernel: kernel.accesses)
    found.sort(key=lambda one: -one[0].sectors)
    return tuple(_make_access(fact, number) for fact, number in found[:_MOST_FACTS])


def _list_own(
    prediction: SourcePrediction, choose: Callable[[KernelPrediction], Iterable[_Fact]]
) -> list[tuple[_Fact, int]]:
    """The facts of lines of the source itself, with the number of their launch."""
    source = str(prediction.path)
    return [
        (fact, number)
        for number, kernel in enumerate(prediction.kernels)
        for fact in choose(kernel)
        if fact.file == source
    ]


def _make_access(fact: AccessLineFact, launch: int) -> PredictedAccess:
    strides = tuple((stride, 1) for stride in fact.strides_bytes)
    return PredictedAccess(
        line=fact.line,
        launch=launch,
        kind=fact.kind.value,
        space=fact.space.name.lower(),
        arrays=fact.arrays,
        requests=fact.requests,
        lanes_per_request=fact.lanes_per_request,
        lines_per_request=fact.lines_per_request,
        sectors_per_request=fact.sectors_per_request,
        ideal_sectors_per_request=fact.ideal_sectors_per_request,
        wavefronts_per_request=fact.wavefronts_per_request,
        ideal_wavefronts_per_request=fact.ideal_wavefronts_per_request,
        share_ratio=fact.share_ratio,
        pattern=fact.pattern_words,
        remedy=find_remedy(fact.kind, tuple((one.pattern, one.requests) for one in fact.patterns), strides),
        l1_hit_ratio=fact.l1_hit_ratio,
        l2_hit_ratio=fact.l2_hit_ratio,
        repeated_ratio=fact.repeated_ratio,
        reuse=() if fact.reuse is None else tuple(list_reuse(fact.reuse)),
        is_nested=fact.is_nested,
        callers=fact.callers[:_MOST_CALLERS],
    )


def list_reuse(histogram: ReuseHistogram) -> Iterator[tuple[str, float]]:
    """Its bins, put together; those without references left out."""
    references = histogram.references
    for words, first, last in _DISTANCES:
        count = int(histogram.bins[first : last + 1].sum())
        if count:
            yield words, count / references


def list_branches(prediction: SourcePrediction) -> tuple[PredictedBranch, ...]:
    """Those of lines of the source, most executed first."""
    found = _list_own(prediction, lambda kernel: kernel.branches)
    found.sort(key=lambda one: -one[0].executions)
    return tuple(_make_branch(fact, number) for fact, number in found[:_MOST_FACTS])


def _make_branch(fact: BranchLineFact, launch: int) -> PredictedBranch:
    return PredictedBranch(
        line=fact.line,
        launch=launch,
        executions=fact.executions,
        divergent_ratio=fact.divergent_ratio,
        lanes_per_execution=fact.lanes_per_execution,
        is_nested=fact.is_nested,
    )


def list_faults(prediction: SourcePrediction) -> tuple[PredictedFault, ...]:
    """Of all launches, those of the program first."""
    source = str(prediction.path)
    found = [(fault, number) for number, kernel in enumerate(prediction.kernels) for fault in kernel.faults]
    found.sort(key=lambda one: one[0].kind in ENDINGS)
    return tuple(_make_fault(fault, number, source) for fault, number in found[:_MOST_FAULTS])


def _make_fault(fault: Fault, launch: int, source: str) -> PredictedFault:
    chain = fault.chain or ()
    own = next((frame for frame in chain if frame.file == source and frame.line > 0), None)
    inner = chain[0] if chain and chain[0].line > 0 and chain[0] is not own else None
    other = (fault.other_chain or (None,))[0]
    where = "" if fault.block is None else f" First in block {fault.block}"
    if where and fault.thread is not None:
        x, y, z = fault.thread
        where += f", thread ({x}, {y}, {z})"
    times = f" {format_count(fault.count)} times." if fault.count > 1 else ""
    return PredictedFault(
        line=None if own is None else own.line,
        launch=launch,
        kind=fault.kind.value,
        message=f"{fault.message.rstrip('.')}.{times}{f'{where}.' if where else ''}",
        remedy=_make_sentence(REMEDIES.get(fault.kind, "")),
        is_ending=fault.kind in ENDINGS or fault.kind is FaultKind.BAD_LAUNCH,
        place=None if inner is None else (inner.file, inner.line),
        other=None if other is None or other.line <= 0 else (other.file, other.line),
    )


def _make_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def list_problems(prediction: SourcePrediction) -> tuple[PredictedProblem, ...]:
    """Of the description and of each launch."""
    found = [(problem, None) for problem in prediction.problems]
    own = [(problem, kernel) for kernel in prediction.kernels for problem in kernel.problems]
    return tuple(make_problem(problem, kernel) for problem, kernel in [*found, *own][:_MOST_PROBLEMS])


def make_problem(problem: Problem, kernel: KernelPrediction | None = None) -> PredictedProblem:
    """One without its file, which is the description or the source, as its place tells."""
    remedy = "" if problem.remedy is None else f"; {problem.remedy}"
    name = problem.kernel or (None if kernel is None else kernel.mangled_name)
    line = None if kernel is None else kernel.launch.line
    return PredictedProblem(
        severity=problem.severity,
        message=f"{problem.message}{remedy}",
        described_line=read_line(problem.place) or line,
        kernel=name,
    )


def read_line(place: str | None) -> int | None:
    """The number of ``line 12``; None for other places.

    >>> read_line("line 12"), read_line("offset 0x10"), read_line(None)
    (12, None, None)
    """
    match = _LINE.search(place or "")
    return int(match[1]) if match else None
