"""Queries to the tables of the history, in the caller's transaction, and the choice of the run to compare with."""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.kernel.names import KernelFamily, find_family, list_named
from gpa_lsp.report.history.model import ALL_RUNS, KernelKey, RememberedFile, RememberedLines, Run, RunFilter
from gpa_lsp.report.history.rows import (
    DamagedRowError,
    check_columns,
    read_capability,
    read_lines,
    read_measurement,
    unpack_text,
    write_capability,
)
from gpa_lsp.report.line_map import map_edited_texts, split_lines

_LOG = logging.getLogger(__name__)

# Goes with the family's name and the last three of :func:`bind_key`
IS_FAMILY = "family = ? AND home = ? AND device = ? AND capability = ?"

IS_KERNEL = "mangled_name = ? AND home = ? AND device = ? AND capability = ?"  # Goes with :func:`bind_key`

_SELECT = (
    "SELECT run.id, run.recorded_ns, run.measured_ns, run.profile, run.session, run.facts, kernel.mangled_name, kernel.home,"
    " kernel.device, kernel.capability, kernel.baseline_id IS run.id, (SELECT count(*) FROM run AS earlier WHERE"
    " earlier.kernel_id = run.kernel_id AND (earlier.measured_ns, earlier.id) <= (run.measured_ns, run.id))"
    " FROM run JOIN kernel ON kernel.id = run.kernel_id"
)


_RUN_COLUMNS = (int, int, int, str | None, str, str, str, str, str, str, int, int)  # The kinds of what that selects

_FILE_COLUMNS = (str, str | None, bytes | None, int)


def bind_key(key: KernelKey) -> tuple[str, str, str, str]:
    """Values of a kernel's key columns."""
    return key.mangled_name, key.home, key.device, write_capability(key.compute_capability)


def has_run(connection: sqlite3.Connection, run_id: int) -> bool:
    """Whether there is a row for a run, readable or not."""
    if not 0 < run_id < 1 << 63:
        return False
    return connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is not None


def find_recorded(connection: sqlite3.Connection, mangled_name: str, identity: str) -> Run | None:
    """The latest run recorded from a measurement, wherever its sources were then."""
    return first_run(connection, "kernel.mangled_name = ? AND run.identity = ?", (mangled_name, identity))


def find_run(connection: sqlite3.Connection, run_id: int) -> Run | None:
    """A run by its id; None where there is none or it is damaged."""
    return first_run(connection, "run.id = ?", (run_id,)) if has_run(connection, run_id) else None


def require_run(connection: sqlite3.Connection, run_id: int) -> None:
    """Raises:
    InputError: there is no row for a run.
    """
    if not has_run(connection, run_id):
        raise InputError(f"there is no run {run_id} in the history", remedy="gpa-lsp history lists the runs")


def expect_run(connection: sqlite3.Connection, run_id: int) -> Run:
    """A run by its id.

    Raises:
        InputError: there is none, or its row is damaged.
    """
    require_run(connection, run_id)
    run = find_run(connection, run_id)
    if run is None:
        raise InputError(f"run @{run_id} is damaged", remedy=f"forget it: gpa-lsp history --delete @{run_id}")
    return run


def find_other_device(connection: sqlite3.Connection, run: Run) -> str | None:
    """The latest other GPU that the kernel was measured on; None without one."""
    key = run.measurement.key
    found = connection.execute(
        "SELECT kernel.device FROM run JOIN kernel ON kernel.id = run.kernel_id"
        " WHERE mangled_name = ? AND home = ? AND device NOT IN (?, '') AND run.measured_ns < ?"
        " ORDER BY run.measured_ns DESC, run.id DESC LIMIT 1",
        (key.mangled_name, key.home, key.device, run.measurement.measured_ns),
    ).fetchone()
    return found[0] if found is not None and isinstance(found[0], str) else None


def count_runs(connection: sqlite3.Connection, key: KernelKey) -> int:
    """Number of measurements of a kernel."""
    (count,) = connection.execute(
        f"SELECT count(*) FROM run WHERE kernel_id IN (SELECT id FROM kernel WHERE {IS_KERNEL})", bind_key(key)
    ).fetchone()
    return int(count)


