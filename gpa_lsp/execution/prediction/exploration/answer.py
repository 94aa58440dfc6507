"""An exploration as an answer, and the configuration that is worth a try: :func:`answer_exploration`, :func:`find_trial`."""

from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Chart,
    ChartKind,
    Finding,
    Series,
    Table,
    Weight,
    list_columns,
)
from gpa_lsp.execution.prediction.exploration.explore import Exploration
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, write_block
from gpa_lsp.foundation.numbers import Cell, Quantity, format_count, format_limit
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, factor, join, percent, say

NAME = "exploration"
_TITLE = "Launch configurations ({how})"

# Predicted to be this much faster at least, a configuration is worth a try; the model's own error is larger than less
LEAST_GAIN_RATIO = 0.03

_MOST_NAMES = 3  # Of configurations that share a row

_LEAST_DRAWN = 3
_CHECKED = say(
    "Correctness with another block was checked in a few blocks at the ends and in the middle of the grid only: check the results."
)
MOST_ROWS = 200  # Of the table, unless more are asked for


class Trial(Struct, frozen=True, kw_only=True):
    """A configuration that is predicted to beat that of the launch."""

    best: RankedConfiguration  # the other configuration
    speedup: float  # predicted time now over predicted time then, above 1
    dram_change_ratio: float | None  # of the DRAM traffic, -0.31 for 31 % less; None when unknown
    # its fold is not that of the launch: a thread would handle another number of elements than the kernel is written for
    needs_rewriting: bool = False
    how: str = "predicted"  # or ``simulated``


def find_trial(exploration: Exploration) -> Trial | None:
    """The fastest configuration, where it is predicted to gain at least :data:`LEAST_GAIN_RATIO`; None else, or where either is unknown."""
    current = None if exploration.current is None else exploration.find(exploration.current)
    best = exploration.ranked[0] if exploration.ranked else None
    if current is None or best is None or not best.seconds or current.seconds is None:
        return None
    speedup = current.seconds / best.seconds
    if speedup < 1 + LEAST_GAIN_RATIO:
        return None
    change = None
    if current.dram_bytes and best.dram_bytes is not None:
        change = best.dram_bytes / current.dram_bytes - 1
    return Trial(
        best=best,
        speedup=speedup,
        dram_change_ratio=change,
        needs_rewriting=best.configuration.fold != current.configuration.fold,
        how=exploration.how,
    )


def describe_trial(trial: Trial) -> Sentence:
    """A trial as the text of a code action or a finding.

    >>> from gpa_lsp.execution.prediction.exploration.model import Configuration
    >>> best = RankedConfiguration(configuration=Configuration(block=(32, 8, 1)), seconds=1.0)
    >>> describe_trial(Trial(best=best, speedup=1.25, dram_change_ratio=-0.31))
    'try block 32×8: predicted 1.25× as fast, 31 % less DRAM traffic'
    """
    best = trial.best.configuration
    size = write_block(best.block)
    name = f"{size.replace('x', '×')}{str(best).removeprefix(size)}"
    traffic = NOTHING
    if trial.dram_change_ratio is not None and abs(trial.dram_change_ratio) >= 0.005:
        direction = "less" if trial.dram_change_ratio < 0 else "more"
        change = percent(abs(trial.dram_change_ratio))
        traffic = say(", {change} {direction} DRAM traffic", change=change, direction=direction)
    rewritten = ", once each thread of the kernel handles that many elements" if trial.needs_rewriting else ""
    return say(
        "try block {name}: {how} {speedup} as fast{traffic}{rewritten}",
        name=name,
        how=trial.how,
        speedup=factor(trial.speedup),
        traffic=traffic,
        rewritten=rewritten,
    )


