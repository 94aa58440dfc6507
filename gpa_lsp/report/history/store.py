"""The :class:`History`: measurements of this user on this machine, found again by kernel.

with History() as history:
    run = history.record(recording)
    previous = history.find_previous(run)
"""

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec

from msgspec.structs import replace

from gpa_lsp.kernel.names import find_family
from gpa_lsp.report.history import queries
from gpa_lsp.report.history.database import Database, Result, read_number
from gpa_lsp.report.history.model import (
    DEFAULT_LIMITS,
    HistoryLimits,
    KernelKey,
    Measurement,
    Recording,
    RememberedFile,
    Run,
    find_database,
)
from gpa_lsp.report.history.rows import (
    DamagedRowError,
    make_storable_time,
    pack_text,
    read_commit,
    write_facts,
    write_lines,
)


def add_recording(connection: sqlite3.Connection, recording: Recording, now_ns: int) -> tuple[int, bool]:
    """Insert a measurement, or update the details of a recorded one; return its id, and whether it is new.

    Read again, a measurement keeps its number, its times and the source texts it came with: what the files hold now may be something else. Its
    figures follow the new reading, unless that lacks the instructions the first one had.
    """
    measurement, content = recording.measurement, recording.content
    kernel_id = _add_kernel(connection, measurement)
    known = connection.execute(
        "SELECT id, facts, lines FROM run WHERE kernel_id = ? AND identity = ?", (kernel_id, recording.identity)
    ).fetchone()
    positions = {file.compiled_path: position for position, file in enumerate(content.files)}
    if known is not None and (commit := read_commit(known[1])) is not None:
        measurement = replace(measurement, commit=commit)  # told when the log of git was fresh
    facts = write_facts(measurement)
    lines = write_lines(content.lines, positions, is_whole=content.is_whole)
    if known is None:
        added = connection.execute(
            "INSERT INTO run (kernel_id, identity, session, measured_ns, recorded_ns, profile, facts, lines) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                kernel_id,
                recording.identity,
                measurement.session,
                make_storable_time(measurement.measured_ns),
                make_storable_time(now_ns),
                measurement.profile,
                facts,
                lines,
            ),
        )
        run_id = int(added.lastrowid or 0)
        _add_files(connection, run_id, content.files)
        return run_id, True
    run_id = int(known[0])
    connection.execute(
        "UPDATE run SET profile = ? WHERE id = ? AND profile IS NOT ?",
        (measurement.profile, run_id, measurement.profile),
    )
    is_poorer = measurement.code_digest is None and _knows_code(known[1])
    if (known[1], known[2]) != (facts, lines) and not is_poorer:
        _replace_details(connection, run_id, recording, facts, lines)
    return run_id, False


def _replace_details(
    connection: sqlite3.Connection, run_id: int, recording: Recording, facts: str, lines: bytes
) -> None:
    try:
        old = {file.compiled_path: file for file in queries.list_files(connection, run_id)}
    except DamagedRowError:
        old = {}  # the rows are written again
    files = [_keep_text(file, old.get(file.compiled_path)) for file in recording.content.files]
    connection.execute("DELETE FROM run_file WHERE run_id = ?", (run_id,))
    _add_files(connection, run_id, files)
    connection.execute("UPDATE run SET facts = ?, lines = ? WHERE id = ?", (facts, lines, run_id))
    connection.execute(
        "DELETE FROM source WHERE id NOT IN (SELECT source_id FROM run_file WHERE source_id IS NOT NULL)"
    )


def _keep_text(file: RememberedFile, before: RememberedFile | None) -> RememberedFile:
    if before is None or before.text is None:
        return file
    return replace(file, text=before.text, read_ns=before.read_ns)


def _knows_code(facts: str) -> bool:
    try:
        return json.loads(facts)["code_digest"] is not None
    except (ValueError, TypeError, KeyError):
        return False