def list_runs(connection: sqlite3.Connection, wanted: RunFilter = ALL_RUNS) -> tuple[Run, ...]:
    """Runs, newest measurement first; damaged rows are left out."""
    conditions = ["1"]
    values: list[str | int] = []
    if wanted.paths:
        parts = []
        for path in wanted.paths:
            folder = path.rstrip(os.sep) + os.sep
            for column in ("home", "profile"):
                parts.append(f"{column} = ? OR substr({column}, 1, ?) = ?")
                values += [path, len(folder), folder]
        conditions.append(f"({' OR '.join(parts)})")
    runs = select_runs(connection, " AND ".join(conditions), values)
    if wanted.name is None:
        return runs
    return tuple(list_named(wanted.name, runs, lambda run: (run.measurement.key.mangled_name, run.measurement.name)))


def read_content(connection: sqlite3.Connection, run: Run) -> RememberedLines:
    """Lines and files of a run; none where it is gone or damaged."""
    run_id = run.run_id
    row = connection.execute("SELECT lines FROM run WHERE id = ?", (run_id,)).fetchone()
    files: tuple[RememberedFile, ...] = ()
    try:
        files = list_files(connection, run_id)
        lines, is_whole = read_lines(row[0], [file.compiled_path for file in files]) if row else ((), False)
    except DamagedRowError as error:
        _LOG.warning("the lines of run %d are damaged: %s", run_id, error)
        lines, is_whole = (), False
    return RememberedLines(files=files, lines=lines, is_whole=is_whole)


def list_files(connection: sqlite3.Connection, run_id: int) -> tuple[RememberedFile, ...]:
    """The files of a run, in the order its lines count them.

    Raises:
        DamagedRowError: the row of one of them is damaged.
    """
    rows = connection.execute(
        "SELECT compiled_path, local_path, packed, read_ns FROM run_file LEFT JOIN source ON source.id = source_id"
        " WHERE run_id = ? ORDER BY position",
        (run_id,),
    ).fetchall()
    for row in rows:
        check_columns(row, _FILE_COLUMNS)
    return tuple(
        RememberedFile(
            compiled_path=compiled_path,
            local_path=local_path,
            text=None if packed is None else _unpack(packed),
            read_ns=read_ns,
        )
        for compiled_path, local_path, packed, read_ns in rows
    )


def find_source(connection: sqlite3.Connection, local_path: str, measured_ns: int) -> tuple[str, ...] | None:
    """Text of a file at a time: a copy recorded then or before, and known to be the file's content at that time.

    Args:
        connection: in a transaction.
        local_path: links resolved.
        measured_ns: when, since 1970.

    Returns:
        Lines without their ends; None where no measurement tells.
    """
    row = connection.execute(
        "SELECT packed FROM run_file JOIN run ON run.id = run_id JOIN source ON source.id = source_id"
        " WHERE local_path = ? AND run.measured_ns <= ? AND run_file.read_ns >= ? ORDER BY run.measured_ns DESC, run.id DESC LIMIT 1",
        (local_path, measured_ns, measured_ns),
    ).fetchone()
    text = None if row is None else _unpack(row[0])
    return None if text is None else split_lines(text)


def find_source_id(connection: sqlite3.Connection, run_id: int, file: str) -> int | None:
    """Id of a run's text of a file, by its local path or as compiled; None without one."""
    row = connection.execute(
        "SELECT source_id FROM run_file WHERE run_id = ? AND ? IN (local_path, compiled_path) AND source_id IS NOT NULL",
        (run_id, file),
    ).fetchone()
    return None if row is None else int(row[0])


def read_source(connection: sqlite3.Connection, source_id: int) -> str | None:
    """A text; None where it is damaged."""
    row = connection.execute("SELECT packed FROM source WHERE id = ?", (source_id,)).fetchone()
    return None if row is None else _unpack(row[0])


def _unpack(packed: bytes) -> str | None:
    try:
        return unpack_text(packed)
    except DamagedRowError as error:
        _LOG.warning("a remembered source is damaged: %s", error)
        return None


def first_run(connection: sqlite3.Connection, condition: str, values: Sequence[str | int]) -> Run | None:
    """The newest run that fulfils a condition on the columns of ``run`` and ``kernel``; None without one."""
    return next(_iterate_runs(connection, condition, values, -1), None)


def select_runs(
    connection: sqlite3.Connection, condition: str, values: Sequence[str | int], most: int = -1
) -> tuple[Run, ...]:
    """The runs that fulfil a condition on the columns of ``run`` and ``kernel``, newest first, damaged ones left out; -1 for all."""
    return tuple(_iterate_runs(connection, condition, values, most))


