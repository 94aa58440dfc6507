"""The tables of Starlight's answer: its Table 1 with estimates, the lines, the decision tree, and where each sample counts."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.analyses.answers import Column, Table, list_columns
from gpa_lsp.diagnosis.analyses.starlight.decision import Decision
from gpa_lsp.diagnosis.analyses.starlight.movement import LineEstimate, Outcome, Position, find_hottest, move_right
from gpa_lsp.diagnosis.analyses.starlight.suggestions import (
    Bottleneck,
    LineCounts,
    Part,
    Suggestion,
    find_row,
    list_rows,
    list_suggestions,
)
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, count, say

SUGGESTIONS_TITLE = "Starlight's suggestions"
OUR_ADVICE = "our advice"  # Heading of the column that names our optimizers for the same change, separated by ``, ``
NAMES_BETWEEN = ", "

MOST_LINES = 10  # Lines shown; what is cut is counted


def build_tables(lines: LineCounts, estimates: Sequence[LineEstimate], decision: Decision) -> tuple[Table, ...]:
    """All tables, in the order to be read."""
    tables = [build_suggestions(lines, estimates, decision)]
    if estimates:
        tables.append(build_lines(estimates, decision.position))
    tables.append(build_checks(decision))
    if len(lines):
        tables.append(build_parts(lines))
    return tuple(tables)


def build_suggestions(lines: LineCounts, estimates: Sequence[LineEstimate], decision: Decision) -> Table:
    """Table 1, a row for each suggestion: its stalls, the line on which it gains most, and our optimizers of the same kind."""
    total = lines.total
    rows: list[tuple[Cell, ...]] = []
    for suggestion in list_suggestions():
        hottest = find_hottest(estimates, suggestion.bottleneck)
        rows.append(
            (
                find_row(suggestion.bottleneck).title,
                suggestion.title,
                lines.count(suggestion.bottleneck) / total
                if total and suggestion.bottleneck is not Bottleneck.LOW_INTENSITY
                else None,
                "" if hottest is None else hottest.line.place,
                None if hottest is None else hottest.speedup,
                None if hottest is None or hottest.outcome is None else hottest.outcome.movement.to_ops_per_s,
                _describe_movement(suggestion, hottest, decision),
                NAMES_BETWEEN.join(suggestion.counterparts),
            )
        )
    return Table(
        title=SUGGESTIONS_TITLE,
        columns=(
            *list_columns("bottleneck", "suggestion"),
            Column(name="stalls", quantity=Quantity.RATIO),
            Column(name="line"),
            Column(name="speedup there", quantity=Quantity.FACTOR),
            Column(name="new rate", quantity=name_rate(decision.position)),
            *list_columns("on the chart", OUR_ADVICE),
        ),
        rows=tuple(rows),
        note=say(
            "Suggestions of one bottleneck count the same stalls; do not add their speedups. The lines are the stalled ones, not the causes."
        ),
    )


def build_lines(estimates: Sequence[LineEstimate], position: Position | None) -> Table:
    """The lines that gain most, with the three equations."""
    shown = estimates[:MOST_LINES]
    rest = len(estimates) - len(shown)
    return Table(
        title="Starlight's hot lines",
        columns=(
            Column(name="line"),
            Column(name="of the run time (Equation 2)", quantity=Quantity.RATIO),
            Column(name="bottleneck"),
            Column(name="stalls", quantity=Quantity.SAMPLES),
            Column(name="speedup (Equation 3)", quantity=Quantity.FACTOR),
            *list_columns("new rate (Equation 4)", "below the ceiling", quantity=name_rate(position)),
        ),
        rows=tuple(
            (
                one.line.place,
                one.share_ratio,
                one.row.title,
                one.removed,
                one.speedup,
                None if one.outcome is None else one.outcome.uncapped_ops_per_s,
                None if one.outcome is None else one.outcome.movement.to_ops_per_s,
            )
            for one in shown
        ),
        note=say("And {rest} more that gain less.", rest=count(rest)) if rest else NOTHING,
    )


def build_checks(decision: Decision) -> Table:
    """The ratios of the decision tree beside what is taken as enough."""
    return Table(
        title="Starlight's decision tree",
        columns=(
            Column(name="of the whole kernel"),
            *list_columns("measured", "enough", quantity=Quantity.RATIO),
            Column(name="verdict"),
        ),
        rows=tuple(
            (
                result.check.title,
                result.ratio,
                result.check.least_ratio,
                "" if result.ratio is None else "poor" if result.is_poor else "enough",
            )
            for result in decision.results
        ),
        note=NOTHING
        if decision.asks_checks
        else say("The tree acts on these only in a kernel on the compute side, far below its ceiling."),
    )


def build_parts(lines: LineCounts) -> Table:
    """Where the samples count; the rows are all samples of the kernel."""
    total = lines.total
    counts: list[tuple[str, int]] = [(Part.OPERATION.value, lines.count(Part.OPERATION))]
    counts += [
        (row.title, lines.count(row.bottleneck))
        for row in list_rows()
        if row.bottleneck is not Bottleneck.LOW_INTENSITY
    ]
    counts.append((Part.NONE.value, lines.count(Part.NONE)))
    return Table(
        title="Where the samples count",
        columns=(
            Column(name="as"),
            Column(name="samples", quantity=Quantity.SAMPLES),
            Column(name="share", quantity=Quantity.RATIO),
        ),
        rows=tuple((name, samples, samples / total) for name, samples in counts),
        note=say("Which stalls belong to which bottleneck is our reading; Starlight does not say."),
    )


def list_halvings(position: Position | None) -> Iterator[tuple[Suggestion, Outcome]]:
    """The suggestions that make values smaller, with their movement; those that have one."""
    for suggestion in list_suggestions():
        if suggestion.halves_bytes and position is not None:
            outcome = move_right(position, suggestion.title.lower(), is_narrower=suggestion.narrows_type)
            if outcome is not None:
                yield suggestion, outcome


def name_rate(position: Position | None) -> Quantity:
    """What a rate of operations of this kernel is."""
    return Quantity.FLOPS_PER_S if position is None else Quantity(f"{position.kind.operation}/s")


def _describe_movement(suggestion: Suggestion, hottest: LineEstimate | None, decision: Decision) -> str:
    if suggestion.bottleneck is not Bottleneck.LOW_INTENSITY:
        return "" if hottest is None or hottest.outcome is None else hottest.outcome.words
    if decision.is_memory_bound is False:
        return "not suggested: on the compute side"
    halvings = {one.title: outcome for one, outcome in list_halvings(decision.position)}
    if suggestion.title in halvings:
        return halvings[suggestion.title].words
    return "" if decision.position is None else f"there is no narrower type than {decision.position.kind}"
