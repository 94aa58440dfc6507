"""What an emulated program does with its allocations, as text: a line of the host for each finding, on the line of the allocation."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.document.layout import EMPTY_LINE, Line, Style, hang, text_line
from gpa_lsp.document.prediction_text import show_path
from gpa_lsp.execution.programs.model import (
    AllocationFinding,
    AllocationSite,
    FindingKind,
    HostPath,
    KernelRuns,
    ProgramRun,
)
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of, format_launches, format_percent
from gpa_lsp.foundation.ownership import is_library_file
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.profile.model import HostFrame

_MOST_FINDINGS = 12
_MOST_FRAMES = 4
_MOST_ARRAYS = 6
_RUNTIME = "cuda"  # how functions of CUDA's headers begin
_STUB = ".cudafe1.stub.c"  # a file of nvcc's, with what stands between a launch and the runtime


def render_memory(run: ProgramRun, width: int | None, folder: Path | None) -> Iterator[Line]:
    """The peak and the findings of a program's allocations, largest first, or why there are no findings; nothing without allocations."""
    memory = run.memory
    found = [(site, finding) for site in memory.sites for finding in site.findings]
    if not found and not (memory.sites and memory.unjudged):
        return
    yield EMPTY_LINE
    if not found:
        yield from hang((("memory ", Style.DIM), (f"not judged: {memory.unjudged}.", Style.DIM)), width)
        return
    yield text_line(_describe_peak(run), Style.TITLE)
    found.sort(key=lambda pair: -pair[1].size_bytes)
    for site, finding in found[:_MOST_FINDINGS]:
        yield from hang(
            (
                ("  ", Style.DIM),
                (f"{_name_site(site, memory.sites, folder)}  {describe_finding(finding, folder)}", Style.PLAIN),
            ),
            width,
        )
    if len(found) > _MOST_FINDINGS:
        yield text_line(f"  and {format_count_of(len(found) - _MOST_FINDINGS, 'more finding')}", Style.DIM)
    if not any(_find_place(site.path) for site, _ in found):
        yield from hang(
            (("  ", Style.DIM), ("build with -g for the lines of the host (--build does)", Style.DIM)), width
        )


def _describe_peak(run: ProgramRun) -> str:
    memory = run.memory
    allocations = sum(site.allocations for site in memory.sites)
    said = f"memory   {format_count_of(allocations, 'allocation')}, at most {format_bytes(memory.peak_bytes)} at once"
    if any(one.kind in (FindingKind.EARLY, FindingKind.LATE) for site in memory.sites for one in site.findings):
        said += f" where {format_bytes(memory.lean_peak_bytes)} would do"
    return said


def describe_finding(finding: AllocationFinding, folder: Path | None = None) -> str:
    """One finding without the line of its allocation, a clause."""
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
        return f"wait for {waited} until the first {use}"
    until = "until it is freed" if finding.is_freed else "until the program ends"
    return f"lie there for {waited} after the last {use}, {until}"


def list_own_frames(path: HostPath, kernel: str = "") -> list[HostFrame]:
    """Frames of the user's code, innermost first, without what the compiler puts around a launch of a kernel (its linkage name)."""
    between = demangle(kernel) if kernel else None
    return [
        frame
        for frame in path
        if frame.file
        and frame.line
        and not frame.file.endswith(_STUB)
        and not is_library_file(frame.file)
        and frame.function not in (None, between)
    ]


def _find_place(path: HostPath) -> str:
    own = list_own_frames(path)
    return write_place(own[0].file or "", own[0].line) if own else ""


def _write_frame(frame: HostFrame, folder: Path | None) -> str:
    return write_place(show_path(Path(frame.file or ""), folder), frame.line)


def _write_path(path: HostPath, folder: Path | None, kernel: str = "") -> str:
    """Where the host was; the innermost function that is known, where no line is."""
    own = list_own_frames(path, kernel)
    if own:
        return _write_frame(own[0], folder)
    names = (shorten_name(frame.function) for frame in path if frame.function)
    return next((name for name in names if not name.startswith(_RUNTIME)), "")


def _name_site(site: AllocationSite, others: Sequence[AllocationSite], folder: Path | None) -> str:
    """The line of an allocation, with that of its caller where several go through it, and what kernels call it."""
    own = list_own_frames(site.path)
    place = _write_path(site.path, folder) or "at an unknown place"
    if len(own) > 1 and sum(_find_place(one.path) == _find_place(site.path) for one in others) > 1:
        place += f" from {_write_frame(own[1], folder)}"
    names = list(dict.fromkeys(use.name for use in site.uses if use.name))[:2]
    return " ".join([place, *(f"`{name}`" for name in names)])


def render_origins(runs: KernelRuns, sites: Sequence[AllocationSite], folder: Path | None) -> Iterator[tuple[str, str]]:
    """Labels and texts: who launched a kernel, and of each array it accesses the allocation, its copies and the other kernels that access it.

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
    used = [
        (use, site) for site in sites for use in site.uses if use.kernel == runs.mangled_name and _find_place(site.path)
    ]
    for use, site in used[:_MOST_ARRAYS]:
        name = f"`{use.name}`" if use.name else "array"
        parts = [f"{name} {_describe_access(use.reads, use.writes)}, allocated at {_write_path(site.path, folder)}"]
        for is_to, word in ((True, "in"), (False, "out")):
            places = dict.fromkeys(_write_path(one.path, folder) for one in site.copies if one.is_to_device is is_to)
            if places:
                parts.append(f"copied {word} at {', '.join(list(places)[:2])}")
        others = [shorten_name(demangle(one.kernel)) for one in site.uses if one.kernel != runs.mangled_name]
        if others:
            parts.append(f"also in {', '.join(others[:3])}")
        yield "array", "; ".join(parts)
    if len(used) > _MOST_ARRAYS:
        yield "", f"and {format_count_of(len(used) - _MOST_ARRAYS, 'more array')}"


def _describe_access(reads: bool, writes: bool) -> str:
    return "read and written" if reads and writes else "written" if writes else "read"
