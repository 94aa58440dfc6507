"""What an exploration says, in the vocabulary of all answers; and which configuration is worth a try."""

from gpa_lsp.analyses.answers import Answer, Chart, ChartKind, Column, Finding, Missing, Series, Table, Weight
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import Cell, Quantity, format_number, format_percent
from gpa_lsp.prediction.exploration.explore import Exploration
from gpa_lsp.prediction.exploration.model import RankedConfiguration

NAME = "exploration"
_TITLE = "Launch configurations (predicted)"

LEAST_GAIN_RATIO = 0.03
"""Predicted to be this much faster at least, a configuration is worth a try; the model's own error is larger than less."""

_MOST_REASONS = 5
_CHECKED = "Whether the kernel does right with another block was seen in a few blocks at the ends and in the middle of the grid: check its results."
MOST_ROWS = 200
"""Of the table, where nobody asks for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A configuration that is predicted to beat the one the launch has.

    Attributes:
        best: the other configuration.
        speedup: predicted time now over predicted time then, above 1.
        dram_change_ratio: of the DRAM traffic, -0.31 for 31 % less; None when unknown.
        needs_rewriting: it folds otherwise than the launch does: the model's threads serve more elements than those of the kernel as it is written.
    """

    best: RankedConfiguration
    speedup: float
    dram_change_ratio: float | None
    needs_rewriting: bool = False


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
    )


def describe_trial(trial: Trial) -> str:
    """What a code action or a finding says of it.

    >>> from gpa_lsp.prediction.exploration.model import Configuration
    >>> best = RankedConfiguration(configuration=Configuration(block=(32, 8, 1)), seconds=1.0)
    >>> describe_trial(Trial(best=best, speedup=1.25, dram_change_ratio=-0.31))
    'try block 32×8: predicted −31 % DRAM traffic, 1.25× as fast'
    """
    name = str(trial.best.configuration).replace("x", "×")
    parts = []
    if trial.dram_change_ratio is not None and abs(trial.dram_change_ratio) >= 0.005:
        sign = "−" if trial.dram_change_ratio < 0 else "+"
        parts.append(f"{sign}{format_percent(abs(trial.dram_change_ratio))} DRAM traffic")
    parts.append(f"{trial.speedup:.2f}× as fast")
    rewritten = (
        ", once the kernel is written so that a thread serves that many elements" if trial.needs_rewriting else ""
    )
    return f"try block {name}: predicted {', '.join(parts)}{rewritten}"


def answer_exploration(exploration: Exploration, *, most_rows: int = MOST_ROWS) -> Answer:
    """The table of the space, its chart, and the finding.

    Args:
        exploration: what was found.
        most_rows: of the table: the fastest ones, and the configuration of the launch wherever it stands.
    """
    predicted = [one for one in exploration.ranked if one.seconds is not None]
    if not predicted:
        return Answer(
            analysis=NAME,
            title=_TITLE,
            summary="Nothing could be predicted of any configuration.",
            tables=_tabulate_failures(exploration, most_rows),
            missing=_list_reasons(exploration),
            is_known=False,
        )
    return Answer(
        analysis=NAME,
        title=_TITLE,
        summary=_summarise(exploration, predicted),
        findings=_list_findings(exploration),
        tables=(_tabulate(exploration, predicted, most_rows), *_tabulate_failures(exploration, most_rows)),
        charts=_draw(exploration, predicted),
        missing=_list_reasons(exploration) if len(exploration.ranked) - len(predicted) > most_rows else (),
    )


def _summarise(exploration: Exploration, predicted: list[RankedConfiguration]) -> str:
    best, worst = predicted[0], predicted[-1]
    text = f"Of {len(exploration.ranked):,} configurations {best.configuration} is predicted to be fastest on {exploration.device}"
    if len(predicted) > 1 and best.seconds and worst.seconds:
        ratio = worst.seconds / best.seconds
        if ratio < 1 + LEAST_GAIN_RATIO:
            text = f"Of {len(exploration.ranked):,} configurations none is predicted to be much faster than another on {exploration.device}"
        else:
            text += f", {format_number(ratio)}× as fast as the slowest ({worst.configuration})"
    return f"{text}; limited by {best.limiter}." if best.limiter else f"{text}."


