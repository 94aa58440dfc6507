"""VIEW: a program emulated without a GPU: a few rows per kernel, heaviest first, and its use of allocations, also by source line, for editors."""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Part
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.places import show_line
from gpa_lsp.document.prediction_view import build_remarks
from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.execution.prediction.fault_answer import ENDINGS
from gpa_lsp.execution.programs.call_paths import list_own_frames, name_allocated
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import (
    AllocationFinding,
    AllocationSite,
    ArrayUse,
    FindingKind,
    HostPath,
    KernelRuns,
    ProgramRun,
)
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.results import MeasureSpread
from gpa_lsp.foundation.files import make_stamp, read_bounded
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import (
    Quantity,
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
    format_launches,
    format_percent,
    format_quantity,
    format_seconds,
)
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.kernel.names import shorten_distinctly, shorten_name
from gpa_lsp.profile.model import HostFrame
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile, find_doubt
from gpa_lsp.report.saved.kept_allocations import AllocationNote, AllocationPlace, SourceAllocations

_MOST_SHAPES = 2
_MOST_FAULTS = 4
_MOST_ROWS = 3
_MOST_FINDINGS = 12
_MOST_FRAMES = 4
_MOST_ARRAYS = 6
_MOST_SPREADS = 2
_EVEN = 0.05  # Deviation beside the mean from which on launches differ
_WASTED = 1.25  # Sectors or wavefronts beside what they could be, from which on a line is told
_LEAST_DIVERGENT = 0.01  # Of a branch's executions: the guard of the last warp is not told
_RUNTIME = "cuda"  # how functions of CUDA's headers begin

_Row = tuple[str, str | Line, Style]  # label, text and how much it matters


def build_program(run: ProgramRun, kernels: Sequence[ExaminedKernel], folder: Path | None = None) -> list[Block]:
    """Kernels, findings on allocations, and what was done otherwise than on a GPU.

    Args:
        run: the program.
        kernels: its kernels.
        folder: paths below it are shown relative to it.
    """
    launches = format_launches(sum(kernel.launches for kernel in run.kernels))
    counted = f"{launches} of {format_count_of(len(run.kernels), 'kernel')} in {format_seconds(run.seconds)}"
    ordered = sorted(kernels, key=lambda one: -one.runs.warp_instructions)
    short = shorten_distinctly(one.runs.name for one in ordered)
    names = {one.runs.mangled_name: short[one.runs.name] for one in ordered}
    not_run = [*(f"{why}." for why in run.refused), _describe_left_out(run)]
    notes = [Item(text=f"{note}.") for note in run.notes]
    return [
        Paragraph(text=f"{counted}, on an emulated {run.machine}; nothing was measured", style=Style.DIM),
        *(Paragraph(text=(("not run: ", Style.DIM), (why, Style.WARNING))) for why in not_run if why),
        *(_build_kernel(kernel, names, run.memory.sites, folder) for kernel in ordered),
        *build_memory(run, folder),
        *([Part(title="Notes", blocks=[Items(items=notes)])] if notes else []),
    ]


def _describe_left_out(run: ProgramRun) -> str:
    """Launches whose results are missing or incomplete; empty where there are none."""
    parts = [
        f"{format_launches(run.skipped)} did nothing" if run.skipped else "",
        f"{format_launches(run.cut_short)} {'was' if run.cut_short == 1 else 'were'} cut short"
        if run.cut_short
        else "",
    ]
    said = " and ".join(filter(None, parts))
    return said and f"{said}: what the program computed from their results may be wrong"


def _build_kernel(
    kernel: ExaminedKernel, names: Mapping[str, str], sites: Sequence[AllocationSite], folder: Path | None
) -> Part:
    runs = kernel.runs
    rows = [
        *_list_runs(runs, sites, folder),
        *_list_lines(kernel, folder),
        *((label, text, Style.PLAIN) for label, text in list_origins(runs, sites, folder, names)),
    ]
    return Part(
        title=names[runs.mangled_name],
        style=Style.TITLE,
        facts=(format_launches(runs.launches), f"{format_count(runs.warp_instructions)} warp instructions"),
        blocks=[
            Items(items=[Item(text=text, style=style, lead=(f"{label:<7}", Style.DIM)) for label, text, style in rows]),
            *build_remarks(kernel.problems),
        ],
    )


