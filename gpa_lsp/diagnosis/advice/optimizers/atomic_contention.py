"""Atomics that many threads make on few addresses."""

from collections.abc import Sequence
from math import prod

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import Opcode
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    build_regions,
    count_samples,
    describe_causes,
    find_edges,
    mark_reasons,
)
from gpa_lsp.diagnosis.advice.launch_time import has_queueing_atomics
from gpa_lsp.diagnosis.advice.loop_work import measure_filling
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import locate
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, number, say, size
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import load_opcode_classes
from gpa_lsp.kernel.dataflow.accesses import (
    SECTOR_BYTES,
    count_access_bytes,
    count_innermost_turns,
    count_per_request,
    measure_excess,
    read_modifiers,
)
from gpa_lsp.kernel.dataflow.gathered_accesses import count_addresses, count_passes, count_places, find_address_operand
from gpa_lsp.kernel.dataflow.value_flow import build_flow, is_invariant_address
from gpa_lsp.kernel.scopes import Scope

_SHARED = (ProducerGroup.SHARED_ATOMIC,)
_GLOBAL = (ProducerGroup.GLOBAL_ATOMIC, ProducerGroup.GLOBAL_REDUCTION)
_COMPARE_AND_SWAP = frozenset({"CAS", "CAST"})
_LEAST_THREADS = 1.5  # With fewer threads per atomic, the warp has been reduced to one already
_SCATTERED = 0.9  # Sectors per thread from which on the threads of a warp have addresses of their own
_TOLERANCE = 0.05
# From so many sectors on, sectors as dense as can be mean that each thread has a neighbouring word of its own
_LEAST_SECTORS = 2
_LEAST_TURNS = 1.1
_FLOATS = ("F16", "F32", "F64", "BF16")
_ATOMICS_LEFT = 1 / 32  # Of the requests, when a warp adds up first; fewer are not reckoned with
_SHUFFLES = 5  # With which a warp adds up: log2 of its threads
_RESERVE_PLACES = say(
    "The old value is used, so reserve for the whole warp: one thread adds the number of active threads ({mask}, {count}), shuffles the old "
    "value to them, and each adds its rank ({group}). A block-wide scan leaves one atomic per block.",
    mask=Code(text="__activemask()"),
    count=Code(text="__popc"),
    group=Code(text="cooperative_groups::coalesced_threads()"),
)


def _is_global_atomic(opcode: Opcode) -> bool:
    return load_opcode_classes().find_producer(opcode.name) in _GLOBAL


def _is_shared_atomic(opcode: Opcode) -> bool:
    return load_opcode_classes().find_producer(opcode.name) in _SHARED


def match(subject: Subject) -> Found:
    """Stalls for atomics and reductions in memory.

    Matched: all stalls blamed on an atomic (for its result, for room in the queue, for its end) times the part of atomics that adding up first would
    save: 1 − sectors / threads where a warp's threads share sectors, 1 − 1 / warps of a block that make it where one thread a warp is left, all where
    lanes were not counted; 1 − 1 / turns where a loop makes them at one address and reads no old value; of shared memory the share of passes
    beyond the least; of all instructions of a compare-and-swap loop at least 1 − 1 / turns. Atomics whose threads have sectors or neighbouring words
    of their own do not match, nor do those that one thread of each block makes. Approximation: threads in one sector are taken for threads at one
    address.

    Source: published practice (aggregation in warps and blocks); counters as in Nsight Compute's source view.
    """
    finding = _Finding(subject)
    if not (finding.is_global | finding.is_shared).any():
        return say("the kernel has no atomics")
    edges = find_edges(subject, finding.is_global | finding.is_shared | (finding.saved > 0))
    edges = edges[~mark_reasons(subject, ("selected", "not_selected"))[edges]]
    waiting = count_samples(subject, edges)
    if waiting == 0:
        return say("no warp is stalled on the kernel's atomics")
    weights = finding.saved[subject.edges.def_row[edges]]
    regions = build_regions(subject, edges, weights, write_hint=finding.write_hint, write_note=finding.write_note)
    if not regions:
        return say(
            "{samples} stalled on atomics, but threads use separate addresses or a block does only one",
            samples=count(waiting, "sample"),
        )
    return EliminationMatch(
        work=finding.count_work_left(),
        regions=regions,
        added=finding.measure_added(),
        hint=finding.write_remedy(regions[0].hotspots[0].def_row),
        caveats=(
            say("The gain depends on how often addresses repeat, which counters do not show."),
            *_list_caveats(subject, [hotspot.def_row for region in regions for hotspot in region.hotspots]),
        ),
        reasons=(
            say(
                "{samples} stalled on atomics, times the part that aggregation would save",
                samples=count(waiting, "sample"),
            ),
        ),
    )


