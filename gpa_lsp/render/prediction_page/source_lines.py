"""The source beside what each line does, and all lines as a table."""

from collections.abc import Sequence

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import write_place
from gpa_lsp.basis.numbers import format_count, format_number, format_percent
from gpa_lsp.basis.ownership import find_frame_in
from gpa_lsp.prediction.model import KernelPrediction
from gpa_lsp.ptx.model import Space
from gpa_lsp.render.html_report.tables import Cell, PageTable
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.traces.line_facts import AccessLineFact, BranchLineFact

_MOST_LINES = 20_000
_MUCH = 0.5
"""Of sectors or wavefronts beyond the fewest: such a line is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A line of the source.

    Attributes:
        number: 1-based.
        text: without its end.
        words: what it does; empty for lines that do nothing to memory and do not branch.
        tone: ``hot`` where most of what it moves is in excess, or it faults; empty otherwise.
    """

    number: int
    text: str
    words: str
    tone: str


def build_rows(kernel: KernelPrediction, file: str, text: str) -> Sequence[SourceRow]:
    """The source of a kernel, line by line; none where nothing of it is known.

    Args:
        kernel: what its lines do.
        file: the source, as line tables name it.
        text: of it.
    """
    accesses: dict[int, list[AccessLineFact]] = {}
    for fact in kernel.accesses:
        if fact.file == file:
            accesses.setdefault(fact.line, []).append(fact)
    branches = {fact.line: fact for fact in kernel.branches if fact.file == file and not fact.is_nested}
    named = [(find_frame_in(fault.chain, file.__eq__), fault) for fault in kernel.faults]
    faults = {frame.line: fault for frame, fault in named if frame is not None}
    if not accesses and not branches and not faults:
        return ()
    rows = []
    for number, line in enumerate(split_lines(text)[:_MOST_LINES], start=1):
        facts = accesses.get(number, [])
        parts = [describe_access(fact) for fact in facts]
        if number in branches:
            parts.append(describe_branch(branches[number]))
        if number in faults:
            parts.insert(0, f"{faults[number].kind.value}: {faults[number].message}")
        is_hot = number in faults or any(fact.excess_ratio >= _MUCH for fact in facts)
        rows.append(
            SourceRow(
                number=number,
                text=line,
                words="; ".join(part for part in parts if part),
                tone="hot" if is_hot else "",
            )
        )
    return rows


def describe_access(fact: AccessLineFact) -> str:
    """A line's accesses of one kind in a few words."""
    where = f" of {fact.write_arrays() or f'{fact.space.name.lower()} memory'}"
    through = " (called here)" if fact.is_nested else ""
    if fact.space is Space.SHARED:
        return f"{fact.kind.value}{where}{through}: {format_number(fact.wavefronts_per_request)} wavefronts/req"
    ideal = format_number(fact.ideal_sectors_per_request)
    return f"{fact.kind.value}{where}{through}: {format_number(fact.sectors_per_request)} sectors/req (ideal {ideal})"


def describe_branch(fact: BranchLineFact) -> str:
    """A line's branches in a few words; empty where none diverges."""
    return f"{format_percent(fact.divergent_ratio)} of branches diverge" if fact.divergent else ""


_COLUMNS = (
    ("line", False),
    ("access", False),
    ("array", False),
    ("requests", True),
    ("lines/req", True),
    ("sectors/req", True),
    ("wavefronts/req", True),
    ("ideal", True),
    ("L1 hits", True),
    ("L2 hits", True),
    ("pattern", False),
)


def tabulate_lines(kernel: KernelPrediction) -> PageTable | None:
    """All lines that access memory themselves."""
    own = [fact for fact in kernel.accesses if not fact.is_nested]
    if not own:
        return None
    rows = [_make_row(fact) for fact in own]
    return PageTable(title="Accesses by line (emulated; hits predicted)", columns=list(_COLUMNS), rows=rows)


def _make_row(fact: AccessLineFact) -> list[Cell]:
    is_shared = fact.space is Space.SHARED
    tone = "hot" if fact.excess_ratio >= _MUCH else ""
    ideal = fact.ideal_wavefronts_per_request if is_shared else fact.ideal_sectors_per_request
    name = fact.file.replace("\\", "/").rpartition("/")[2]
    return [
        Cell(text=write_place(name, fact.line), tone="code"),
        Cell(text=f"{fact.space.name.lower()} {fact.kind.value}"),
        Cell(text=", ".join(fact.arrays)),
        Cell(text=format_count(fact.requests)),
        Cell(text="" if is_shared else format_number(fact.lines_per_request)),
        Cell(text="" if is_shared else format_number(fact.sectors_per_request), tone=tone),
        Cell(text=format_number(fact.wavefronts_per_request) if is_shared else "", tone=tone if is_shared else ""),
        Cell(text=format_number(ideal), tone="dim"),
        Cell(text="" if fact.l1_hit_ratio is None else format_percent(fact.l1_hit_ratio)),
        Cell(text="" if fact.l2_hit_ratio is None else format_percent(fact.l2_hit_ratio)),
        Cell(text=fact.pattern_words, tone="dim"),
    ]