def _iterate_runs(
    connection: sqlite3.Connection, condition: str, values: Sequence[str | int], most: int
) -> Iterator[Run]:
    rows = connection.execute(
        f"{_SELECT} WHERE {condition} ORDER BY run.measured_ns DESC, run.id DESC LIMIT ?", (*values, most)
    )
    return (run for run in map(_read_run, rows) if run is not None)


def _read_run(row: tuple[int, int, int, str | None, str, str, str, str, str, str, int, int]) -> Run | None:
    run_id, recorded_ns, measured_ns, profile, session, facts, mangled_name, home, device, capability, *last = row
    is_baseline, number = last
    try:
        check_columns(row, _RUN_COLUMNS)
        key = KernelKey(
            mangled_name=mangled_name, home=home, device=device, compute_capability=read_capability(capability)
        )
        measurement = read_measurement(key, (measured_ns, profile, session), facts)
    except ValueError as error:  # damaged rows among them
        _LOG.warning("run %d is damaged: %s", run_id, error)
        return None
    return Run(
        run_id=run_id,
        number=number,
        measurement=measurement,
        recorded_ns=recorded_ns,
        is_baseline=bool(is_baseline),
    )


def find_previous(connection: sqlite3.Connection, run: Run) -> Run | None:
    """The latest earlier measurement of the same kernel on the same GPU; None without one.

    Where one profile holds several variants of a kernel (an autotuner's), the one with the same code, else the one with the same launch;
    None where neither tells them apart. A kernel whose name has changed with its template arguments or with the line its directive is on is
    still the same, where nothing else could be meant. All kernels of the run's profile should have been recorded.
    """
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
    """Earlier runs, newest first, as repeated :func:`find_previous` would give.

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
    """Runs of the kernel before a run, newest first, without a last session that may be incomplete."""
    values = (*bind_key(run.measurement.key), run.measurement.measured_ns)
    runs = select_runs(connection, f"{IS_KERNEL} AND run.measured_ns < ?", values, most)
    if len(runs) < most:
        return runs
    last = runs[-1].measurement.session
    return tuple(one for one in runs if one.measurement.session != last)


def _list_earlier(known: Sequence[Run], run: Run) -> tuple[Run, ...]:
    """Known runs of the kernel in the latest session before a run."""
    mine = run.measurement
    earlier = [
        one
        for one in known
        if one.measurement.measured_ns < mine.measured_ns and one.measurement.session != mine.session
    ]
    return tuple(one for one in earlier if one.measurement.session == earlier[0].measurement.session)


def find_baseline_of(connection: sqlite3.Connection, run: Run) -> Run | None:
    """The pinned run of a run's kernel, also under an earlier name; it may be the run itself."""
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
    """Runs that fulfil a condition in the latest session before the run's."""
    measurement = run.measurement
    earlier = f"{condition} AND run.measured_ns < ? AND run.session != ?"
    bound: tuple[str | int, ...] = (*values, measurement.measured_ns, measurement.session)
    latest = first_run(connection, earlier, bound)
    if latest is None:
        return ()
    return select_runs(connection, f"{earlier} AND run.session = ?", (*bound, latest.measurement.session))


def _choose_variant(run: Run, variants: Sequence[Run]) -> Run | None:
    """The variant of a kernel in one profile with the same code, else the same launch; None where neither is unique."""
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
    """Whether no other kernel of the family is in the run's profile."""
    values = (*_bind_family(run, family), run.measurement.session)
    return len(select_runs(connection, f"{IS_FAMILY} AND run.session = ?", values)) == 1


def _follow_line(connection: sqlite3.Connection, run: Run, line: int, relatives: Sequence[Run]) -> Run | None:
    """The kernel named by the line of its directive whose line has become *line*.

    Where the sources do not tell, the one of the same name, unless its line is known to be another one now.
    """
    new_source = find_source_id(connection, run.run_id, run.measurement.key.home)
    maps: dict[int, tuple[int, ...]] = {}
    alike = []
    for relative in relatives:
        old_source = find_source_id(connection, relative.run_id, relative.measurement.key.home)
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
    old, new = (read_source(connection, source) for source in (old_source, new_source))
    return () if old is None or new is None else map_edited_texts(old, new)


def _find_current_line(table: Sequence[int], old_line: int | None) -> int | None:
    """Present number of a line; None where unknown or edited beyond recognition."""
    return (table[old_line - 1] or None) if old_line is not None and 0 < old_line <= len(table) else None
