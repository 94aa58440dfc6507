"""Local memory: registers that did not fit, and arrays that could not be kept in registers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_regions, find_edges
from gpa_lsp.advice.hint_words import list_counts, locate
from gpa_lsp.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.advice.model import Advice, Category, Hotspot, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.pricing import price_elimination
from gpa_lsp.advice.register_limits import RegisterLimits, find_register_limits
from gpa_lsp.advice.source_words import quote, read_parts
from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.prose import count, say
from gpa_lsp.binary.opcodes import Access, MemorySpace
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.dataflow.accesses import mark_accesses
from gpa_lsp.dataflow.local_accesses import LocalAccess, LocalUse, find_local_accesses
from gpa_lsp.rows.scopes import Scope

_ARRAY_STALLS = (BlameCategory.MEMORY_LOCAL, BlameCategory.MEMORY_THROTTLE, BlameCategory.WRITE_AFTER_READ)
"""What an array elsewhere would not wait for; its accesses stay, whereas a spill's go."""

_MOST_NAMED = 3


class RegisterReuse(EliminationOptimizer):
    """Stalls of local memory that more registers, shorter lives of values, or another home for an array would not have.

    Matched: everything blamed on stores and reloads of spilled registers, and the waits for accesses to arrays in local memory. Registers saved
    for a caller are not matched: inlining or fewer live values are the remedy for those.

    Source: GPA Table II, Register Reuse (memory dependency stalls of local memory); spills told from arrays by their addresses.
    """

    name: ClassVar[str] = "register_reuse"
    title: ClassVar[str] = "Less local memory"
    category: ClassVar[Category] = Category.BINARY
    group: ClassVar[str] = "registers"

    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price; what has to be changed depends on what local memory is used for."""
        found = self.match(subject)
        if isinstance(found, Silence):
            return found
        category = _choose_category(subject, find_local_accesses(subject.rows))
        return price_elimination(subject, replace(self.label, category=category), found)

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find accesses to local memory that somebody waits for."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        accesses = find_local_accesses(subject.rows)
        saved = [one for one in accesses if one.use is LocalUse.SAVED_REGISTER]
        if not accesses and (generic := _match_generic(subject)) is not None:
            return generic
        if len(saved) == len(accesses):
            message = f"none of the {len(subject.rows):,} instructions accesses local memory"
            if saved:
                message = f"all {len(saved)} accesses to local memory save registers for callers"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        regions = _build_regions(subject, accesses)
        if not regions:
            message = f"{len(accesses) - len(saved)} accesses to local memory cost none of the {subject.total_samples:,} samples"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        uses = {one.use for one in accesses}
        return EliminationMatch(
            regions=regions,
            hint=regions[0].hint,
            caveats=_list_caveats(subject, uses),
            reasons=(_count_uses(accesses),),
        )


def _match_generic(subject: Subject) -> EliminationMatch | None:
    """Local memory behind generic addresses, which only counters tell: arrays that a debug build, or code with pointers to them, keeps there."""
    sectors = subject.rows.counter("local_sectors")
    if sectors is None:
        return None
    generic = mark_accesses(subject.rows, (MemorySpace.GENERIC,), (Access.LOAD, Access.STORE)) & (sectors > 0)
    edges = find_edges(subject, generic)
    if not len(edges):
        return None
    moved = int(sectors[generic].sum())
    return EliminationMatch(
        regions=build_regions(subject, edges, np.ones(len(edges))),
        hint=say(
            "Keep the arrays that threads index here in registers: constant indices and unrolled loops, no pointers to them; or read what they hold "
            "from where it came."
        ),
        caveats=(say("Arrays that stay indexed at run time belong into shared memory."),),
        reasons=(say("{sectors} of local memory behind generic addresses", sectors=count(moved, "sector")),),
    )


def _build_regions(subject: Subject, accesses: Sequence[LocalAccess]) -> tuple[EliminationRegion, ...]:
    by_row = {one.row: one for one in accesses}
    spills = find_edges(subject, _mark(subject, (one.row for one in accesses if one.use is LocalUse.SPILL)))
    arrays = find_edges(subject, _mark(subject, (one.row for one in accesses if one.use is LocalUse.ARRAY)))
    arrays = arrays[np.isin(subject.blame.edges.category[arrays], _ARRAY_STALLS)]
    limits = find_register_limits(subject)

    def advise_spills(scope: Scope, hotspots: Sequence[Hotspot]) -> str:
        inside = [one for one in accesses if one.use is LocalUse.SPILL]
        return _advise_spills(subject, scope, hotspots, inside, limits)

    def advise_arrays(_: Scope, hotspots: Sequence[Hotspot]) -> str:
        return _advise_arrays(subject, [by_row[one.def_row] for one in hotspots], accesses)

    regions = [
        *build_regions(subject, spills, np.ones(len(spills)), write_hint=advise_spills),
        *build_regions(subject, arrays, np.ones(len(arrays)), write_hint=advise_arrays),
    ]
    return tuple(sorted(regions, key=lambda region: (-region.samples, region.scope.row)))


def _mark(subject: Subject, rows: Iterable[int]) -> npt.NDArray[np.bool_]:
    marked = np.zeros(len(subject.rows), dtype=np.bool_)
    marked[list(rows)] = True
    return marked


def _choose_category(subject: Subject, accesses: Sequence[LocalAccess]) -> Category:
    """BINARY where a bound or a flag limits the registers and most of the matched samples are spills; CODE otherwise."""
    limits = find_register_limits(subject)
    by_cause = np.bincount(
        subject.blame.edges.def_row, weights=subject.blame.edges.all_samples, minlength=len(subject.rows)
    )
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
) -> str:
    slots = {slot for one in spills for slot in _list_slots(subject, one)}
    sentences = [
        "One value of 4 bytes does not fit into the registers and travels through local memory."
        if len(slots) == 1
        else f"{len(slots)} values of 4 bytes do not fit into registers and travel through local memory."
    ]
    values = _name_values(subject, hotspots, spills)
    if values:
        sentences.append(f"The most waited for: {'; '.join(values)}.")
    if limits is not None:
        sentences.append(limits.advise(len(slots)))
    loop = " of the loop" if scope.last_line is not None else ""
    sentences.append(f"Otherwise keep fewer values alive at once: split the body{loop}, or compute cheap ones again.")
    return " ".join(sentences)


def _name_values(subject: Subject, hotspots: Sequence[Hotspot], spills: Sequence[LocalAccess]) -> list[str]:
    """The spilled values behind some hotspots, by the instruction and line that computed them."""
    by_slot = {slot: one for one in spills if one.is_store for slot in _list_slots(subject, one)}
    by_row = {one.row: one for one in spills}
    names: dict[str, None] = {}
    for hotspot in hotspots:
        access = by_row[hotspot.def_row]
        slots = _list_slots(subject, access)
        store = access if access.is_store else next((by_slot[slot] for slot in slots if slot in by_slot), None)
        if store is None or store.value_row is None:
            continue
        names[_name_value(subject, store.value_row)] = None
        if len(names) == _MOST_NAMED:
            break
    return list(names)


def _list_slots(subject: Subject, access: LocalAccess) -> list[tuple[int, int]]:
    """The words an access touches: their routine and offset, because each routine has a frame of its own."""
    routine = subject.scopes.routine_of(access.row)
    return [(routine, slot) for slot in access.slots]


def _name_value(subject: Subject, row: int) -> str:
    parts = read_parts(subject, row)
    place = locate(subject, row)
    name = subject.rows.opcode(row).name
    if parts is not None and len(parts.assigned) == 1:
        return f"`{parts.assigned[0]}`, computed {place} ({name})"
    return f"the result of {name} {place}"


def _advise_arrays(subject: Subject, waited: Sequence[LocalAccess], accesses: Sequence[LocalAccess]) -> str:
    routine = subject.scopes.routine_of(waited[0].row)
    of_routine = [
        one for one in accesses if one.use is LocalUse.ARRAY and subject.scopes.routine_of(one.row) == routine
    ]
    indexed = next((one for one in [*waited, *of_routine] if one.is_indexed), None)
    shown = indexed or waited[0]
    parts = read_parts(subject, shown.row)
    names = tuple(dict.fromkeys([*parts.loads, *parts.stores])) if parts is not None else ()
    what = f" ({quote(names)})" if names else ""
    place = locate(subject, shown.row)
    if indexed is None:
        return (
            f"The variable accessed {place}{what} lives in local memory because something takes its address. "
            "Pass it by value, or let the function that takes the address be inlined."
        )
    return (
        f"The array accessed {place}{what} lives in local memory because its index is not known when the code is compiled. "
        "Unroll the loops that index it completely, so that it fits into registers, or give each thread a column of shared memory."
    )


def _count_uses(accesses: Sequence[LocalAccess]) -> str:
    return list_counts(
        (sum(one.use is use for one in accesses), singular, plural)
        for use, singular, plural in (
            (LocalUse.SPILL, "store or reload of a spilled value", "stores and reloads of spilled values"),
            (LocalUse.ARRAY, "access to an array", "accesses to arrays"),
            (LocalUse.SAVED_REGISTER, "of a register saved for callers", "of registers saved for callers"),
        )
    )


def _list_caveats(subject: Subject, uses: set[LocalUse]) -> tuple[str, ...]:
    caveats = []
    limits = find_register_limits(subject)
    if LocalUse.SPILL in uses and limits is not None and limits.is_bounded_by_flag:
        caveats.append("More registers per thread can leave room for fewer warps.")
    if LocalUse.ARRAY in uses:
        caveats.append(
            "An array in shared memory takes room from other blocks, and its layout has to avoid bank conflicts."
        )
    return tuple(caveats)


OPTIMIZER = RegisterReuse()