def answer_exploration(exploration: Exploration, *, most_rows: int = MOST_ROWS) -> Answer:
    """The table of the space, its chart, and the finding.

    Args:
        most_rows: of the table: the fastest ones, and the configuration of the launch at any rank.
    """
    predicted = [one for one in exploration.ranked if one.seconds is not None]
    if not predicted:
        return Answer(
            analysis=NAME,
            title=_TITLE.format(how=exploration.how),
            summary=say("No configuration could be {how}.", how=exploration.how),
            tables=_tabulate_failures(exploration, most_rows),
            is_known=False,
        )
    return Answer(
        analysis=NAME,
        title=_TITLE.format(how=exploration.how),
        summary=_summarise(exploration, predicted),
        findings=_list_findings(exploration),
        tables=(_tabulate(exploration, predicted, most_rows), *_tabulate_failures(exploration, most_rows)),
        charts=_draw(exploration, predicted),
    )


def _summarise(exploration: Exploration, predicted: list[RankedConfiguration]) -> Sentence:
    best, worst = predicted[0], predicted[-1]
    ratio = worst.seconds / best.seconds if len(predicted) > 1 and best.seconds and worst.seconds else None
    is_flat = ratio is not None and ratio < 1 + LEAST_GAIN_RATIO
    slowest = NOTHING
    if ratio is not None and not is_flat:
        slowest = say(", {ratio} as fast as the slowest ({worst})", ratio=factor(ratio), worst=str(worst.configuration))
    winner = f"{best.configuration} is {exploration.how} to be fastest"
    if is_flat:
        winner = f"none is {exploration.how} to be clearly fastest"
    elif len(predicted) == 1 < len(exploration.ranked):
        winner = f"only {best.configuration} is {exploration.how}"
    return say(
        "Of {configurations}, {winner} on {device}{slowest}{limiter}.",
        configurations=count(len(exploration.ranked), "configuration"),
        winner=winner,
        device=exploration.device,
        slowest=slowest,
        limiter=f"; limited by {best.limiter}" if best.limiter else "",
    )


def _list_findings(exploration: Exploration) -> tuple[Finding, ...]:
    findings = []
    trial = find_trial(exploration)
    current = None if exploration.current is None else exploration.find(exploration.current)
    if trial is not None:
        text = say(
            "The launch uses {current}; {best} is {how} {speedup} as fast.",
            current=str(exploration.current),
            how=exploration.how,
            best=str(trial.best.configuration),
            speedup=factor(trial.speedup),
        )
        findings.append(
            Finding(text=text, weight=Weight.HIGH, remedy=say("{trial}.", trial=capitalize(describe_trial(trial))))
        )
    elif current is not None and current.seconds is not None:
        text = say(
            "The launch uses {current}, rank {rank}: no configuration is {how} to be more than {least} faster.",
            how=exploration.how,
            current=str(current.configuration),
            rank=count(1 + exploration.ranked.index(current)),
            least=format_limit(LEAST_GAIN_RATIO),
        )
        findings.append(Finding(text=text, weight=Weight.GOOD))
    findings.extend(Finding(text=note) for note in (*exploration.notes, _CHECKED))
    return tuple(findings)


_PREDICTED_NOTE = say(
    "Times are roofline bounds, without latencies: they serve for ranking, and real times are longer."
)
_SIMULATED_NOTE = say("Blocks are those an SM was simulated with, of the grid's.")
_SIMULATED_COLUMNS = list_columns(
    "rank [count] | configuration | time, simulated [ns] | of the fastest [factor] | cycles [count] | "
    "limiter | warps per SM [warps] | blocks [count] | of [count]"
)
_COLUMNS = list_columns(
    "rank [count] | configuration | time, at least [ns] | of the fastest [factor] | limiter | "
    "DRAM loads [bytes] | DRAM stores [bytes] | L2 loads [bytes] | L2 stores [bytes] | warps per SM [warps]"
)


