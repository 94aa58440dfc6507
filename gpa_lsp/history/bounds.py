"""Keeps the history small: oldest measurements go first, pinned ones never, and sources with the last measurement that needs them."""

import math
import sqlite3

from gpa_lsp.history.database import read_number
from gpa_lsp.history.model import HistoryLimits

_BATCH_SHARE = 0.05
"""Runs thrown out before it is looked again whether there is room now."""

_KEEP_SHARE = 0.9
"""What is left of a full history, so that not every new measurement throws one out."""

_EVICTABLE = "id != ? AND id NOT IN (SELECT baseline_id FROM kernel WHERE baseline_id IS NOT NULL)"


def trim(connection: sqlite3.Connection, limits: HistoryLimits, kept_run_id: int) -> None:
    """Throw out what is too much, within the transaction that added a run.

    Args:
        connection: in a transaction.
        limits: how much is kept.
        kept_run_id: the run that was added; it stays, however old its measurement is.
    """
    removed = _trim_kernel(connection, limits.runs_per_kernel, kept_run_id)
    if removed:
        remove_orphans(connection)
    if count_used_bytes(connection) <= limits.database_bytes:
        return
    goal_bytes = int(limits.database_bytes * _KEEP_SHARE)
    while count_used_bytes(connection) > goal_bytes and _remove_oldest(connection, kept_run_id):
        remove_orphans(connection)


def remove_orphans(connection: sqlite3.Connection) -> None:
    """Remove sources no run needs and kernels that have no runs."""
    connection.execute(
        "DELETE FROM source WHERE id NOT IN (SELECT source_id FROM run_file WHERE source_id IS NOT NULL)"
    )
    connection.execute("DELETE FROM kernel WHERE id NOT IN (SELECT kernel_id FROM run)")


def count_used_bytes(connection: sqlite3.Connection) -> int:
    """The database without the pages nothing is in."""
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
    """How many runs went; 0 when only pinned ones are left."""
    (count,) = connection.execute(f"SELECT count(*) FROM run WHERE {_EVICTABLE}", (kept_run_id,)).fetchone()
    removed = connection.execute(
        f"DELETE FROM run WHERE id IN (SELECT id FROM run WHERE {_EVICTABLE} ORDER BY measured_ns, id LIMIT ?)",
        (kept_run_id, math.ceil(count * _BATCH_SHARE)),
    )
    return removed.rowcount
