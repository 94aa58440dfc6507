"""Tiles that go from global to shared memory through registers, and asynchronous copies that are started too late."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_hotspots
from gpa_lsp.advice.dependency_stalls import find_loops, sum_active
from gpa_lsp.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.advice.model import Advice, Category, Hotspot, Silence, SilenceStage
from gpa_lsp.advice.optimizers import HidingOptimizer
from gpa_lsp.advice.pricing import price_hiding
from gpa_lsp.advice.source_words import describe_line, describe_place, describe_scope, find_own_frame
from gpa_lsp.advice.subject import Subject
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.dataflow.staged_copies import (
    StagedCopy,
    find_groups_pending,
    find_staged_copies,
    mark_async_copies,
    mark_bulk_copies,
)
from gpa_lsp.sources.languages import find_language

_FIRST_CAPABILITY = (8, 0)
_FIRST_WITH_TMA = (9, 0)
_TMA_TILE_BYTES = 2048
"""From this size of a block's tile on, one bulk copy is worth setting up."""

_MOST_STAGES = 4

_COPY_ASYNCHRONOUSLY = (
    "Keep two or more tiles in shared memory and copy the next one asynchronously while this one is used."
)
_START_EARLIER = (
    "Start each asynchronous copy earlier, so that more of them are under way: give the pipeline another stage."
)
_EARLIER_TITLE = "Start copies of tiles earlier"

_BARRIER_OBJECT = "SYNCS"
"""Opcode that works on a barrier object in shared memory, and waits at it."""


class AsyncCopy(HidingOptimizer):
    """Asynchronous copies (cp.async) bring the next tile while the present one is used.

    Matched: loads from global memory in a loop whose results are only stored to shared memory: the latency for which the stores wait, and all
    samples at the stores, which go. Where copies are asynchronous already, the latency for which the wait for them still stands. A is that of
    the loop and the loops in it (Equation 5).

    Source: the optimizer of the same name in GPA's code (compute capability 8.0 and later).
    """

    name: ClassVar[str] = "async_copy"
    title: ClassVar[str] = "Copy tiles asynchronously"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "latency"

    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price; copies that are asynchronous already have to start earlier."""
        found = self.match(subject)
        if isinstance(found, Silence):
            return found
        is_early = found.hint == _START_EARLIER
        return price_hiding(subject, replace(self.label, title=_EARLIER_TITLE) if is_early else self.label, found)

    def match(self, subject: Subject) -> HidingMatch | Silence:
        """Find copies through registers, and waits for copies."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        capability = subject.kernel.device.compute_capability
        if capability is None or capability < _FIRST_CAPABILITY:
            present = "is not known" if capability is None else f"is {capability[0]}.{capability[1]}"
            message = f"asynchronous copies need compute capability 8.0; this {present}"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        copies = find_staged_copies(subject.rows)
        staged = _find_staged_regions(subject, copies)
        found = {**_find_waiting_regions(subject), **staged}
        if not found:
            return self._explain(copies, has_async=bool(mark_async_copies(subject.rows).any()))
        return HidingMatch(
            regions=tuple(found.values()),
            active_samples=sum_active(subject.scopes, list(found)),
            hint=_COPY_ASYNCHRONOUSLY if staged else _START_EARLIER,
            caveats=_list_caveats(subject, has_staged=bool(staged)),
            reasons=(
                "waits of stores to shared memory for what they store, all of those stores, and waits for copies",
            ),
        )

    def _explain(self, copies: Sequence[StagedCopy], *, has_async: bool) -> Silence:
        """Why there is nothing to say."""
        outside = sum(copy.loop < 0 for copy in copies)
        if copies and outside == len(copies):
            message = (
                f"{_count(outside)} to shared memory through registers in no loop, so there is no next tile to start"
            )
            return self.silent(SilenceStage.GATED, message)
        if copies:
            return self.silent(
                SilenceStage.NOT_MATCHED,
                f"{_count(len(copies))} to shared memory through registers that nobody waits for",
            )
        if has_async:
            return self.silent(
                SilenceStage.NOT_MATCHED, "copies to shared memory are asynchronous, and nobody waits for them"
            )
        return self.silent(SilenceStage.NOT_MATCHED, "no load from global memory is stored to shared memory as it is")


def _count(copies: int) -> str:
    return "there is one copy" if copies == 1 else f"there are {copies} copies"


def _find_staged_regions(subject: Subject, copies: Sequence[StagedCopy]) -> dict[int, HidingRegion]:
    """Loop → its region, where it has copies through registers that somebody waits for."""
    edges = subject.blame.edges
    regions = {}
    for loop in sorted({copy.loop for copy in copies if copy.loop >= 0}):
        members = [copy for copy in copies if copy.loop == loop]
        stores = _mark(subject, [copy.store_row for copy in members])
        loads = _mark(subject, [row for copy in members for row in copy.load_rows])
        waits = np.flatnonzero(loads[edges.def_row] & stores[edges.use_row])
        if not subject.known_edge_latency_samples[waits].sum():
            continue
        chosen = np.flatnonzero(stores[edges.use_row] & (edges.all_samples > 0))
        hotspots = build_hotspots(subject, chosen, np.ones(len(chosen)))
        hint = _write_staged_hint(subject, loop, members, build_hotspots(subject, waits, np.ones(len(waits)))[0])
        regions[loop] = _build_region(subject, loop, chosen, hotspots, hint)
    return regions


