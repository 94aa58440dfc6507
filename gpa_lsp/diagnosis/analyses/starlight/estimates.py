"""What resolving the stalls of one row of Table 1 gains on one line, by Equations 2 to 4."""

from collections.abc import Iterable

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.starlight.counting import LineCounts, LineSamples
from gpa_lsp.diagnosis.analyses.starlight.equations import estimate_line_speedup, measure_line_share
from gpa_lsp.diagnosis.analyses.starlight.movement import Outcome, Position, move
from gpa_lsp.diagnosis.analyses.starlight.suggestions import Bottleneck, Row, find_row

LEAST_SPEEDUP = 1.01  # A line that gains less is not shown; the advisor's own threshold


class LineEstimate(Struct, frozen=True, kw_only=True):
    """One bottleneck of one line."""

    line: LineSamples  # its samples
    row: Row  # of Table 1
    removed: int  # N of Equation 3, samples
    share_ratio: float  # Equation 2, of the whole line
    speedup: float  # Equation 3
    outcome: Outcome | None  # Equation 4 and the movement on the chart; None where the kernel has no place on it


def estimate_lines(lines: LineCounts, position: Position | None) -> tuple[LineEstimate, ...]:
    """Every bottleneck of every line that gains at least :data:`LEAST_SPEEDUP`, largest speedup first.

    Stalls that are all samples of the kernel have no speedup (nothing would be left to run), and are left out.
    """
    total = lines.total
    least = total * (1 - 1 / LEAST_SPEEDUP)
    found = [
        _estimate(line, bottleneck, total, position)
        for bottleneck in Bottleneck
        for line in lines.find_heavy(bottleneck, least)
        if line.stalls[bottleneck] < total
    ]
    return tuple(sorted(found, key=lambda one: (-one.speedup, -one.share_ratio, one.line.place)))


def find_hottest(estimates: Iterable[LineEstimate], bottleneck: Bottleneck) -> LineEstimate | None:
    """The line on which a bottleneck gains most; None where it gains on none."""
    return next((one for one in estimates if one.row.bottleneck is bottleneck), None)


def _estimate(line: LineSamples, bottleneck: Bottleneck, total: int, position: Position | None) -> LineEstimate:
    row, removed = find_row(bottleneck), line.stalls[bottleneck]
    speedup = estimate_line_speedup(total, removed)
    label = f"{row.title.lower()}, {line.place}"
    return LineEstimate(
        line=line,
        row=row,
        removed=removed,
        share_ratio=measure_line_share(line.operations, line.all_stalls, total),
        speedup=speedup,
        outcome=None if position is None else move(position, row.direction, speedup, label),
    )
