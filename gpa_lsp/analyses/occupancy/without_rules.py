"""What can be said of occupancy where there is no launch, or no table of the architecture."""

from gpa_lsp.analyses.answers import Answer, Bar, Missing
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.analyses.occupancy.launch import read_amount, read_code_shape
from gpa_lsp.analyses.occupancy.tables import tabulate_block_sizes

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
            "the architecture is not known"
            if architecture is None
            else "the code does not say how many registers it uses"
        )
        return _know_nothing(Missing(what="occupancy", why=why))
    table, chart = tabulate_block_sizes(architecture, block, None, is_current=False)
    best = max(int(row[2] or 0) for row in table.rows)
    sizes = [str(row[0]) for row in table.rows if row[2] == best]
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=(
            f"With {block.registers_per_thread} registers per thread and {block.shared_bytes:,} bytes of static shared memory at most {best} of "
            f"{architecture.occupancy.max_warps_per_sm.value} warps fit into an SM, in blocks of {', '.join(sizes)} threads."
        ),
        tables=(table,),
        charts=(chart,),
        missing=(Missing(what="the size of a block and its dynamic shared memory", why="nothing was launched"),),
    )


def answer_from_counters(facts: KernelFacts) -> Answer:
    """What the report itself says, where the rules cannot be applied."""
    theoretical, achieved = read_amount(facts, THEORETICAL), read_achieved(facts)
    why = (
        f"there is no table of compute capability {_say_capability(facts)}"
        if facts.architecture is None
        else "the profile does not say how many registers, how much shared memory and how many threads a block has, or nothing sensible"
    )
    missing = Missing(what="what limits the occupancy", why=why)
    if theoretical is None and achieved is None:
        return _know_nothing(missing, lack("occupancy", THEORETICAL, ACHIEVED, section="Occupancy", needs_all=True))
    parts = []
    if theoretical is not None:
        parts.append(f"{theoretical:.3g} % of an SM's warps fit")
    if achieved is not None:
        parts.append(f"{100 * achieved:.3g} % were resident on average")
    summary = ", and ".join(parts) + ", by the profiler's counters."
    ratio = None if theoretical is None else theoretical / 100
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=summary[0].upper() + summary[1:],
        bars=draw_bars(ratio, achieved),
        missing=(missing,),
    )


def _know_nothing(*missing: Missing) -> Answer:
    return Answer(
        analysis=NAME,
        title=TITLE,
        summary=f"Occupancy is unknown: {missing[0].why}.",
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