def _add_kernel(connection: sqlite3.Connection, measurement: Measurement) -> int:
    key = measurement.key
    family = find_family(measurement.name, key.home).name
    connection.execute(
        "INSERT INTO kernel (mangled_name, home, device, capability, family) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*queries.bind_key(key), family),
    )
    (kernel_id,) = connection.execute(
        f"SELECT id FROM kernel WHERE {queries.IS_KERNEL}", queries.bind_key(key)
    ).fetchone()
    return int(kernel_id)


def _add_files(connection: sqlite3.Connection, run_id: int, files: Sequence[RememberedFile]) -> None:
    for position, file in enumerate(files):
        source_id = None if file.text is None else _add_source(connection, file.text)
        connection.execute(
            "INSERT INTO run_file (run_id, position, compiled_path, local_path, source_id, read_ns) VALUES (?, ?, ?, ?, ?, ?)",
            (run_id, position, file.compiled_path, file.local_path, source_id, make_storable_time(file.read_ns)),
        )


def _add_source(connection: sqlite3.Connection, text: str) -> int:
    """Id of a stored text; equal texts are stored once."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    known = connection.execute("SELECT id FROM source WHERE digest = ?", (digest,)).fetchone()
    if known is not None:
        return int(known[0])
    added = connection.execute("INSERT INTO source (digest, packed) VALUES (?, ?)", (digest, pack_text(text)))
    return int(added.lastrowid or 0)


Parameters = ParamSpec("Parameters")

_BATCH_SHARE = 0.05  # Runs thrown out before it is looked again whether there is room now

_KEEP_SHARE = 0.9  # What is left of a full history, so that not every new measurement throws one out

_EVICTABLE = "id != ? AND id NOT IN (SELECT baseline_id FROM kernel WHERE baseline_id IS NOT NULL)"


def trim(connection: sqlite3.Connection, limits: HistoryLimits, kept_run_id: int) -> None:
    """Delete runs beyond the limits, within the transaction that added a run."""
    removed = _trim_kernel(connection, limits.runs_per_kernel, kept_run_id)
    if removed:
        remove_orphans(connection)
    if count_used_bytes(connection) <= limits.database_bytes:
        return
    goal_bytes = int(limits.database_bytes * _KEEP_SHARE)
    while count_used_bytes(connection) > goal_bytes and _remove_oldest(connection, kept_run_id):
        remove_orphans(connection)


def remove_orphans(connection: sqlite3.Connection) -> None:
    """Delete sources without runs and kernels without runs."""
    connection.execute(
        "DELETE FROM source WHERE id NOT IN (SELECT source_id FROM run_file WHERE source_id IS NOT NULL)"
    )
    connection.execute("DELETE FROM kernel WHERE id NOT IN (SELECT kernel_id FROM run)")


def count_used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the database without free pages."""
    pages, free, size = (read_number(connection, name) for name in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size


def _trim_kernel(connection: sqlite3.Connection, most_runs: int, kept_run_id: int) -> int:
    (kernel_id,) = connection.execute("SELECT kernel_id FROM run WHERE id = ?", (kept_run_id,)).fetchone()
    (count,) = connection.execute("SELECT count(*) FROM run WHERE kernel_id = ?", (kernel_id,)).fetchone()
    if count <= most_runs:
        return 0
    removed = connection.execute(
        f"DELETE FROM run WHERE id IN (SELECT id FROM run WHERE kernel_id = ? AND {_EVICTABLE} ORDER BY measured_ns, id LIMIT ?)",
        (kernel_id, kept_run_id, count - most_runs),
    )
    return removed.rowcount


def _remove_oldest(connection: sqlite3.Connection, kept_run_id: int) -> int:
    """Delete a batch of the oldest runs; return their number, 0 when only pinned ones are left."""
    (count,) = connection.execute(f"SELECT count(*) FROM run WHERE {_EVICTABLE}", (kept_run_id,)).fetchone()
    removed = connection.execute(
        f"DELETE FROM run WHERE id IN (SELECT id FROM run WHERE {_EVICTABLE} ORDER BY measured_ns, id LIMIT ?)",
        (kept_run_id, math.ceil(count * _BATCH_SHARE)),
    )
    return removed.rowcount


def _ask(
    question: Callable[Concatenate[sqlite3.Connection, Parameters], Result],
) -> Callable[Concatenate["History", Parameters], Result]:
    """Turn a query into a method that runs in its own transaction."""

    def ask(self: "History", /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return self.read(lambda connection: question(connection, *args, **options))

    return ask


class History(Database):
    """The history in one database file. For one thread; several processes may open it.

    Every method raises :class:`~gpa_lsp.foundation.errors.InputError` where the file cannot be read or written any more. A damaged file is
    replaced by a new one and kept under another name; :attr:`problems` then says so.

    Args:
        path: the file; None for the user's.
        limits: how much is kept.

    Raises:
        InputError: it cannot be written, is no history, or a newer version's; the message says what to do.
    """

    def __init__(self, path: Path | None = None, *, limits: HistoryLimits = DEFAULT_LIMITS) -> None:
        super().__init__(path or find_database())
        self.limits = limits

    def record(self, recording: Recording) -> Run:
        """Store a measurement, or update it if it is stored already."""

        def add(connection: sqlite3.Connection) -> Run:
            run_id, is_new = add_recording(connection, recording, time.time_ns())
            if is_new:
                trim(connection, self.limits, run_id)
            return queries.expect_run(connection, run_id)

        run = self.write(add)
        self.give_back_space(self.limits.database_bytes)
        return run

    find_run = _ask(queries.find_run)
    expect_run = _ask(queries.expect_run)
    read_lines = _ask(queries.read_content)
    find_previous = _ask(queries.find_previous)
    list_predecessors = _ask(queries.list_predecessors)
    find_recorded = _ask(queries.find_recorded)
    find_baseline_of = _ask(queries.find_baseline_of)
    find_other_device = _ask(queries.find_other_device)
    count_runs = _ask(queries.count_runs)
    list_runs = _ask(queries.list_runs)
    find_source = _ask(queries.find_source)

    def pin(self, run_id: int) -> Run:
        """Make a run its kernel's baseline, replacing any other.

        Raises:
            InputError: there is no such run.
        """

        def set_baseline(connection: sqlite3.Connection) -> Run:
            queries.require_run(connection, run_id)
            connection.execute(
                "UPDATE kernel SET baseline_id = ? WHERE id = (SELECT kernel_id FROM run WHERE id = ?)",
                (run_id, run_id),
            )
            return queries.expect_run(connection, run_id)

        return self.write(set_baseline)

    def unpin(self, key: KernelKey) -> bool:
        """Remove a kernel's baseline; the run stays. False when there was none."""

        def clear(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                f"UPDATE kernel SET baseline_id = NULL WHERE baseline_id IS NOT NULL AND {queries.IS_KERNEL}",
                queries.bind_key(key),
            )
            return changed.rowcount > 0

        return self.write(clear)

    def delete(self, run_ids: Iterable[int]) -> None:
        """Delete runs, pinned or not.

        Raises:
            InputError: one of them is not there; then none is forgotten.
        """
        wanted: Sequence[int] = tuple(dict.fromkeys(run_ids))

        def remove(connection: sqlite3.Connection) -> None:
            for run_id in wanted:
                queries.require_run(connection, run_id)
                connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
            remove_orphans(connection)

        self.write(remove)
        self.give_back_space(0)

    def clear(self) -> int:
        """Delete everything; return the number of runs."""

        def remove(connection: sqlite3.Connection) -> int:
            removed = connection.execute("DELETE FROM run").rowcount
            remove_orphans(connection)
            return removed

        count = self.write(remove)
        self.give_back_space(0)
        return count
