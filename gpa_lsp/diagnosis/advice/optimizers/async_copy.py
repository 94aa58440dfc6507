"""Tiles that go from global to shared memory through registers, and asynchronous copies that are started too late."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.sources.trees import find_language
from gpa_lsp.diagnosis.advice.blamed_stalls import build_hotspots
from gpa_lsp.diagnosis.advice.dependency_stalls import build_hiding_region, find_loops, sum_active
from gpa_lsp.diagnosis.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import (
    describe_line,
    describe_place,
    describe_scope,
    find_own_frame,
    locate,
    name_code,
)
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, cycles, list_of, say, size
from gpa_lsp.kernel.dataflow.staged_copies import (
    StagedCopy,
    find_groups_pending,
    find_staged_copies,
    mark_async_copies,
    mark_bulk_copies,
)

_FIRST_CAPABILITY = (8, 0)
_FIRST_WITH_TMA = (9, 0)
_TMA_TILE_BYTES = 2048  # From this size of a block's tile on, one bulk copy is worth setting up

_MOST_STAGES = 4

_COPY_ASYNCHRONOUSLY = say(
    "Keep two or more tiles in shared memory and copy the next one asynchronously while the current one is used."
)
_START_EARLIER = say("Start each asynchronous copy earlier, so that more are in flight: add a pipeline stage.")
_EARLIER_TITLE = "Start asynchronous copies earlier"

_BARRIER_OBJECT = "SYNCS"  # Opcode that works on a barrier object in shared memory, and waits at it


def match(subject: Subject) -> Found:
    """Asynchronous copies (cp.async) bring the next tile while the present one is used.

    Matched: loads from global memory in a loop whose results are only stored to shared memory: the latency for which the stores wait, and all
    samples at the stores, which go. Where copies are asynchronous already, the latency for which the wait for them still stands. A is that of
    the loop and the loops in it (Equation 5).

    Source: the optimizer of the same name in GPA's code (compute capability 8.0 and later).
    """
    capability = subject.kernel.device.compute_capability
    if capability is None or capability < _FIRST_CAPABILITY:
        present = "unknown" if capability is None else f"{capability[0]}.{capability[1]}"
        return say("asynchronous copies need compute capability 8.0; this is {present}", present=present)
    copies = find_staged_copies(subject.rows)
    staged = _find_staged_regions(subject, copies)
    found = {**_find_waiting_regions(subject), **staged}
    if not found:
        return _explain(copies, has_async=bool(mark_async_copies(subject.rows).any()))
    return HidingMatch(
        title="" if staged else _EARLIER_TITLE,
        regions=tuple(found.values()),
        active_samples=sum_active(subject.scopes, list(found)),
        hint=_COPY_ASYNCHRONOUSLY if staged else _START_EARLIER,
        caveats=_list_caveats(subject, has_staged=bool(staged)),
        reasons=(say("stalls on the values that are copied, all samples of the copying stores, and stalls on copies"),),
        overlap=0.5,  # two tiles on their way in place of one
    )


def _explain(copies: Sequence[StagedCopy], *, has_async: bool) -> NotApplicable | Sentence:
    """Explain why no copy matches."""
    staged = say("{copies} to shared memory through registers", copies=count(len(copies), "copy"))
    if copies and all(copy.loop < 0 for copy in copies):
        return NotApplicable(
            SilenceStage.GATED,
            say("{staged}, but outside loops: there is no next tile to start", staged=staged),
        )
    if copies:
        return say("{staged}, but no warp is stalled there", staged=staged)
    if has_async:
        return say("copies to shared memory are asynchronous, and no warp is stalled on them")
    return say("no value goes unchanged from global to shared memory")


def _find_staged_regions(subject: Subject, copies: Sequence[StagedCopy]) -> dict[int, HidingRegion]:
    """Loop → its region, where it has copies through registers that warps stall on."""
    edges = subject.edges
    regions = {}
    for loop in sorted({copy.loop for copy in copies if copy.loop >= 0}):
        members = [copy for copy in copies if copy.loop == loop]
        stores = subject.rows.mark(copy.store_row for copy in members)
        loads = subject.rows.mark(row for copy in members for row in copy.load_rows)
        waits = np.flatnonzero(loads[edges.def_row] & stores[edges.use_row])
        if not subject.known_edge_latency_samples[waits].sum():
            continue
        chosen = np.flatnonzero(stores[edges.use_row] & (edges.all_samples > 0))
        hint = _write_staged_hint(subject, loop, members, build_hotspots(subject, waits)[0])
        regions[loop] = build_hiding_region(subject, loop, chosen, hint)
    return regions


def _find_waiting_regions(subject: Subject) -> dict[int, HidingRegion]:
    """Loop → its region, where it waits for asynchronous copies: for their scoreboard, or at the barrier object that bulk copies signal."""
    edges = subject.edges
    of_copy = mark_async_copies(subject.rows)[edges.def_row] & (edges.category == int(BlameCategory.MEMORY_GLOBAL))
    if mark_bulk_copies(subject.rows).any():
        of_copy |= subject.rows.mark_by_opcode(lambda opcode: opcode.name == _BARRIER_OBJECT)[edges.def_row]
    chosen = np.flatnonzero(of_copy & edges.is_moved & (subject.known_edge_latency_samples > 0))
    loops = find_loops(subject.scopes, edges.use_row[chosen])
    pending = find_groups_pending(subject.rows)
    regions = {}
    for loop in sorted({loop for loop in loops.tolist() if loop >= 0}):
        inside = chosen[loops == loop]
        region = build_hiding_region(subject, loop, inside)
        hint = _write_waiting_hint(subject, loop, pending.get(loop), region.hotspots[0])
        regions[loop] = replace(region, hint=hint)
    return regions


def _write_staged_hint(subject: Subject, loop: int, copies: Sequence[StagedCopy], longest: Hotspot) -> Sentence:
    place = describe_place(subject, longest.def_row)
    each = sum(copy.bytes_moved for copy in copies)
    return say(
        "Each iteration of {loop} is stalled on {load}, which goes through registers to shared memory ({store}). "
        "Copy it one iteration ahead into a second buffer {call}: {each} per thread{tile}.",
        loop=describe_scope(subject, subject.scopes.scopes[loop]),
        load=place,
        store=describe_line(subject, longest.def_row if longest.use_row is None else longest.use_row),
        call=_name_call(subject, longest.def_row),
        each=count(each, "byte"),
        tile=_advise_bulk_copy(subject, each),
    )


def _name_call(subject: Subject, row: int) -> Sentence:
    """Name the asynchronous copy in the source's language."""
    frame = find_own_frame(subject, row)
    language = find_language(frame.file) if frame is not None else None
    if language is None or language.name == "cuda":
        calls = map(name_code, ("__pipeline_memcpy_async", "cuda::memcpy_async"))
        return say("with {calls}", calls=list_of(calls, last="or"))
    return say("asynchronously ({instruction})", instruction=Code(text="cp.async"))