def _list_runs(runs: KernelRuns, sites: Sequence[AllocationSite], folder: Path | None) -> Iterator[_Row]:
    """Shapes, faults, and launches that did not run to their end."""
    yield "shape", _describe_shapes(runs), Style.PLAIN
    faults = [one for one in runs.faults if one.kind not in ENDINGS]
    for fault in faults[:_MOST_FAULTS]:
        passed = fault.passed and fault.passed.array
        used = _list_uses(runs, sites) if passed else []
        place = next((_write_path(site.path, folder) for use, site in used if use.name == passed), "")
        yield "fault", _describe_fault(fault, place, folder), Style.WARNING
    if len(faults) > _MOST_FAULTS:
        yield "", f"and {format_count_of(len(faults) - _MOST_FAULTS, 'more fault')}", Style.DIM
    if runs.skipped:
        yield "left", f"{format_launches(runs.skipped)} did nothing: beyond the limit", Style.PLAIN
    for end in runs.unfinished:
        yield "ended", end, Style.WARNING


def _list_lines(kernel: ExaminedKernel, folder: Path | None) -> Iterator[_Row]:
    """Predicted time, costly accesses, divergence and variation of a kernel, by line."""
    runs, prediction = kernel.runs, kernel.prediction
    if prediction is None:
        if runs.unrecorded:
            yield "lines", f"not known: {runs.unrecorded}", Style.DIM
        return
    volumes = prediction.volumes
    if volumes is not None:
        time = "" if volumes.duration_ns is None else f"at least {format_duration_ns(volumes.duration_ns)} predicted"
        limiter = "" if volumes.limiter is None else f"limited by {volumes.limiter.value}"
        if time or limiter:
            yield "time", ", ".join(filter(None, (time, limiter))) + _tell_launch(runs), Style.PLAIN
    for access in _find_wasteful(prediction.accesses):
        yield "memory", _point_at(access, access.words, folder), Style.PLAIN
    for branch in _find_divergent(prediction.branches):
        yield "diverge", _point_at(branch, branch.words, folder), Style.PLAIN
    if kernel.comparison is not None:
        compared = f"{format_count(kernel.comparison.launches)} of {format_launches(runs.launches)}"
        varying = [_describe_spread(one) for one in _find_varying(kernel.comparison.spreads)[:_MOST_SPREADS]]
        if varying:
            yield "differ", f"{varying[0]} ({compared})", Style.PLAIN
        else:
            yield "launches", f"alike ({compared} compared)", Style.PLAIN
        for text in varying[1:]:
            yield "", text, Style.PLAIN


def _find_varying(spreads: Sequence[MeasureSpread]) -> list[MeasureSpread]:
    """Measures that vary most relative to their mean; numbers of requests grow with the launch and are left out."""
    found = [one for one in spreads if one.quantity is not Quantity.COUNT and one.deviation > _EVEN * one.mean]
    return sorted(found, key=lambda one: -one.deviation / one.mean)


def _describe_spread(one: MeasureSpread) -> str:
    least, most, mean, deviation = (
        format_quantity(value, one.quantity) for value in (one.least, one.most, one.mean, one.deviation)
    )
    return f"{one.measure}: {least} to {most}, mean {mean} ± {deviation}"


def _point_at(fact: AccessLineFact | BranchLineFact, words: str, folder: Path | None) -> Line:
    return ((show_line(fact.file, fact.line, folder), Style.PATH), (f"  {words}", Style.PLAIN))


def _tell_launch(runs: KernelRuns) -> str:
    """The launch that was recorded, where there are several."""
    if runs.recorded is None or runs.launches == 1:
        return ""
    heaviest = ", the heaviest that was kept" if runs.recorded.is_heaviest else ""
    return f" (launch {format_count(runs.recorded.number)}{heaviest})"


def _describe_shapes(runs: KernelRuns) -> str:
    parts = []
    for shape in runs.shapes[:_MOST_SHAPES]:
        shared = f", {format_bytes(shape.shared_bytes)} of shared memory" if shape.shared_bytes else ""
        times = f" ({format_launches(shape.launches)})" if len(runs.shapes) > 1 else ""
        blocks = "block" if prod(shape.grid) == 1 else "blocks"
        parts.append(f"{format_dim3(shape.grid)} {blocks} of {format_dim3(shape.block)}{shared}{times}")
    more = len(runs.shapes) - _MOST_SHAPES
    return "; ".join(parts) + (f"; and {format_count_of(more, 'more shape')}" if more > 0 else "")


