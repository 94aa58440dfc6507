"""Puts a measurement into the tables, once however often it is read."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from gpa_lsp.history import queries
from gpa_lsp.history.model import Measurement, Recording, RememberedFile
from gpa_lsp.history.rows import DamagedRowError, make_storable_time, pack_text, read_commit, write_facts, write_lines
from gpa_lsp.report.families import find_family
from gpa_lsp.report.time_course import Commit


def add_recording(connection: sqlite3.Connection, recording: Recording, now_ns: int) -> tuple[int, bool]:
    """Insert a measurement, or bring the details of one that is there up to date.

    Read again, a measurement keeps its number, its times and the source texts it came with: what the files hold now may be something else. Its
    figures follow the new reading, unless that lacks the instructions the first one had.

    Args:
        connection: in a transaction.
        recording: the measurement.
        now_ns: since 1970.

    Returns:
        The run's number, and whether it is new.
    """
    measurement, content = recording.measurement, recording.content
    kernel_id = _add_kernel(connection, measurement)
    known = connection.execute(
        "SELECT id, facts, lines FROM run WHERE kernel_id = ? AND identity = ?", (kernel_id, recording.identity)
    ).fetchone()
    positions = {file.compiled_path: position for position, file in enumerate(content.files)}
    if known is not None and (commit := _read_commit(known[1])) is not None:
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


def _read_commit(facts: str) -> Commit | None:
    try:
        return read_commit(json.loads(facts))
    except (ValueError, TypeError, AttributeError):
        return None


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
    """Every text is there once, however many measurements need it."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    known = connection.execute("SELECT id FROM source WHERE digest = ?", (digest,)).fetchone()
    if known is not None:
        return int(known[0])
    added = connection.execute("INSERT INTO source (digest, packed) VALUES (?, ?)", (digest, pack_text(text)))
    return int(added.lastrowid or 0)