def _advise_bulk_copy(subject: Subject, bytes_per_thread: int) -> Sentence:
    """About one copy of a block's whole tile, where that is large enough and the hardware has it."""
    tile_bytes = bytes_per_thread * (subject.launch.threads_per_block if subject.launch is not None else 0)
    capability = subject.kernel.device.compute_capability
    if capability is None or capability < _FIRST_WITH_TMA or tile_bytes < _TMA_TILE_BYTES:
        return NOTHING
    return say(
        "; a contiguous or tensor-box tile ({tile} per block) fits one TMA copy ({memcpy} with a barrier, or {bulk})",
        tile=count(tile_bytes, "byte"),
        memcpy=Code(text="cuda::memcpy_async"),
        bulk=Code(text="cp.async.bulk"),
    )


def _write_waiting_hint(subject: Subject, loop: int, pending: int | None, longest: Hotspot) -> Sentence:
    # The distance is that of the copies started last, and those are not waited for while groups may stay in flight.
    distance = None if pending else longest.distance_cycles
    head = say(
        "{loop} is stalled on its asynchronous copies {place}{soon}.",
        loop=capitalize(describe_scope(subject, subject.scopes.scopes[loop])),
        place=locate(subject, longest.def_row if longest.use_row is None else longest.use_row),
        soon=NOTHING
        if distance is None
        else say(", only about {distance} after their start", distance=cycles(distance)),
    )
    if pending is None:
        return say("{head} Start them an iteration earlier: add a pipeline stage.", head=head)
    groups = count(pending, "group")
    if pending + 2 > _MOST_STAGES:
        return say(
            "{head} It already keeps {groups} in flight: use larger tiles or do more work per tile.",
            head=head,
            groups=groups,
        )
    return say(
        "{head} It leaves {groups} in flight; one more buffer allows {more} ({call}).",
        head=head,
        groups=groups,
        more=count(pending + 1),
        call=Code(text=f"__pipeline_wait_prior({pending + 1})"),
    )


def _list_caveats(subject: Subject, *, has_staged: bool) -> tuple[Sentence, ...]:
    launch = subject.launch
    present = NOTHING
    if launch is not None and launch.shared_static_bytes is not None and launch.shared_dynamic_bytes is not None:
        shared = size(launch.shared_static_bytes + launch.shared_dynamic_bytes)
        present = say(" ({shared} per block now)", shared=shared)
    occupancy = say("Each extra buffer takes shared memory{present}, which can lower occupancy.", present=present)
    if not has_staged:
        return (occupancy,)
    return (
        say("Source and destination must be aligned to the size of each copy (4, 8 or 16 bytes)."),
        occupancy,
        say("Start the first copy before the loop, and put a barrier before each refill of a buffer."),
    )


OPTIMIZER = Optimizer(
    name="async_copy",
    title="Copy tiles asynchronously",
    group="latency",
    needs_split=True,
    find=match,
)
