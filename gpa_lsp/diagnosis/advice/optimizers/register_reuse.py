"""Local memory: registers that did not fit, and arrays that could not be kept in registers."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges, rank_regions
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.model import Category, Hotspot
from gpa_lsp.diagnosis.advice.naming import LOCAL_CAUSES, LOCAL_REMEDIES, locate, name_code, quote, read_parts
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.residency import LIMIT_SLACK_REGISTERS, describe_block
from gpa_lsp.diagnosis.advice.traffic_floor import measure_local_traffic
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, join, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import find_occupancy
from gpa_lsp.kernel.dataflow.accesses import mark_accesses
from gpa_lsp.kernel.dataflow.local_accesses import LocalAccess, LocalUse, find_local_accesses, list_slots
from gpa_lsp.kernel.scopes import Scope

# What keeps a kernel from having more registers, and how many more it could have.

_COMPILER_STEP = 8  # ptxas raises a bound to a multiple of this


class RegisterLimits(Struct, frozen=True, kw_only=True):
    """Registers of a kernel that spills."""

    registers: int  # per thread, now
    most_registers: int  # per thread that the architecture can name
    # threads per block that a launch bound of exactly these registers allows; None when no whole number of warps does
    bound_threads: int | None
    block_threads: int  # of the launch
    most_for_block: int  # registers per thread with which one block of the launch still fits
    # registers per thread with which as many warps stay resident as now; None when the launch does not say enough
    most_for_residency: int | None
    resident_warps: int | None  # per SM, now; None when the launch does not say enough

    @property
    def is_bounded_by_flag(self) -> bool:
        """A compiler that spills below the architecture's limit was told to."""
        return self.registers < self.most_registers - LIMIT_SLACK_REGISTERS and self.most_for_block > self.registers

    def advise(self, spilled: int) -> Sentence:
        """Advise on the bound to change, for that many values of 4 bytes: a sentence without its full stop."""
        registers = count(self.registers, "register")
        if not self.is_bounded_by_flag:
            if self.registers >= self.most_registers - LIMIT_SLACK_REGISTERS:
                return say("All {registers} of a thread are in use, so no flag helps", registers=registers)
            return say(
                "Blocks of {threads} leave {registers} per thread (smaller ones more), so no flag helps",
                registers=registers,
                threads=count(self.block_threads, "thread"),
            )
        return say(
            "The compiler is held to {registers} per thread{bound}, for blocks of {threads}: declare {launch_bounds} or raise {option} to "
            "about {wanted}{cost}",
            threads=count(self.block_threads),
            registers=registers,
            bound=say(" by a bound of {threads}", threads=count(self.bound_threads, "thread"))
            if self.bound_threads
            else NOTHING,
            launch_bounds=Code(text=f"__launch_bounds__({self.block_threads})"),
            option=Code(text="-maxrregcount"),
            wanted=count(min(self.registers + spilled, self.most_for_block)),
            cost=self._describe_cost(),
        )

    def _describe_cost(self) -> Sentence:
        """Describe the effect of more registers on resident warps; empty where the launch does not say enough."""
        if self.most_for_residency is None or self.resident_warps is None:
            return NOTHING
        warps = count(self.resident_warps, "warp")
        if self.most_for_residency > self.registers:
            return say(" (up to {most} keep {warps} per SM resident)", most=count(self.most_for_residency), warps=warps)
        return say(" (any more leave fewer than {warps} per SM resident)", warps=warps)


def find_register_limits(subject: Subject) -> RegisterLimits | None:
    """The limits of a kernel; None without a launch, its registers, or a table of the architecture."""
    launch, architecture = subject.launch, subject.kernel.architecture
    if launch is None or architecture is None or not launch.registers_per_thread or launch.threads_per_block < 1:
        return None
    registers, threads = launch.registers_per_thread, launch.threads_per_block
    residency = _find_residency(subject, architecture)
    return RegisterLimits(
        registers=registers,
        most_registers=architecture.occupancy.max_registers_per_thread.value,
        bound_threads=_find_bound(architecture, registers),
        block_threads=threads,
        most_for_block=count_bound_registers(architecture, threads),
        most_for_residency=None if residency is None else residency[0],
        resident_warps=None if residency is None else residency[1],
    )


