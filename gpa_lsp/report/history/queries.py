"""Questions to the tables of the history, each within a transaction of its caller."""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.kernel.names import list_named
from gpa_lsp.report.history.model import KernelKey, RememberedFile, RememberedLines, Run, RunFilter
from gpa_lsp.report.history.rows import (
    DamagedRowError,
    check_columns,
    read_capability,
    read_lines,
    read_measurement,
    unpack_text,
    write_capability,
)

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
    """The columns of a kernel."""
    return key.mangled_name, key.home, key.device, write_capability(key.compute_capability)


def has_run(connection: sqlite3.Connection, run_id: int) -> bool:
    """There is a row for a run, readable or not."""
    if not 0 < run_id < 1 << 63:
        return False
    return connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is not None


def find_recorded(connection: sqlite3.Connection, mangled_name: str, identity: str) -> Run | None:
    """The run that a measurement was recorded as, wherever its sources were then; the latest of several."""
    return first_run(connection, "kernel.mangled_name = ? AND run.identity = ?", (mangled_name, identity))


def find_run(connection: sqlite3.Connection, run_id: int) -> Run | None:
    """A run by its number."""
    return first_run(connection, "run.id = ?", (run_id,)) if has_run(connection, run_id) else None


def expect_run(connection: sqlite3.Connection, run_id: int) -> Run:
    """A run that is there.

    Raises:
        InputError: its row is damaged.
    """
    run = find_run(connection, run_id)
    if run is None:
        raise InputError(f"run @{run_id} is damaged", remedy=f"forget it: gpa-lsp history --delete @{run_id}")
    return run


def find_other_device(connection: sqlite3.Connection, run: Run) -> str | None:
    """The name of another GPU the kernel was measured on before, the latest."""
    key = run.measurement.key
    found = connection.execute(
        "SELECT kernel.device FROM run JOIN kernel ON kernel.id = run.kernel_id"
        " WHERE mangled_name = ? AND home = ? AND device NOT IN (?, '') AND run.measured_ns < ?"
        " ORDER BY run.measured_ns DESC, run.id DESC LIMIT 1",
        (key.mangled_name, key.home, key.device, run.measurement.measured_ns),
    ).fetchone()
    return found[0] if found is not None and isinstance(found[0], str) else None


def find_baseline(connection: sqlite3.Connection, key: KernelKey) -> Run | None:
    """The pinned run of a kernel."""
    return first_run(connection, f"{IS_KERNEL} AND run.id = kernel.baseline_id", bind_key(key))


def count_runs(connection: sqlite3.Connection, key: KernelKey) -> int:
    """Measurements of a kernel."""
    (count,) = connection.execute(
        f"SELECT count(*) FROM run WHERE kernel_id IN (SELECT id FROM kernel WHERE {IS_KERNEL})", bind_key(key)
    ).fetchone()
    return int(count)


def list_runs(connection: sqlite3.Connection, wanted: RunFilter) -> tuple[Run, ...]:
    """Runs, newest measurement first."""
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


def read_content(connection: sqlite3.Connection, run_id: int) -> RememberedLines:
    """The lines and files of a run; none where it is gone or its row is damaged."""
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


def find_source(connection: sqlite3.Connection, local_path: str, measured_ns: int) -> str | None:
    """What a file held at a moment: a copy made by a measurement then or before, and known to have been the file's content since."""
    row = connection.execute(
        "SELECT packed FROM run_file JOIN run ON run.id = run_id JOIN source ON source.id = source_id"
        " WHERE local_path = ? AND run.measured_ns <= ? AND run_file.read_ns >= ? ORDER BY run.measured_ns DESC, run.id DESC LIMIT 1",
        (local_path, measured_ns, measured_ns),
    ).fetchone()
    return None if row is None else _unpack(row[0])


def find_source_id(connection: sqlite3.Connection, run_id: int, file: str) -> int | None:
    """The number of the text a run has of a file, local or as compiled; None where it has none."""
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
    """The newest run that fulfils a condition on the columns of ``run`` and ``kernel``."""
    return next(_iterate_runs(connection, condition, values, -1), None)


def select_runs(
    connection: sqlite3.Connection, condition: str, values: Sequence[str | int], most: int = -1
) -> tuple[Run, ...]:
    """The runs that fulfil a condition on the columns of ``run`` and ``kernel``, newest first; damaged ones are left out.

    Args:
        condition: with a question mark for each of ``values``.
        most: rows at most; -1 for all.
    """
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