def _describe_fault(fault: Fault, allocated: str, folder: Path | None) -> Line:
    times = f" ({format_count_of(fault.count, 'time')})" if fault.count > 1 else ""
    where = f"; allocated at {allocated}" if allocated else ""
    words = f"{fault.kind.value}: {fault.message}{times}{where}"
    if not fault.chain:
        return ((words, Style.WARNING),)
    own = choose_frame(fault.chain)
    return ((show_line(own.file, own.line, folder), Style.PATH), (f"  {words}", Style.WARNING))


def _find_wasteful(facts: Sequence[AccessLineFact]) -> list[AccessLineFact]:
    found = [one for one in facts if not one.is_nested and one.ideal and one.cost >= _WASTED * one.ideal]
    return sorted(found, key=lambda one: -one.requests * (one.cost - one.ideal))[:_MOST_ROWS]


def _find_divergent(facts: Sequence[BranchLineFact]) -> list[BranchLineFact]:
    found = [one for one in facts if one.divergent > _LEAST_DIVERGENT * one.executions and not one.is_nested]
    return sorted(found, key=lambda fact: -fact.divergent)[:_MOST_ROWS]


def build_memory(run: ProgramRun, folder: Path | None) -> list[Part]:
    """Peak and findings of a program's allocations, largest first, or why there are none; no part without allocations."""
    memory = run.memory
    found = [(site, finding) for site in memory.sites for finding in site.findings]
    if not found:
        why = f"not judged: {memory.unjudged}."
        return [Part(title="Memory", blocks=[Paragraph(text=why)])] if memory.sites and memory.unjudged else []
    found.sort(key=lambda pair: -pair[1].size_bytes)
    items = [
        Item(text=f"{_name_site(site, memory.sites, folder)}  {describe_finding(one, folder)}") for site, one in found
    ]
    blocks: list[Block] = [Items(items=items, most_items=_MOST_FINDINGS)]
    if not any(_find_place(site.path) for site, _ in found):
        blocks.append(Paragraph(text="build with -g for the lines of the host (--build does)", style=Style.DIM))
    return [Part(title="Memory", summary=_describe_peak(run), blocks=blocks)]


def _describe_peak(run: ProgramRun) -> str:
    memory = run.memory
    allocations = sum(site.allocations for site in memory.sites)
    said = format_count_of(allocations, "allocation")
    if not memory.peak_bytes:
        return said
    said += f", at most {format_bytes(memory.peak_bytes)} at once"
    if any(one.kind in (FindingKind.EARLY, FindingKind.LATE) for site in memory.sites for one in site.findings):
        said += f" where {format_bytes(memory.lean_peak_bytes)} would do"
    return said


def describe_finding(finding: AllocationFinding, folder: Path | None = None) -> str:
    """A finding in a clause, without the line of its allocation."""
    size = format_bytes(finding.size_bytes)
    several = f" in {format_count_of(finding.count, 'allocation')}" if finding.count > 1 else ""
    place = _write_path(finding.path, folder, finding.kernel)
    match finding.kind:
        case FindingKind.UNUSED:
            copied = f"; {format_bytes(finding.part_bytes)} are copied to or from it" if finding.part_bytes else ""
            why = f"no kernel accesses the {size}{several}{copied}"
        case FindingKind.PARTLY_USED:
            share = format_percent(finding.part_bytes / finding.size_bytes)
            why = f"kernels access {format_bytes(finding.part_bytes)} ({share}) of {size}{several}"
        case FindingKind.EARLY | FindingKind.LATE:
            why = f"{size}{several} {_describe_wait(finding, place)}"
        case FindingKind.NEVER_FREED:
            why = f"{size}{several} {'stays' if finding.count == 1 else 'stay'} allocated until the program ends"
        case FindingKind.NEVER_READ:
            why = f"nothing reads what {_describe_copies(finding, place)} bring{'s' if finding.count == 1 else ''} ({size})"
        case FindingKind.UNCHANGED:
            takes = "takes" if finding.count == 1 else "take"
            why = f"{_describe_copies(finding, place)} {takes} back what the host had sent ({size})"
    return f"{finding.kind.value}: {why}"


