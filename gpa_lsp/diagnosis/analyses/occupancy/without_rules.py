"""What can be said of occupancy where there is no launch, or no table of the architecture."""

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Missing
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.occupancy.launch import read_amount, read_code_shape
from gpa_lsp.diagnosis.analyses.occupancy.tables import tabulate_block_sizes
from gpa_lsp.foundation.prose import capitalize, count, join, list_of, percent, say, size

NAME = "occupancy"
TITLE = "Occupancy"

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"


def answer_from_code(facts: KernelFacts) -> Answer:
    """Without a launch: what blocks of every size would have, with the registers and the static shared memory of the code."""
    architecture = facts.architecture
    function = facts.kernel.functions[0].function if facts.kernel.functions else None
    block = None if architecture is None else read_code_shape(architecture, function)
    if architecture is None or block is None:
        why = (
            "the architecture is unknown"
            if architecture is None
            else "the code does not say how many registers it uses"
        )
        return _know_nothing(Missing(what="occupancy", why=say(why)))
    table, chart = tabulate_block_sizes(architecture, block, None, is_current=False)
    best = max(int(row[2] or 0) for row in table.rows)
    sizes = [say("{threads}", threads=count(int(row[0] or 0))) for row in table.rows if row[2] == best]
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=say(
            "With {registers} per thread and {shared} of static shared memory at most {best} of {most} fit on an SM, in blocks of {sizes} threads.",
            registers=count(block.registers_per_thread, "register"),
            shared=size(block.shared_bytes),
            best=count(best),
            most=count(architecture.occupancy.max_warps_per_sm.value, "warp"),
            sizes=list_of(sizes, last="or"),
        ),
        tables=(table,),
        charts=(chart,),
        missing=(Missing(what="the size of a block and its dynamic shared memory", why=say("nothing was launched")),),
    )


def answer_from_counters(facts: KernelFacts) -> Answer:
    """What the report itself says, where the rules cannot be applied."""
    theoretical, achieved = read_amount(facts, THEORETICAL), read_achieved(facts)
    if facts.architecture is None:
        why = say("there is no table of compute capability {capability}", capability=_say_capability(facts))
    else:
        why = say("the profile does not state the registers, shared memory and threads of a block, or states nonsense")
    missing = Missing(what="what limits the occupancy", why=why)
    if theoretical is None and achieved is None:
        return _know_nothing(missing, lack("occupancy", THEORETICAL, ACHIEVED, section="Occupancy", needs_all=True))
    parts = []
    if theoretical is not None:
        parts.append(say("{share} of an SM's warps fit", share=percent(theoretical / 100)))
    if achieved is not None:
        parts.append(say("{share} were resident on average", share=percent(achieved)))
    ratio = None if theoretical is None else theoretical / 100
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=capitalize(say("{parts}, by the profiler's counters.", parts=join(parts, ", and "))),
        bars=draw_bars(ratio, achieved),
        missing=(missing,),
    )


def _know_nothing(*missing: Missing) -> Answer:
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=say("Occupancy is unknown: {why}.", why=missing[0].why),
        missing=missing,
        is_known=False,
    )


def draw_bars(theoretical: float | None, achieved: float | None) -> tuple[Bar, ...]:
    """What fits, and what was there; parts of the warps of an SM, None where unknown."""
    bars = []
    if theoretical is not None:
        bars.append(Bar(label="theoretical", ratio=min(1.0, theoretical)))
    if achieved is not None:
        ceiling = 1.0 if theoretical is None else min(1.0, theoretical)
        bars.append(Bar(label="achieved", ratio=achieved, ceiling_ratio=ceiling))
    return tuple(bars)


def read_achieved(facts: KernelFacts) -> float | None:
    """Resident warps of those an SM can have, on average while it is active; None when not collected."""
    percent = read_amount(facts, ACHIEVED)
    return None if percent is None else min(1.0, percent / 100)


def _say_capability(facts: KernelFacts) -> str:
    capability = facts.kernel.device.compute_capability
    return "unknown" if capability is None else f"{capability[0]}.{capability[1]}"
