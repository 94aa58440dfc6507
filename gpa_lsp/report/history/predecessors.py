"""Which earlier run a run is to be compared with."""

import sqlite3
from collections.abc import Sequence

from gpa_lsp.report.families import KernelFamily, find_family
from gpa_lsp.report.history import queries
from gpa_lsp.report.history.model import Run
from gpa_lsp.report.history.queries import IS_FAMILY, IS_KERNEL, bind_key, first_run, select_runs
from gpa_lsp.report.line_map import map_edited_lines, split_lines


def find_previous(connection: sqlite3.Connection, run: Run) -> Run | None:
    """The run before; see :meth:`~gpa_lsp.report.history.store.History.find_previous`."""
    family = _read_family(run)
    relatives = _list_latest_session(connection, run, IS_FAMILY, _bind_family(run, family))
    variants = _list_latest_session(connection, run, IS_KERNEL, bind_key(run.measurement.key))
    if family.line is not None:
        return _follow_line(connection, run, family.line, (*relatives, *variants))
    if variants:
        return _choose_variant(run, variants)
    is_only = len(relatives) == 1 and _is_only_member(connection, run, family)
    return relatives[0] if is_only else None


def list_predecessors(connection: sqlite3.Connection, run: Run, most: int) -> tuple[Run, ...]:
    """The run before, the one before that, and so on, newest first: what asking :func:`find_previous` again and again gives.

    The runs of one kernel are read together, for a history is asked for with every kernel that is loaded.
    """
    found: list[Run] = []
    known: Sequence[Run] = _list_before(connection, run, most)
    while len(found) < most:
        variants = _list_earlier(known, run)
        if variants and _read_family(run).line is None:
            previous = _choose_variant(run, variants)
        else:
            previous = find_previous(connection, run)
            known = () if previous is None else _list_before(connection, previous, most)
        if previous is None:
            break
        found.append(previous)
        run = previous
    return tuple(found)


def _list_before(connection: sqlite3.Connection, run: Run, most: int) -> tuple[Run, ...]:
    """The runs of a run's kernel before it, newest first. A session that may be cut off at the end is left out, since its variants are chosen from
    together."""
    values = (*bind_key(run.measurement.key), run.measurement.measured_ns)
    runs = select_runs(connection, f"{IS_KERNEL} AND run.measured_ns < ?", values, most)
    if len(runs) < most:
        return runs
    last = runs[-1].measurement.session
    return tuple(one for one in runs if one.measurement.session != last)


def _list_earlier(known: Sequence[Run], run: Run) -> tuple[Run, ...]:
    """Of known runs of a run's kernel those of the latest session before it."""
    mine = run.measurement
    earlier = [
        one
        for one in known
        if one.measurement.measured_ns < mine.measured_ns and one.measurement.session != mine.session
    ]
    return tuple(one for one in earlier if one.measurement.session == earlier[0].measurement.session)


def find_baseline_of(connection: sqlite3.Connection, run: Run) -> Run | None:
    """The pinned run; see :meth:`~gpa_lsp.report.history.store.History.find_baseline_of`."""
    family = _read_family(run)
    pinned = select_runs(connection, f"{IS_FAMILY} AND run.id = kernel.baseline_id", _bind_family(run, family))
    if family.line is not None:
        return _follow_line(connection, run, family.line, pinned)
    own = first_run(connection, f"{IS_KERNEL} AND run.id = kernel.baseline_id", bind_key(run.measurement.key))
    if own is not None:
        return own
    return pinned[0] if len(pinned) == 1 and _is_only_member(connection, run, family) else None


def _read_family(run: Run) -> KernelFamily:
    return find_family(run.measurement.name, run.measurement.key.home)


def _bind_family(run: Run, family: KernelFamily) -> tuple[str, ...]:
    return family.name, *bind_key(run.measurement.key)[1:]


def _list_latest_session(
    connection: sqlite3.Connection, run: Run, condition: str, values: Sequence[str]
) -> tuple[Run, ...]:
    """The runs that fulfil a condition in the latest session before the run's."""
    measurement = run.measurement
    earlier = f"{condition} AND run.measured_ns < ? AND run.session != ?"
    bound: tuple[str | int, ...] = (*values, measurement.measured_ns, measurement.session)
    latest = first_run(connection, earlier, bound)
    if latest is None:
        return ()
    return select_runs(connection, f"{earlier} AND run.session = ?", (*bound, latest.measurement.session))


def _choose_variant(run: Run, variants: Sequence[Run]) -> Run | None:
    """Of several variants of a kernel in one profile the one with the same code, else the one with the same launch."""
    if len(variants) == 1:
        return variants[0]
    mine = run.measurement
    same_code = [
        variant
        for variant in variants
        if mine.code_digest is not None and variant.measurement.code_digest == mine.code_digest
    ]
    same_launch = [variant for variant in variants if variant.measurement.launch == mine.launch]
    return next((alike[0] for alike in (same_code, same_launch) if len(alike) == 1), None)


def _is_only_member(connection: sqlite3.Connection, run: Run, family: KernelFamily) -> bool:
    """No other kernel of the family is in the run's profile."""
    values = (*_bind_family(run, family), run.measurement.session)
    return len(select_runs(connection, f"{IS_FAMILY} AND run.session = ?", values)) == 1


def _follow_line(connection: sqlite3.Connection, run: Run, line: int, relatives: Sequence[Run]) -> Run | None:
    """Of kernels named by the lines of their directives the one whose line has become this one.

    Where the sources do not tell, the one of the same name, unless its line is known to be another one now.
    """
    new_source = queries.find_source_id(connection, run.run_id, run.measurement.key.home)
    maps: dict[int, tuple[int, ...]] = {}
    alike = []
    for relative in relatives:
        old_source = queries.find_source_id(connection, relative.run_id, relative.measurement.key.home)
        if old_source is not None and new_source is not None and old_source not in maps:
            maps[old_source] = _map_sources(connection, old_source, new_source)
        table = maps.get(old_source, ()) if old_source is not None else ()
        current = _find_current_line(table, _read_family(relative).line)
        if current == line:
            return relative
        if current is None and relative.measurement.key == run.measurement.key:
            alike.append(relative)
    return alike[0] if alike else None


def _map_sources(connection: sqlite3.Connection, old_source: int, new_source: int) -> tuple[int, ...]:
    texts = [queries.read_source(connection, source) for source in (old_source, new_source)]
    old, new = (() if text is None else split_lines(text) for text in texts)
    return map_edited_lines(old, new)


def _find_current_line(table: Sequence[int], old_line: int | None) -> int | None:
    """Where a line is now; None where nobody knows, or it was edited beyond recognition."""
    return (table[old_line - 1] or None) if old_line is not None and 0 < old_line <= len(table) else None