def _find_waiting_regions(subject: Subject) -> dict[int, HidingRegion]:
    """Loop → its region, where it waits for asynchronous copies: for their scoreboard, or at the barrier object that bulk copies signal."""
    edges = subject.blame.edges
    of_copy = mark_async_copies(subject.rows)[edges.def_row] & (edges.category == int(BlameCategory.MEMORY_GLOBAL))
    if mark_bulk_copies(subject.rows).any():
        of_copy |= subject.rows.mark_by_opcode(lambda opcode: opcode.name == _BARRIER_OBJECT)[edges.def_row]
    chosen = np.flatnonzero(of_copy & edges.is_moved & (subject.known_edge_latency_samples > 0))
    loops = find_loops(subject.scopes, edges.use_row[chosen])
    pending = find_groups_pending(subject.rows)
    regions = {}
    for loop in sorted({loop for loop in loops.tolist() if loop >= 0}):
        inside = chosen[loops == loop]
        hotspots = build_hotspots(subject, inside, np.ones(len(inside)))
        hint = _write_waiting_hint(subject, loop, pending.get(loop), hotspots[0])
        regions[loop] = _build_region(subject, loop, inside, hotspots, hint)
    return regions


def _build_region(
    subject: Subject, loop: int, chosen: npt.NDArray[np.int64], hotspots: tuple[Hotspot, ...], hint: str
) -> HidingRegion:
    edges = subject.blame.edges
    return HidingRegion(
        scope=subject.scopes.scopes[loop],
        samples=float(edges.all_samples[chosen].sum()),
        latency_samples=float(subject.known_edge_latency_samples[chosen].sum()),
        active_samples=float(subject.scopes.active_samples[loop]),
        hotspots=hotspots,
        hint=hint,
    )


def _mark(subject: Subject, rows: Sequence[int]) -> npt.NDArray[np.bool_]:
    marks = np.zeros(len(subject.rows), dtype=np.bool_)
    marks[list(rows)] = True
    return marks


def _write_staged_hint(subject: Subject, loop: int, copies: Sequence[StagedCopy], longest: Hotspot) -> str:
    place = describe_place(subject, longest.def_row)
    store = describe_line(subject, longest.def_row if longest.use_row is None else longest.use_row)
    where = describe_scope(subject, subject.scopes.scopes[loop])
    each = sum(copy.bytes_moved for copy in copies)
    sentences = [
        f"In {where}, {place} goes through registers into shared memory ({store}), and each turn waits for it. Copy it "
        f"{_name_call(subject, longest.def_row)} into a second buffer, one turn ahead; {each} bytes a thread."
    ]
    threads = subject.launch.threads_per_block if subject.launch is not None else 0
    capability = subject.kernel.device.compute_capability
    if capability is not None and capability >= _FIRST_WITH_TMA and each * threads >= _TMA_TILE_BYTES:
        sentences.append(
            f"The block's tile is {each * threads:,} bytes: where it is contiguous, or a box of a tensor, one thread can have all of it brought by "
            f"TMA (`cuda::memcpy_async` with a barrier, or `cp.async.bulk`)."
        )
    return " ".join(sentences)


def _name_call(subject: Subject, row: int) -> str:
    """How the source's language says it."""
    frame = find_own_frame(subject, row)
    language = find_language(frame.file) if frame is not None else None
    if language is None or language.name == "cuda":
        return "with `__pipeline_memcpy_async` or `cuda::memcpy_async`"
    return "asynchronously (cp.async)"


def _write_waiting_hint(subject: Subject, loop: int, pending: int | None, longest: Hotspot) -> str:
    where = describe_scope(subject, subject.scopes.scopes[loop])
    # The distance is that of the copies started last, and those are not waited for while groups may stay under way.
    distance = None if pending else longest.distance_cycles
    soon = f" about {distance:,} cycles of instructions after they were started" if distance is not None else ""
    line = describe_line(subject, longest.def_row if longest.use_row is None else longest.use_row)
    head = f"{where[0].upper()}{where[1:]} waits for its asynchronous copies in {line}{soon}, which is too soon."
    if pending is None:
        return f"{head} Start them a turn earlier: give the pipeline another stage."
    if pending + 2 > _MOST_STAGES:
        return (
            f"{head} It keeps {pending} groups under way already; larger tiles or more work per tile would cover more."
        )
    groups = "no group" if pending == 0 else f"{pending} group{'' if pending == 1 else 's'}"
    return (
        f"{head} It leaves {groups} under way while it waits; one more buffer would leave {pending + 1} "
        f"(`__pipeline_wait_prior({pending + 1})`)."
    )


def _list_caveats(subject: Subject, *, has_staged: bool) -> tuple[str, ...]:
    launch = subject.launch
    more = "Each buffer more takes shared memory"
    caveats = (
        ["Source and destination must be aligned to the size of each copy (4, 8 or 16 bytes)."] if has_staged else []
    )
    if launch is not None and launch.shared_static_bytes is not None and launch.shared_dynamic_bytes is not None:
        more += f", of which a block has {launch.shared_static_bytes + launch.shared_dynamic_bytes:,} bytes now"
    caveats.append(f"{more}; fewer blocks may fit on a multiprocessor.")
    if has_staged:
        caveats.append(
            "The first tile has to be started before the loop, and a barrier has to stand before a buffer is filled again."
        )
    return tuple(caveats)


OPTIMIZER = AsyncCopy()
