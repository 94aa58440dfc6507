"""Values that found no register and travel through local memory, by the variable they belong to."""

from collections.abc import Iterator, Sequence

from gpa_lsp.advice.hint_words import list_counts
from gpa_lsp.advice.source_words import read_parts
from gpa_lsp.advice.static_checks import StaticCheck
from gpa_lsp.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.analyses.static.model import BlockOrigin
from gpa_lsp.dataflow.local_accesses import LocalAccess, find_spills, list_slots

NAME = "spills"

_AT_THE_LIMIT = 2
"""A kernel with so many registers less than the architecture's most is at that limit: pairs need an even start."""


def find_spilled_values(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line that computes spilled values; those whose origin is not found close by stand on the line of their store."""
    spills = find_spills(facts.subject.rows, facts.limits)
    stores = [one for one in spills if one.is_store]
    loads: dict[tuple[int, int], list[int]] = {}
    for access in spills:
        for slot in () if access.is_store else list_slots(facts.subject.rows, access):
            loads.setdefault(slot, []).append(access.row)
    by_anchor: dict[int, list[LocalAccess]] = {}
    for store in stores:
        anchor = store.row if store.value_row is None else store.value_row
        by_anchor.setdefault(anchor, []).append(store)
    for anchors in facts.group_by_line(by_anchor):
        members = [store for anchor in anchors for store in by_anchor[anchor]]
        slots = {slot for store in members for slot in list_slots(facts.subject.rows, store)}
        reloads = sorted({row for slot in slots for row in loads.get(slot, ())})
        yield _report(facts, anchors[0], members, reloads, len(slots))


def _report(
    facts: StaticFacts, anchor: int, stores: Sequence[LocalAccess], reloads: Sequence[int], slots: int
) -> StaticFinding:
    is_known = any(store.value_row is not None for store in stores)
    counted = list_counts([(len(stores), "store", "stores"), (len(reloads), "reload", "reloads")])
    in_loops = sum(facts.count_loops(row) > 0 for row in [*(store.row for store in stores), *reloads])
    loops = f", {in_loops} of them in loops" if in_loops else ""
    values = f"{slots} values of 4 bytes" if slots != 1 else "a value of 4 bytes"
    subject = _name_variable(facts, anchor) if is_known else ""
    what = f"{subject} does not fit into the registers: {values}" if subject else f"{values} found no register"
    if not subject and is_known:
        what = f"{values} computed here found no register"
    return facts.make_finding(
        NAME,
        [*(store.row for store in stores), *reloads],
        message=f"{what[:1].upper()}{what[1:]} through local memory and back ({counted}{loops}).",
        remedy=_choose_remedy(facts),
        anchor=anchor,
    )


def _name_variable(facts: StaticFacts, row: int) -> str:
    """The variable or element the line gives a value, in code quotes; empty where it is not one."""
    parts = read_parts(facts.subject, row)
    if parts is None:
        return ""
    names = parts.assigned or parts.stores
    return f"`{names[0]}`" if len(names) == 1 else ""


def _choose_remedy(facts: StaticFacts) -> str:
    """Which bound to change, where there is one; else fewer values."""
    statics, architecture = facts.statics, facts.subject.kernel.architecture
    fewer = "Keep fewer values alive at once: split the body, or compute cheap ones again."
    if architecture is None or statics.register_cap is None:
        return fewer
    if statics.register_cap >= architecture.occupancy.max_registers_per_thread.value - _AT_THE_LIMIT:
        return f"The compiler used all the registers there are. {fewer}"
    cap = f"The compiler is held to {statics.register_cap} registers per thread"
    bound = statics.most_threads
    if bound is None:
        return f"{cap} by a flag: raise -maxrregcount. {fewer}"
    block = statics.block
    if block is not None and block.origin is not BlockOrigin.BOUND and block.threads < bound:
        return f"{cap} by `__launch_bounds__({bound})`, but its blocks have {block.threads} threads: say so in the bound. {fewer}"
    return f"{cap} by `__launch_bounds__({bound})`: a smaller bound leaves more, where blocks can be smaller. {fewer}"


STATIC_CHECK = StaticCheck(name=NAME, title="Register spill", find=find_spilled_values)
