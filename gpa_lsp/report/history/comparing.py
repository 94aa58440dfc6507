"""What changed between two remembered measurements of a kernel."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec.structs

from gpa_lsp.report.changes import PartChange, Place, Verdict, compare_lines, compare_measurements, order_changes
from gpa_lsp.report.history.model import (
    PlaceChange,
    RememberedFile,
    RememberedLines,
    RememberedPlace,
    Run,
    RunChange,
)
from gpa_lsp.report.line_map import map_edited_lines, split_lines


def choose_comparable(run: Run, earlier: Iterable[Run]) -> tuple[Run, bool] | None:
    """Choose the run to compare a run with: the last of the same work, else the last whose work may be the same, else the last.

    Returns:
        The run, and whether the two can be compared; None where there is no predecessor.
    """
    first = possible = None
    for one in earlier:
        is_same_work = compare_measurements(one.measurement, run.measurement).is_same_work
        if is_same_work:
            return one, True
        first = first or one
        if is_same_work is None:
            possible = possible or one
    return (possible, True) if possible is not None else None if first is None else (first, False)


def compare_runs(before: Run, after: Run, before_content: RememberedLines, after_content: RememberedLines) -> RunChange:
    """Lay two runs side by side."""
    old, new = before.measurement, after.measurement
    change = compare_measurements(old, new)
    lines, gone = _compare_lines(before, after, before_content, after_content) if change.has_stalls else ({}, ())
    return RunChange(
        before=before,
        after=after,
        lines=lines,
        gone=gone,
        places=() if change.verdict is Verdict.OTHER_WORK else _compare_places(old.places, new.places),
        **msgspec.structs.asdict(change),
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


def _compare_lines(
    before: Run, after: Run, before_content: RememberedLines, after_content: RememberedLines
) -> tuple[dict[Place, PartChange], tuple[PartChange, ...]]:
    """Line after → its change, and the lines that are gone. Lines of files whose text then or now is unknown are left out."""
    digest = before.measurement.code_digest
    same_code = digest is not None and digest == after.measurement.code_digest
    old_files, new_files = ({one.identity: one for one in side.files} for side in (before_content, after_content))
    changes: dict[Place, PartChange] = {}
    gone: list[PartChange] = []
    for identity in dict.fromkeys((*new_files, *old_files)):
        old, new = old_files.get(identity), new_files.get(identity)
        old_lines = _list_costs(before_content, identity, old)
        new_lines = _list_costs(after_content, identity, new)
        partners = _pair_lines(identity, old, new, {*old_lines, *new_lines}, same_code=same_code)
        if partners is None:
            continue
        for change in compare_lines(
            before.measurement,
            after.measurement,
            old_lines,
            new_lines,
            partners,
            are_whole=(before_content.is_whole, after_content.is_whole),
        ):
            if new is None or change.after_line is None:
                gone.append(change)
            else:
                changes[(new.compiled_path, change.after_line)] = change
    return changes, order_changes(gone)


def _list_costs(content: RememberedLines, identity: str, file: RememberedFile | None) -> dict[Place, float]:
    """Line of a file, under its identity → its samples with everything inlined into it and called from it."""
    if file is None:
        return {}
    return {
        (identity, one.line): one.samples + one.called_samples
        for one in content.lines
        if one.file == file.compiled_path
    }


def _pair_lines(
    identity: str, old: RememberedFile | None, new: RememberedFile | None, wanted: Iterable[Place], *, same_code: bool
) -> Mapping[Place, int] | None:
    """Line before → line after, without those that are gone; None where nobody can tell."""
    if old is None or new is None:
        return {}  # the kernel had, or has, no samples in that file
    if old.text is None or new.text is None:
        return {place: place[1] for place in wanted} if same_code else None
    table = map_edited_lines(split_lines(old.text), split_lines(new.text))
    return {(identity, line): partner for line, partner in enumerate(table, 1) if partner}