def count_bound_registers(architecture: Architecture, threads: int) -> int:
    """Registers a thread can have when blocks of so many threads must fit.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> count_bound_registers(find_architecture((8, 0)), 1024), count_bound_registers(find_architecture((8, 0)), 256)
    (64, 255)
    """
    rules = architecture.occupancy
    allowed = rules.registers_per_sm.value // max(threads, 1) // _COMPILER_STEP * _COMPILER_STEP
    return int(min(allowed, rules.max_registers_per_thread.value))


def _find_bound(architecture: Architecture, registers: int) -> int | None:
    """The largest block that a launch bound could have named to get so few registers."""
    warp = architecture.sm.warp_size_threads.value
    largest = architecture.occupancy.max_threads_per_block.value
    fitting = [
        threads
        for threads in range(warp, largest + 1, warp)
        if count_bound_registers(architecture, threads) == registers
    ]
    return max(fitting, default=None)


def _find_residency(subject: Subject, architecture: Architecture) -> tuple[int, int] | None:
    """Most registers that keep the resident warps, and those warps."""
    block = describe_block(subject)
    if block is None:
        return None

    def count_warps(registers: int) -> int:
        return find_occupancy(architecture, replace(block, registers_per_thread=registers)).warps_per_sm

    now = count_warps(block.registers_per_thread)
    # More registers never leave more warps.
    counts = range(block.registers_per_thread, architecture.occupancy.max_registers_per_thread.value + 1)
    kept = counts[: bisect_right(counts, -now, key=lambda count: -count_warps(count))]
    return max(kept, default=block.registers_per_thread), now


# What an array elsewhere would not wait for; its accesses stay, whereas a spill's go
_ARRAY_STALLS = (BlameCategory.MEMORY_LOCAL, BlameCategory.MEMORY_THROTTLE, BlameCategory.WRITE_AFTER_READ)

_MOST_NAMED = 3


def match(subject: Subject) -> Found:
    """Stalls of local memory that more registers, shorter lives of values, or another home for an array would not have.

    Matched: everything blamed on stores and reloads of spilled registers, and the waits for accesses to arrays in local memory. Registers saved
    for a caller are not matched: inlining or fewer live values are the remedy for those. Where a level of the memory limits the kernel, the
    price is that of the traffic that goes, by counters, which need no samples.

    Source: GPA Table II, Register Reuse (memory dependency stalls of local memory); spills told from arrays by their addresses.
    """
    accesses = find_local_accesses(subject.rows)
    saved = [one for one in accesses if one.use is LocalUse.SAVED_REGISTER]
    if not accesses and (generic := _match_generic(subject)) is not None:
        return generic
    if len(saved) == len(accesses) > 0:
        return say("{accesses}, all to registers saved for callers", accesses=count(len(saved), "local-memory access"))
    if not accesses:
        return say("none of the {rows} accesses local memory", rows=count(len(subject.rows), "instruction"))
    wanted = subject.rows.mark(one.row for one in accesses if one.use is not LocalUse.SAVED_REGISTER)
    regions = _build_regions(subject, accesses) if subject.total_samples else _count_regions(subject, accesses, wanted)
    if not regions:
        return say(
            "{accesses} caused none of the {samples}",
            accesses=count(len(accesses) - len(saved), "local-memory access"),
            samples=count(subject.total_samples, "sample"),
        )
    uses = {one.use for one in accesses}
    return EliminationMatch(
        category=_choose_category(subject, accesses),
        regions=regions,
        hint=regions[0].hint,
        caveats=_list_caveats(subject, uses),
        reasons=(_count_uses(accesses),),
        work=_count_work_left(subject, wanted),
    )