def _list_findings(exploration: Exploration) -> tuple[Finding, ...]:
    findings = []
    trial = find_trial(exploration)
    current = None if exploration.current is None else exploration.find(exploration.current)
    if trial is not None:
        text = f"{exploration.current} is what the launch has now; {trial.best.configuration} is predicted {trial.speedup:.2f}× as fast."
        findings.append(Finding(text=text, weight=Weight.HIGH, remedy=describe_trial(trial)))
    elif current is not None and current.seconds is not None:
        place = 1 + exploration.ranked.index(current)
        least = format_percent(LEAST_GAIN_RATIO)
        text = f"The launch has {current.configuration}, place {place:,}: nothing is predicted to be more than {least} faster."
        findings.append(Finding(text=text, weight=Weight.GOOD))
    findings.extend(Finding(text=note) for note in (*exploration.notes, _CHECKED))
    return tuple(findings)


_COLUMNS = (
    Column(name="place", quantity=Quantity.COUNT),
    Column(name="configuration"),
    Column(name="time", quantity=Quantity.NS),
    Column(name="of the fastest", quantity=Quantity.FACTOR),
    Column(name="limiter"),
    Column(name="DRAM loads", quantity=Quantity.BYTES),
    Column(name="DRAM stores", quantity=Quantity.BYTES),
    Column(name="L2 loads", quantity=Quantity.BYTES),
    Column(name="L2 stores", quantity=Quantity.BYTES),
    Column(name="warps per SM", quantity=Quantity.WARPS),
)


def _tabulate(exploration: Exploration, predicted: list[RankedConfiguration], most_rows: int) -> Table:
    least = predicted[0].seconds or 1.0
    names = [one.configuration for one in predicted]
    current = names.index(exploration.current) if exploration.current in names else None
    places = list(range(min(most_rows, len(predicted))))
    if current is not None and current >= len(places):
        places.append(current)
    rows = tuple((place + 1, *_make_cells(predicted[place], least)) for place in places)
    note = "Times are those of memory and arithmetic by the model: they rank, and real times are longer." + (
        f" {len(predicted) - len(rows):,} more configurations are not shown." if len(predicted) > len(rows) else ""
    )
    row = None if current is None else places.index(current)
    return Table(title="Fastest first", columns=_COLUMNS, rows=rows, current_row=row, note=note)


def _make_cells(one: RankedConfiguration, least_seconds: float) -> tuple[Cell, ...]:
    return (
        str(one.configuration),
        None if one.seconds is None else one.seconds * 1e9,
        None if one.seconds is None else one.seconds / least_seconds,
        one.limiter,
        one.dram_load_bytes,
        one.dram_store_bytes,
        one.l2_load_bytes,
        one.l2_store_bytes,
        one.warps_per_sm,
    )


def _tabulate_failures(exploration: Exploration, most_rows: int) -> tuple[Table, ...]:
    """The configurations nothing is predicted of, each with its reason."""
    failed = [one for one in exploration.ranked if one.seconds is None]
    if not failed:
        return ()
    left = len(failed) - most_rows
    return (
        Table(
            title="Not predicted",
            columns=(Column(name="configuration"), Column(name="why")),
            rows=tuple((str(one.configuration), one.why_not or "no reason was given") for one in failed[:most_rows]),
            note=f"{left:,} more are not shown." if left > 0 else "",
        ),
    )


def _draw(exploration: Exploration, predicted: list[RankedConfiguration]) -> tuple[Chart, ...]:
    """Predicted times by place: how flat the top is, and where the launch stands."""
    if len(predicted) < 3:
        return ()
    names = [one.configuration for one in predicted]
    places = tuple(float(place) for place in range(1, len(predicted) + 1))
    current = 1.0 + names.index(exploration.current) if exploration.current in names else None
    times = tuple((one.seconds or 0.0) * 1e3 for one in predicted)
    return (
        Chart(
            title="Predicted time by place",
            kind=ChartKind.LINE,
            x_label="place",
            y_label="predicted ms",
            y_quantity=Quantity.NUMBER,
            series=(Series(label="time", xs=places, ys=times),),
            current_x=current,
        ),
    )


def _list_reasons(exploration: Exploration) -> tuple[Missing, ...]:
    """Each reason once, with how many configurations it kept from being predicted; the most frequent first."""
    counts: dict[str, int] = {}
    for one in exploration.ranked:
        if one.seconds is None:
            counts[one.why_not] = counts.get(one.why_not, 0) + 1
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]
    return tuple(
        Missing(what=f"{count:,} configuration{'' if count == 1 else 's'}", why=why or "no reason was given")
        for why, count in frequent
    )
