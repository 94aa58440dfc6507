"""What changed between two remembered measurements of a kernel."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpa_lsp.report.changes import (
    PartChange,
    Verdict,
    explain_missing_stalls,
    is_beyond_counts,
    judge_measurements,
    order_changes,
)
from gpa_lsp.report.history.model import (
    Measurement,
    Place,
    PlaceChange,
    RememberedFile,
    RememberedLine,
    RememberedLines,
    RememberedPlace,
    Run,
    RunChange,
)
from gpa_lsp.report.line_map import map_edited_lines, split_lines

_LineTable = Mapping[int, RememberedLine]


def choose_comparable(run: Run, earlier: Iterable[Run]) -> tuple[Run, bool] | None:
    """Choose the run to compare a run with: the last of the same work, else the last whose work may be the same, else the last.

    Returns:
        The run, and whether the two can be compared; None where there is no predecessor.
    """
    first = possible = None
    for one in earlier:
        is_same_work = judge_measurements(one.measurement.work, run.measurement.work).is_same_work
        if is_same_work:
            return one, True
        first = first or one
        if is_same_work is None:
            possible = possible or one
    return (possible, True) if possible is not None else None if first is None else (first, False)


def compare_runs(
    before: Run,
    after: Run,
    before_content: RememberedLines,
    after_content: RememberedLines,
) -> RunChange:
    """Lay two runs side by side."""
    old, new = before.measurement, after.measurement
    judgement = judge_measurements(old.work, new.work)
    is_other = judgement.verdict is Verdict.OTHER_WORK
    ratio = None
    if old.executed_instructions and new.executed_instructions:
        ratio = new.executed_instructions / old.executed_instructions
    pair = _Pair(old, new)
    is_sampled = not is_other and not explain_missing_stalls(old.total_samples, new.total_samples)
    lines, gone = _compare_lines(pair, before_content, after_content) if is_sampled else ({}, ())
    return RunChange(
        before=before,
        after=after,
        verdict=judgement.verdict,
        time=judgement.time,
        note=judgement.note,
        instructions_ratio=ratio,
        reasons=_compare_reasons(pair) if is_sampled else (),
        lines=lines,
        gone=gone,
        places=() if is_other else _compare_places(old.places, new.places),
    )


def _compare_places(before: Sequence[RememberedPlace], after: Sequence[RememberedPlace]) -> tuple[PlaceChange, ...]:
    """By name, and where a line has moved by the function it is in, if no other place is in that one."""
    if not before or not after:
        return ()
    old = {place.name: place for place in before}
    new_names = {place.name for place in after}
    free = [place for place in before if place.name not in new_names]
    found, taken = [], set()
    for place in after:
        match = old.get(place.name)
        if match is None:
            moved = [one for one in free if one.function and one.function == place.function]
            match = moved[0] if len(moved) == 1 else None
        if match is not None:
            taken.add(match.name)
        found.append(
            PlaceChange(
                name=place.name, before_ns=None if match is None else match.duration_ns, after_ns=place.duration_ns
            )
        )
    gone = [
        PlaceChange(name=one.name, before_ns=one.duration_ns, after_ns=None) for one in before if one.name not in taken
    ]
    return (*found, *gone)


class _Pair:
    """Two measurements, and how samples of either become a change."""

    def __init__(self, before: Measurement, after: Measurement) -> None:
        self.before = before
        self.after = after
        self.same_code = before.code_digest is not None and before.code_digest == after.code_digest

    def make_change(self, name: str, lines: tuple[int | None, int | None], samples: tuple[float, float]) -> PartChange:
        """A part's change from its samples before and after."""
        totals = (self.before.total_samples, self.after.total_samples)
        ratios = [part / whole if whole else 0.0 for part, whole in zip(samples, totals, strict=True)]
        times_ns = (self.before.duration_ns, self.after.duration_ns)
        before_ns, after_ns = times_ns
        known = before_ns is not None and after_ns is not None
        return PartChange(
            name=name,
            before_line=lines[0],
            after_line=lines[1],
            before_ns=None if before_ns is None else ratios[0] * before_ns,
            after_ns=None if after_ns is None else ratios[1] * after_ns,
            before_ratio=ratios[0],
            after_ratio=ratios[1],
            is_clear=is_beyond_counts(
                (samples[0], totals[0], before_ns if known and before_ns else 1.0),
                (samples[1], totals[1], after_ns if known and after_ns else 1.0),
            ),
        )


def _compare_reasons(pair: _Pair) -> tuple[PartChange, ...]:
    old, new = pair.before.by_reason, pair.after.by_reason
    return order_changes(
        [
            pair.make_change(reason, (None, None), (old.get(reason, (0, 0))[0], new.get(reason, (0, 0))[0]))
            for reason in dict.fromkeys((*old, *new))
        ]
    )


def _compare_lines(
    pair: _Pair, before: RememberedLines, after: RememberedLines
) -> tuple[dict[Place, PartChange], tuple[PartChange, ...]]:
    """Line after → its change, and the lines that are gone. Lines of files whose text then or now is unknown are left out."""
    old_files = {file.identity: file for file in before.files}
    new_files = {file.identity: file for file in after.files}
    changes: dict[Place, PartChange] = {}
    gone: list[PartChange] = []
    for identity in dict.fromkeys((*new_files, *old_files)):
        old, new = old_files.get(identity), new_files.get(identity)
        old_lines, new_lines = _find_lines(before, old), _find_lines(after, new)
        partners = _pair_lines(old, new, {*old_lines, *new_lines}, same_code=pair.same_code)
        if partners is None:
            continue
        for change in _compare_file(
            pair, identity, (old_lines, new_lines), partners, (before.is_whole, after.is_whole)
        ):
            if new is None or change.after_line is None:
                gone.append(change)
            else:
                changes[(new.compiled_path, change.after_line)] = change
    return changes, order_changes(gone)


def _find_lines(content: RememberedLines, file: RememberedFile | None) -> _LineTable:
    if file is None:
        return {}
    return {line.line: line for line in content.lines if line.file == file.compiled_path}


def _pair_lines(
    old: RememberedFile | None, new: RememberedFile | None, wanted: Iterable[int], *, same_code: bool
) -> Mapping[int, int] | None:
    """Line before → line after, without those that are gone; None where nobody can tell."""
    if old is None or new is None:
        return {}  # the kernel had, or has, no samples in that file
    if old.text is None or new.text is None:
        return {line: line for line in wanted} if same_code else None
    table = map_edited_lines(split_lines(old.text), split_lines(new.text))
    return {line: partner for line, partner in enumerate(table, 1) if partner}


def _compare_file(
    pair: _Pair, name: str, tables: tuple[_LineTable, _LineTable], partners: Mapping[int, int], whole: tuple[bool, bool]
) -> Iterator[PartChange]:
    """Changes of one file's lines. A line that one side does not list had no samples there, if that side lists them all; else it is left out."""
    old_lines, new_lines = tables
    for line, old in old_lines.items():
        partner = partners.get(line)
        new = None if partner is None else new_lines.get(partner)
        if new is not None or whole[1]:
            yield pair.make_change(name, (line, partner), (old.cost_samples, new.cost_samples if new else 0.0))
    if not whole[0]:
        return
    origins = {partner: line for line, partner in partners.items()}
    for partner, new in new_lines.items():
        origin = origins.get(partner)
        if origin not in old_lines:
            yield pair.make_change(name, (origin, partner), (0.0, new.cost_samples))