def _match_generic(subject: Subject) -> EliminationMatch | None:
    """Local memory behind generic addresses, which only counters tell: arrays that a debug build, or code with pointers to them, keeps there."""
    sectors = subject.rows.counter("local_sectors")
    if sectors is None:
        return None
    generic = mark_accesses(subject.rows, (MemorySpace.GENERIC,), (Access.LOAD, Access.STORE)) & (sectors > 0)
    edges = find_edges(subject, generic)
    if not generic.any() or (subject.total_samples and not len(edges)):
        return None
    moved = int(sectors[generic].sum())
    return EliminationMatch(
        category=_choose_category(subject, ()),
        regions=build_regions(subject, edges)
        if subject.total_samples
        else build_counted_regions(subject, np.where(generic, sectors, 0)),
        hint=say(
            "Keep the arrays that threads index here in registers: constant indices and unrolled loops, no pointers to them; or read what they hold "
            "from where it came."
        ),
        caveats=(say("Keep arrays with run-time indices in shared memory."),),
        reasons=(say("{sectors} of local memory behind generic addresses", sectors=count(moved, "sector")),),
        work=_count_work_left(subject, generic),
    )


def _count_work_left(subject: Subject, accesses: npt.NDArray[np.bool_]) -> Mapping[str, float]:
    """Unit → the part of its work that stays without some accesses; traffic only where it was counted."""
    return count_work_left(subject, executions=accesses.astype(np.float64)) | dict(
        measure_local_traffic(subject, accesses) or {}
    )


def _count_regions(
    subject: Subject, accesses: Sequence[LocalAccess], wanted: npt.NDArray[np.bool_]
) -> tuple[EliminationRegion, ...]:
    """Build regions without samples: the scopes by the sectors that they move."""
    sectors = subject.read_counter("local_sectors")
    if sectors is None:
        return ()
    by_row = {one.row: one for one in accesses}
    spills = [one for one in accesses if one.use is LocalUse.SPILL]
    limits = find_register_limits(subject)

    def describe(row: int) -> Sentence:
        if by_row[row].use is LocalUse.SPILL:
            scope = subject.scopes.scopes[int(subject.scopes.innermost[row])]
            return _advise_spills(subject, scope, (), spills, limits)
        return _advise_arrays(subject, [by_row[row]], accesses)

    return build_counted_regions(subject, np.where(wanted, sectors, 0), describe)