def _describe_copies(finding: AllocationFinding, place: str) -> str:
    copies = "the copy" if finding.count == 1 else f"{format_count(finding.count)} copies"
    return f"{copies} at {place}" if place else copies


def _describe_wait(finding: AllocationFinding, place: str) -> str:
    what = shorten_name(demangle(finding.kernel)) if finding.kernel else "a copy" if place else ""
    use = " by ".join(filter(None, ("use", what))) + (f" at {place}" if place else "")
    waited = format_launches(finding.launches)
    if finding.kind is FindingKind.EARLY:
        return f"is unused for {waited}, until the first {use}"
    until = "until it is freed" if finding.is_freed else "until the program ends"
    return f"is unused for {waited} after the last {use}, {until}"


def _find_place(path: HostPath) -> str:
    own = list_own_frames(path)
    return write_place(own[0].file or "", own[0].line) if own else ""


def _write_frame(frame: HostFrame, folder: Path | None) -> str:
    return show_line(frame.file or "", frame.line, folder)


def _write_path(path: HostPath, folder: Path | None, kernel: str = "") -> str:
    """Line of a host call path; without lines, its innermost known function."""
    own = list_own_frames(path, kernel)
    if own:
        return _write_frame(own[0], folder)
    names = (shorten_name(frame.function) for frame in path if frame.function)
    return next((name for name in names if not name.startswith(_RUNTIME)), "")


def _name_site(site: AllocationSite, others: Sequence[AllocationSite], folder: Path | None) -> str:
    """Line of an allocation, with its caller where several sites share the line, and its names in kernels."""
    own = list_own_frames(site.path)
    place = _write_path(site.path, folder) or "at an unknown place"
    if len(own) > 1 and sum(_find_place(one.path) == _find_place(site.path) for one in others) > 1:
        place += f" from {_write_frame(own[1], folder)}"
    return " ".join([place, *quote_uses(site)])


def quote_uses(site: AllocationSite) -> list[str]:
    """Names of an allocation in kernels, at most two; without any its name in the host code."""
    names = dict.fromkeys(use.name for use in site.uses if use.name) or {name_allocated(site.path): None}
    return [f"`{name}`" for name in names if name][:2]