def _tabulate(exploration: Exploration, predicted: list[RankedConfiguration], most_rows: int) -> Table:
    """A row for each prediction; configurations with the same prediction share one."""
    least = predicted[0].seconds or 1.0
    groups = _group_alike(predicted)
    current = next(
        (place for place, group in enumerate(groups) if any(one.configuration == exploration.current for one in group)),
        None,
    )
    places = list(range(min(most_rows, len(groups))))
    if current is not None and current >= len(places):
        places.append(current)
    ranks = list(accumulate(map(len, groups), initial=1))
    rows = []
    for place in places:
        one = groups[place][0]
        name = _name_group(groups[place], exploration.current if place == current else None)
        seconds = one.seconds or 0.0
        cells = _make_cells(one, is_simulated=exploration.is_simulated)
        rows.append((ranks[place], name, seconds * 1e9, seconds / least, *cells))
    note = join(
        (
            _SIMULATED_NOTE if exploration.is_simulated else _PREDICTED_NOTE,
            _count_hidden(len(predicted) - sum(len(groups[place]) for place in places)),
        )
    )
    row = None if current is None else places.index(current)
    columns = _SIMULATED_COLUMNS if exploration.is_simulated else _COLUMNS
    return Table(title="Fastest first", columns=columns, rows=tuple(rows), current_row=row, note=note)


def _group_alike(predicted: list[RankedConfiguration]) -> list[list[RankedConfiguration]]:
    """Neighbours that differ in their configuration alone."""
    groups: list[list[RankedConfiguration]] = []
    for one in predicted:
        if groups and replace(groups[-1][0], configuration=one.configuration) == one:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _name_group(group: list[RankedConfiguration], current: Configuration | None) -> str:
    """The configurations of a row, that of the launch first."""
    names = [str(one.configuration) for one in group]
    if current is not None:
        names.sort(key=lambda name: name != str(current))
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {format_count(rest)} more" if rest > 0 else "")


def _make_cells(one: RankedConfiguration, *, is_simulated: bool) -> tuple[Cell, ...]:
    """Cells of a prediction behind its time."""
    if is_simulated:
        cycles = None if one.cycles is None else round(one.cycles)
        return (cycles, one.limiter, one.warps_per_sm, one.executed_blocks, one.grid_blocks)
    dram, l2 = (one.dram_load_bytes, one.dram_store_bytes), (one.l2_load_bytes, one.l2_store_bytes)
    return (one.limiter, *dram, *l2, one.warps_per_sm)


def _tabulate_failures(exploration: Exploration, most_rows: int) -> tuple[Table, ...]:
    """A row for each reason why nothing is predicted, with the configurations that have it; the most frequent first."""
    groups: dict[str, list[RankedConfiguration]] = {}
    for one in exploration.ranked:
        if one.seconds is None:
            groups.setdefault(one.why_not or "no reason was given", []).append(one)
    if not groups:
        return ()
    rows = [(_name_group(group, None), why) for why, group in sorted(groups.items(), key=lambda item: -len(item[1]))]
    return (
        Table(
            title=f"Not {exploration.how}",
            columns=list_columns("configurations | why"),
            rows=tuple(rows[:most_rows]),
            note=say("Not shown: {more}.", more=count(len(rows) - most_rows, "more reason"))
            if len(rows) > most_rows
            else NOTHING,
        ),
    )


def _count_hidden(rows: int) -> Sentence:
    return say("Not shown: {more}.", more=count(rows, "more configuration")) if rows > 0 else NOTHING


def _draw(exploration: Exploration, predicted: list[RankedConfiguration]) -> tuple[Chart, ...]:
    """The fastest of each width of the block; the table beside it has the others."""
    widths: dict[int, float] = {}
    for one in predicted:
        widths.setdefault(one.configuration.block[0], (one.seconds or 0.0) * 1e3)
    if len(widths) < _LEAST_DRAWN:
        return ()
    current = exploration.current
    is_predicted = any(one.configuration == current for one in predicted)
    xs = sorted(widths)
    return (
        Chart(
            title="Fastest by the width of the block",
            kind=ChartKind.BARS,
            x_label="threads of a block in x",
            y_label=f"{exploration.how} ms",
            y_quantity=Quantity.NUMBER,
            series=(Series(label="time", xs=tuple(map(float, xs)), ys=tuple(widths[x] for x in xs)),),
            current_x=float(current.block[0]) if current is not None and is_predicted else None,
        ),
    )