def _build_regions(subject: Subject, accesses: Sequence[LocalAccess]) -> tuple[EliminationRegion, ...]:
    by_row = {one.row: one for one in accesses}
    spills = find_edges(subject, subject.rows.mark(one.row for one in accesses if one.use is LocalUse.SPILL))
    arrays = find_edges(subject, subject.rows.mark(one.row for one in accesses if one.use is LocalUse.ARRAY))
    arrays = arrays[np.isin(subject.edges.category[arrays], _ARRAY_STALLS)]
    limits = find_register_limits(subject)

    def advise_spills(scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        return _advise_spills(subject, scope, hotspots, [one for one in accesses if one.use is LocalUse.SPILL], limits)

    def advise_arrays(_: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        return _advise_arrays(subject, [by_row[one.def_row] for one in hotspots], accesses)

    found = build_regions(subject, spills, write_hint=advise_spills)
    return rank_regions((*found, *build_regions(subject, arrays, write_hint=advise_arrays)))


def _choose_category(subject: Subject, accesses: Sequence[LocalAccess]) -> Category:
    """BINARY where a bound or a flag limits the registers and most of the matched samples are spills; CODE otherwise."""
    limits = find_register_limits(subject)
    by_cause = np.bincount(subject.edges.def_row, weights=subject.edges.all_samples, minlength=len(subject.rows))
    spilled = sum(float(by_cause[one.row]) for one in accesses if one.use is LocalUse.SPILL)
    array = sum(float(by_cause[one.row]) for one in accesses if one.use is LocalUse.ARRAY)
    is_bound = limits is not None and limits.is_bounded_by_flag
    return Category.BINARY if spilled >= array and is_bound else Category.CODE


def _advise_spills(
    subject: Subject,
    scope: Scope,
    hotspots: Sequence[Hotspot],
    spills: Sequence[LocalAccess],
    limits: RegisterLimits | None,
) -> Sentence:
    slots = {slot for one in spills for slot in list_slots(subject.rows, one)}
    values = _name_values(subject, hotspots, spills)
    spilled = say(
        "Spilled to local memory: {slots} of 4 bytes{most}.",
        slots=count(len(slots), "value"),
        most=say("; most stalls are on {values}", values=join(values, "; ")) if values else NOTHING,
    )
    body = "loop body" if scope.last_line is not None else "body"
    fewer = say("keep fewer values live (split the {body}, or recompute cheap ones).", body=body)
    if limits is None:
        return join([spilled, capitalize(fewer)])
    link = "; or" if limits.is_bounded_by_flag else ";"
    return say(
        "{spilled} {limits}{link} {fewer}", spilled=spilled, limits=limits.advise(len(slots)), link=link, fewer=fewer
    )


def _name_values(subject: Subject, hotspots: Sequence[Hotspot], spills: Sequence[LocalAccess]) -> list[Sentence]:
    """The spilled values behind some hotspots, by the instruction and line that computed them."""
    by_slot = {slot: one for one in spills if one.is_store for slot in list_slots(subject.rows, one)}
    by_row = {one.row: one for one in spills}
    names: dict[Sentence, None] = {}
    for hotspot in hotspots:
        access = by_row[hotspot.def_row]
        slots = list_slots(subject.rows, access)
        store = access if access.is_store else next((by_slot[slot] for slot in slots if slot in by_slot), None)
        if store is None or store.value_row is None:
            continue
        names[_name_value(subject, store.value_row)] = None
        if len(names) == _MOST_NAMED:
            break
    return list(names)


def _name_value(subject: Subject, row: int) -> Sentence:
    parts = read_parts(subject, row)
    place = locate(subject, row)
    name = subject.rows.opcode(row).name
    if parts is not None and len(parts.assigned) == 1:
        variable = name_code(parts.assigned[0])
        return say("{variable}, computed {place} ({opcode})", variable=variable, place=place, opcode=name)
    return say("the result of {opcode} {place}", opcode=name, place=place)


def _advise_arrays(subject: Subject, waited: Sequence[LocalAccess], accesses: Sequence[LocalAccess]) -> Sentence:
    routine = subject.scopes.routine_of(waited[0].row)
    of_routine = [
        one for one in accesses if one.use is LocalUse.ARRAY and subject.scopes.routine_of(one.row) == routine
    ]
    indexed = next((one for one in [*waited, *of_routine] if one.is_indexed), None)
    shown = indexed or waited[0]
    parts = read_parts(subject, shown.row)
    names = tuple(dict.fromkeys([*parts.loads, *parts.stores])) if parts is not None else ()
    what = say(" ({names})", names=quote(names)) if names else NOTHING
    return say(
        "The {kind} accessed {place}{what} is in local memory because {cause}. {change}",
        kind="variable" if indexed is None else "array",
        place=locate(subject, shown.row),
        what=what,
        cause=LOCAL_CAUSES[indexed is not None],
        change=LOCAL_REMEDIES[indexed is not None],
    )


def _count_uses(accesses: Sequence[LocalAccess]) -> Sentence:
    nouns = {
        LocalUse.SPILL: "spill access",
        LocalUse.ARRAY: "local-array access",
        LocalUse.SAVED_REGISTER: "saved-register access",
    }
    counts = ((noun, sum(one.use is use for one in accesses)) for use, noun in nouns.items())
    return join((say("{accesses}", accesses=count(present, noun)) for noun, present in counts if present), ", ")


def _list_caveats(subject: Subject, uses: set[LocalUse]) -> tuple[Sentence, ...]:
    caveats = []
    limits = find_register_limits(subject)
    if LocalUse.SPILL in uses and limits is not None and limits.is_bounded_by_flag:
        caveats.append(say("More registers per thread can lower occupancy."))
    if LocalUse.ARRAY in uses:
        caveats.append(
            say("An array in shared memory can lower occupancy, and its layout has to avoid bank conflicts.")
        )
    return tuple(caveats)


OPTIMIZER = Optimizer(
    name="register_reuse",
    title="Reduce local memory use",
    category=Category.BINARY,
    group="registers",
    needs_samples=False,
    find=match,
)