def list_origins(
    runs: KernelRuns, sites: Sequence[AllocationSite], folder: Path | None, names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Labelled texts: host call path of a kernel; per array its allocation, copies and other kernels.

    Source: CUDAAdvisor, Figures 8 and 9.
    """
    for launched in runs.paths[:1]:
        frames = list_own_frames(launched.path, runs.mangled_name)[:_MOST_FRAMES]
        if frames:
            more = len(runs.paths) - 1
            calls = " < ".join(
                f"{shorten_name(frame.function or '?')} {_write_frame(frame, folder)}" for frame in frames
            )
            yield "host", calls + (f", and {format_count_of(more, 'other path')}" if more else "")
    arrays = [_describe_array(use, site, runs, folder, names) for use, site in _list_uses(runs, sites)]
    told = list(dict.fromkeys(arrays))  # one place may allocate several arrays that are used alike
    yield from (("array", text) for text in told[:_MOST_ARRAYS])
    if len(told) > _MOST_ARRAYS:
        yield "", f"and {format_count_of(len(told) - _MOST_ARRAYS, 'more array')}"


def _describe_array(
    use: ArrayUse, site: AllocationSite, runs: KernelRuns, folder: Path | None, names: Mapping[str, str]
) -> str:
    name = "".join(f"`{one}` " for one in (use.name or name_allocated(site.path),) if one)
    parts = [f"{name}{_describe_access(use.reads, use.writes)}, allocated at {_write_path(site.path, folder)}"]
    for is_to, word in ((True, "in"), (False, "out")):
        places = dict.fromkeys(_write_path(one.path, folder) for one in site.copies if one.is_to_device is is_to)
        if places:
            parts.append(f"copied {word} at {', '.join(list(places)[:2])}")
    hosts = dict.fromkeys(_write_path(path, folder) for one in site.copies for path in one.hosts)
    if hosts:
        parts.append(f"counterpart on the host allocated at {', '.join(list(hosts)[:2])}")
    others = [names[one.kernel] for one in site.uses if one.kernel != runs.mangled_name and one.kernel in names]
    if others:
        parts.append(f"also in {', '.join(others[:3])}")
    return "; ".join(parts)


def _list_uses(runs: KernelRuns, sites: Sequence[AllocationSite]) -> list[tuple[ArrayUse, AllocationSite]]:
    """Arrays of a kernel whose allocation has a known line."""
    return [
        (use, site) for site in sites for use in site.uses if use.kernel == runs.mangled_name and _find_place(site.path)
    ]


def _describe_access(reads: bool, writes: bool) -> str:
    return "read and written" if reads and writes else "written" if writes else "read"


_MOST_SOURCE_BYTES = 2 << 20
_MOST_NOTES = 200  # Of one source
_MOST_CALLERS = 3
_OF_COPIES = frozenset({FindingKind.NEVER_READ, FindingKind.UNCHANGED})


def list_source_allocations(run: ProgramRun, folder: Path) -> list[SourceAllocations]:
    """Findings of a run on the lines of its allocations and copies, per source found here; none where allocations were not judged.

    Args:
        run: the program.
        folder: relative paths are below it.
    """
    if run.memory.unjudged:
        return []
    notes: dict[str, list[AllocationNote]] = {}
    for site in run.memory.sites:
        for path in (site.path, *(one.path for one in site.copies)):
            for frame in list_own_frames(path)[:1]:
                notes.setdefault(_find_file(frame, folder), [])
        for finding in site.findings:
            for file, note in _place(site, finding, folder):
                notes.setdefault(file, []).append(note)
    found = (_make(file, told, run) for file, told in notes.items())
    return [one for one in found if one is not None]


def _place(site: AllocationSite, finding: AllocationFinding, folder: Path) -> Iterator[tuple[str, AllocationNote]]:
    """A finding and its file: of a copy its own line where that is known, else the line of the allocation."""
    allocated = list_own_frames(site.path)
    copied = list_own_frames(finding.path) if finding.kind in _OF_COPIES else []
    own = copied or allocated
    if not own:
        return
    related: list[AllocationPlace] = []
    if copied:
        related += _relate(allocated[:1], "allocated here", folder)
    elif finding.kind in (FindingKind.EARLY, FindingKind.LATE):
        word = "first" if finding.kind is FindingKind.EARLY else "last"
        related += _relate(list_own_frames(finding.path, finding.kernel)[:1], f"{word} use", folder)
    related += _relate(own[1 : 1 + _MOST_CALLERS], "called from here", folder)
    file = _find_file(own[0], folder)
    # other lines are places beside the words: they move with edits
    words = " ".join([*quote_uses(site), describe_finding(replace(finding, path=()))])
    line = own[0].line or 1
    size_bytes, kind = finding.size_bytes, finding.kind.value
    yield file, AllocationNote(line=line, kind=kind, words=words, size_bytes=size_bytes, related=tuple(related))


def _relate(frames: "HostPath | list[HostFrame]", words: str, folder: Path) -> Iterator[AllocationPlace]:
    for frame in frames:
        yield _find_file(frame, folder), frame.line or 1, words


def _find_file(frame: HostFrame, folder: Path) -> str:
    return os.path.realpath(folder / (frame.file or ""))


def _make(file: str, notes: list[AllocationNote], run: ProgramRun) -> SourceAllocations | None:
    """Notes of one source; None where the file cannot be read."""
    try:
        text = read_bounded(Path(file), _MOST_SOURCE_BYTES).decode("utf-8", "replace")
        status = Path(file).stat()
    except OSError:
        return None
    doubt = find_doubt(status, run.built_ns, None)
    source = MeasuredFile(
        compiled_path=file,
        local_path=file,
        lines=split_lines(text),
        is_verified=doubt is None,
        doubt=doubt,
        stamp=make_stamp(status),
    )
    notes.sort(key=lambda one: (-one.size_bytes, one.line))
    return SourceAllocations(file=source, machine=run.machine, notes=tuple(dict.fromkeys(notes[:_MOST_NOTES])))
