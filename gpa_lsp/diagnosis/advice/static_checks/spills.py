"""Values that found no register and travel through local memory, by the variable they belong to."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.advice.naming import name_code, read_parts
from gpa_lsp.diagnosis.advice.residency import LIMIT_SLACK_REGISTERS
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, say
from gpa_lsp.kernel.dataflow.local_accesses import LocalAccess, find_spills, list_slots

NAME = "spills"


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
    counts = {"store": len(stores), "reload": len(reloads)}
    in_loops = sum(facts.count_loops(row) > 0 for row in [*(store.row for store in stores), *reloads])
    values = count(slots, "value")
    variable = _name_variable(facts, anchor) if is_known else NOTHING
    if variable:
        what = say("{variable} does not fit into registers: {values} of 4 bytes", variable=variable, values=values)
    else:
        what = say("{values} of 4 bytes{here}", values=values, here=" computed here" if is_known else "")
    return facts.make_finding(
        NAME,
        [*(store.row for store in stores), *reloads],
        message=say(
            "{what} spilled to local memory ({accesses}{loops}).",
            what=what,
            accesses=join((say("{n}", n=count(present, noun)) for noun, present in counts.items() if present), ", "),
            loops=say(", {n} in loops", n=count(in_loops)) if in_loops else NOTHING,
        ),
        remedy=_choose_remedy(facts),
        anchor=anchor,
    )


def _name_variable(facts: StaticFacts, row: int) -> Sentence:
    """The variable or element the line gives a value; empty where it is not one."""
    parts = read_parts(facts.subject, row)
    if parts is None:
        return NOTHING
    names = parts.assigned or parts.stores
    return name_code(names[0]) if len(names) == 1 else NOTHING


def _choose_remedy(facts: StaticFacts) -> Sentence:
    """Choose the bound to change, where there is one; else fewer values."""
    statics, architecture = facts.statics, facts.subject.kernel.architecture
    fewer = say("Keep fewer values live: split the body, or recompute cheap ones.")
    if architecture is None or statics.register_cap is None:
        return fewer
    if statics.register_cap >= architecture.occupancy.max_registers_per_thread.value - LIMIT_SLACK_REGISTERS:
        return say("All registers are in use. {fewer}", fewer=fewer)
    cap, bound = count(statics.register_cap, "register"), statics.most_threads
    if bound is None:
        option = Code(text="-maxrregcount")
        return say(
            "A flag holds the compiler to {cap} per thread: raise {option}. {fewer}",
            cap=cap,
            option=option,
            fewer=fewer,
        )
    held = say(
        "{bound} holds the compiler to {cap} per thread", bound=Code(text=f"__launch_bounds__({bound})"), cap=cap
    )
    block = statics.block
    if block is not None and block.origin is not BlockOrigin.BOUND and block.threads < bound:
        threads = count(block.threads, "thread")
        return say(
            "{held}, but blocks have {threads}: lower the bound. {fewer}", held=held, threads=threads, fewer=fewer
        )
    return say("{held}: a smaller bound leaves more, if blocks can be smaller. {fewer}", held=held, fewer=fewer)


STATIC_CHECK = StaticCheck(name=NAME, title="Register spill", find=find_spilled_values)