def _list_caveats(subject: Subject, rows: Sequence[int]) -> tuple[Sentence, ...]:
    modifiers = {modifier for row in rows for modifier in read_modifiers(subject.rows.mnemonic(row))}
    adds_floats = any(modifier.startswith(_FLOATS) for modifier in modifiers)
    return (say("Floating-point sums change in the last digits with their order."),) if adds_floats else ()


def _count_blocks(subject: Subject) -> int | None:
    """Blocks of all launches; None when the profile does not say, or says it of aggregates among other launches."""
    if subject.kernel.has_mixed_launches:
        return None
    return sum_known(None if launch.grid is None else prod(launch.grid) for launch in subject.runs)


class _PrivateCopy(Struct, frozen=True, kw_only=True):
    """Counters of a block in shared memory."""

    addresses: int  # at most, or about
    is_proven: bool  # by the code; else warps meet on so many
    size_bytes: int
    sectors_left: float  # of the sectors of its atomics in global memory, the part that adding up the copies touches


class _Finding:
    """Facts about a kernel's atomics.

    Attributes:
        is_global: bool[n].
        is_shared: bool[n].
        saved: float64[n], the part of each row's atomics that adding up first would save.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.is_global = subject.rows.mark_by_opcode(_is_global_atomic)
        self.is_shared = subject.rows.mark_by_opcode(_is_shared_atomic)
        self._sectors, self._threads = count_per_request(subject.rows)
        self._turns: dict[int, float] = {}
        self._tries: set[int] = set()  # Of _turns, those of loops around atomics of shared memory
        self._private: dict[int, _PrivateCopy] = {}
        self._sums: dict[int, float] = {}  # Atomics of a loop at one address → the turns that a thread can add up first
        self.saved = np.zeros(len(subject.rows))
        launch = subject.launch
        self._warps = launch.warps_per_block if launch is not None else None
        self._blocks = _count_blocks(subject)
        passes, ideal = subject.rows.counter("shared_wavefronts"), subject.rows.counter("shared_wavefronts_ideal")
        excess = None if passes is None or ideal is None else measure_excess(passes, ideal)
        for row in np.flatnonzero(self.is_global | self.is_shared).tolist():
            if self.is_shared[row]:
                saved = 1.0 if excess is None else float(excess[row])
            else:
                self._sums[row] = self._count_sums(row)
                saved = 1.0 - (1.0 - self._find_saved_global(row)) / self._sums[row]
            self.saved[row] = max(float(self.saved[row]), saved)
            self._count_turns(row)

    def _find_saved_global(self, row: int) -> float:
        if np.isnan(self._sectors[row]):
            return 1.0
        private = self._find_private_copy(row)
        if private is not None:
            self._private[row] = private
            return 1.0 - private.sectors_left
        if self._threads[row] < _LEAST_THREADS:
            return self._find_saved_in_block(row)
        spread = float(self._sectors[row] / self._threads[row])
        return 0.0 if spread >= _SCATTERED or self._are_neighbours(row) else 1.0 - spread

    def _count_sums(self, row: int) -> float:
        """Turns of a loop whose atomic stays at one address and gives no value back; 1 of others."""
        flow = build_flow(self._subject.rows, int(self._subject.rows.function_index[row]))
        if flow is None or self._returns_value(row):
            return 1.0
        own = row - flow.first_row
        loop = int(flow.graph.innermost_loop[flow.block_of[own]])
        address = find_address_operand(flow, own)
        if loop < 0 or address is None or not is_invariant_address(flow, own, address, loop):
            return 1.0
        return count_innermost_turns(self._subject.rows, row)

    def _find_private_copy(self, row: int) -> "_PrivateCopy | None":
        """A private histogram of each block in shared memory; None if its size is unknown or too large, or it saves nothing."""
        subject = self._subject
        proven = None if self._returns_value(row) else count_addresses(subject.rows, row)
        addresses = self._guess_addresses(row) if proven is None and not self._returns_value(row) else proven
        architecture = subject.kernel.architecture
        if architecture is None or not self._blocks or addresses is None or addresses < _LEAST_SECTORS:
            return None
        size_bytes = addresses * count_access_bytes(subject.rows.mnemonic(row))
        touched = float(self._sectors[row]) * float(subject.rows.executions[row])
        left = self._blocks * size_bytes / SECTOR_BYTES / max(1.0, touched)
        if size_bytes > architecture.occupancy.default_shared_per_block_bytes.value or left >= 1:
            return None
        is_proven = proven is not None
        return _PrivateCopy(addresses=addresses, is_proven=is_proven, size_bytes=size_bytes, sectors_left=left)

    def _guess_addresses(self, row: int) -> int | None:
        """Addresses whose sectors the threads of a warp, each at one of them by chance, meet on as often as they do; None where they do not queue."""
        distinct, threads = float(self._sectors[row]), float(self._threads[row])
        is_apart = distinct < _LEAST_SECTORS or distinct >= _SCATTERED * threads
        if is_apart or self._are_neighbours(row) or not has_queueing_atomics(self._subject):
            return None
        return count_places(distinct, threads) * SECTOR_BYTES // count_access_bytes(self._subject.rows.mnemonic(row))

    def _are_neighbours(self, row: int) -> bool:
        """Whether each thread has a neighbouring word of its own."""
        spread = float(self._sectors[row] / self._threads[row])
        each = count_access_bytes(self._subject.rows.mnemonic(row)) / SECTOR_BYTES
        return abs(spread - each) <= _TOLERANCE * each and self._threads[row] * each >= _LEAST_SECTORS

    def count_work_left(self) -> dict[str, float]:
        """Unit → the part of its work that stays."""
        rows = self._subject.rows
        executed = self._subject.executed
        gone, passes, added = (
            np.zeros(len(rows)),
            np.where(self.is_shared, self.saved, 0.0),
            dict.fromkeys(("shared", "lsu", "fma"), 0.0),
        )
        for row, turns in self._turns.items():
            gone[row] = 1 - 1 / turns
            passes[row] = 1 - (1 - passes[row]) / turns
            if self.is_shared[row]:  # A warp adds up by shuffles
                added["lsu"] += _SHUFFLES * float(executed[row]) / turns
                added["fma"] += _SHUFFLES * float(executed[row]) / turns
        asked = np.where(self.is_global, executed * self._threads, 0.0)
        stays = np.maximum(1 - self.saved, _ATOMICS_LEFT)
        for row, sums in self._sums.items():
            stays[row] = max(1 - float(self.saved[row]), _ATOMICS_LEFT / sums)
            gone[row] = max(float(gone[row]), 1 - 1 / sums)
        for row, private in self._private.items():
            now = count_passes(min(float(self._threads[row]), private.addresses), private.addresses)
            stays[row], gone[row] = max(private.sectors_left / now, _ATOMICS_LEFT), 1 - private.sectors_left
            added["shared"] += now * float(executed[row])
            added["lsu"] += float(executed[row])
        left = {"l2_slice": float((asked * stays).sum()) / float(asked.sum())} if asked.any() else {}
        sectors = self._subject.metric("lts__t_sectors_srcunit_tex.sum")
        if sectors and self._private:
            fewer = float(np.nansum(np.where(self.is_global, gone * self._sectors * executed, 0.0)))
            left["l2"] = max(0.0, 1 - fewer / self._subject.run_count / sectors)
        return {**left, **count_work_left(self._subject, executions=gone, wavefronts=passes, added=added)}

    def measure_added(self) -> float:
        """Part of the warps' time that one wait of each adds: for the places that its block reserves together."""
        saved = np.flatnonzero(self.is_global & (self.saved > 0)).tolist()
        warps = (self._warps or 0) * (self._blocks or 0) if any(map(self._returns_value, saved)) else 0
        return measure_filling(self._subject, float(warps))

    def _find_saved_in_block(self, row: int) -> float:
        """Share of atomics saved in a block: all but one of the warps that make one with one thread each."""
        if self._warps is None or not self._blocks:
            return 1.0
        making = min(float(self._warps), float(self._subject.rows.executions[row]) / self._blocks)
        return 1.0 - 1.0 / max(making, 1.0)

    def _count_turns(self, row: int) -> None:
        """A compare-and-swap that is tried until it succeeds saves all tries after the first, with the loop around it."""
        if not _COMPARE_AND_SWAP & read_modifiers(self._subject.rows.mnemonic(row)):
            return
        turns = count_innermost_turns(self._subject.rows, row)
        if turns < _LEAST_TURNS:
            return
        for one in self._subject.scopes.rows_of(self._subject.scopes.loop_of(row)).tolist():
            self._turns[one] = max(turns, self._turns.get(one, 1.0))
            if self.is_shared[row]:
                self._tries.add(one)
            self.saved[one] = max(float(self.saved[one]), 1.0 - 1.0 / turns)

    def write_note(self, def_row: int, _use_row: int) -> Sentence:
        """Threads and sectors of one atomic."""
        if def_row in self._turns:
            return say("{attempts} each", attempts=number(self._turns[def_row], "attempt"))
        if self.is_shared[def_row] or np.isnan(self._sectors[def_row]):
            return NOTHING
        return say(
            "{threads} in {sectors}",
            threads=number(float(self._threads[def_row]), "thread"),
            sectors=number(float(self._sectors[def_row]), "sector"),
        )

    def write_hint(self, _scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        """The atomics of a region."""
        return describe_causes(hotspots, self._write_sentence)

    def _write_sentence(self, row: int) -> Sentence:
        place = locate(self._subject, row)
        if row in self._turns:
            return say(
                "The atomic {place} takes {attempts} to succeed, because other threads change the value in between.",
                place=place,
                attempts=number(self._turns[row], "attempt"),
            )
        if self.is_shared[row]:
            return say("The shared-memory atomic {place} serializes threads that use the same address.", place=place)
        if np.isnan(self._sectors[row]):
            return say("Warps are stalled on the global atomic {place}.", place=place)
        if self._threads[row] < _LEAST_THREADS:
            return say(
                "One thread per warp does the atomic {place}, and the warps of a block queue for it.", place=place
            )
        return say(
            "The atomic {place} is done by {threads} per warp in {sectors}.",
            place=place,
            threads=number(float(self._threads[row]), "thread"),
            sectors=number(float(self._sectors[row]), "sector"),
        )

    def write_remedy(self, row: int) -> Sentence:
        """Write the remedy for the atomic with most stalls."""
        if row in self._tries:
            return say(
                "Add up in registers, then in the warp ({shuffle}), and let one thread of each warp do the atomic: each repeats it until no other "
                "thread comes in between.",
                shuffle=Code(text="__shfl_down_sync"),
            )
        if row in self._turns:
            return say(
                "Use a hardware atomic for this operation and type instead of a compare-and-swap loop, or aggregate in the warp or block first."
            )
        if self.is_shared[row]:
            return say(
                "Aggregate in the warp first ({match}, shuffles), or give each warp private counters and add those up at the end.",
                match=Code(text="__match_any_sync"),
            )
        if self._returns_value(row):
            return _RESERVE_PLACES
        if row in self._private:
            private = self._private[row]
            return say(
                "{known} {addresses}: count in {size} of shared memory for each block, and add the counts up once at its end.",
                known="The code leaves at most" if private.is_proven else "Warps meet as if on",
                addresses=count(private.addresses, "address"),
                size=size(private.size_bytes),
            )
        if self._threads[row] < _LEAST_THREADS:
            return say(
                "Aggregate in shared memory first: one global atomic per address and block instead of one per warp."
            )
        return say(
            "Aggregate before the global atomic: in the warp ({reduce}, shuffles) if all threads share one address, in shared-memory counters "
            "if they share a few; then do one per address and block.",
            reduce=Code(text="__reduce_add_sync"),
        )

    def _returns_value(self, row: int) -> bool:
        """Whether the old value goes to a register: each thread needs its own, so a sum alone does not do."""
        instructions = self._subject.rows.function_of(row).instructions
        if instructions is None:
            return False
        writes = instructions.writes.of(self._subject.rows.index_of(row))
        return any(resource >> 8 == ResourceKind.REGISTER for resource in writes)


OPTIMIZER = Optimizer(
    name="atomic_contention",
    title="Reduce atomic contention",
    group="atomics",
    find=match,
)
