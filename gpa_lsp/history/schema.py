"""The tables of the history, and how older ones become today's.

``PRAGMA user_version`` is the number of steps that were taken. A step, once published, is never changed; a new one is appended.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.basis.errors import InputError, UnsupportedInputError

APPLICATION_ID = 0x67706168
"""``gpah``: the database is ours. Source: SQLite, "Pragma statements", application_id."""

_STEPS: tuple[Sequence[str], ...] = (
    (
        """
        CREATE TABLE kernel (
            id INTEGER PRIMARY KEY,
            mangled_name TEXT NOT NULL,
            home TEXT NOT NULL,
            device TEXT NOT NULL,
            capability TEXT NOT NULL,
            family TEXT NOT NULL,
            baseline_id INTEGER REFERENCES run (id) ON DELETE SET NULL,
            UNIQUE (mangled_name, home, device, capability)
        )
        """,
        """
        CREATE TABLE run (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kernel_id INTEGER NOT NULL REFERENCES kernel (id) ON DELETE CASCADE,
            identity TEXT NOT NULL,
            session TEXT NOT NULL,
            measured_ns INTEGER NOT NULL,
            recorded_ns INTEGER NOT NULL,
            profile TEXT,
            facts TEXT NOT NULL,
            lines BLOB NOT NULL,
            UNIQUE (kernel_id, identity)
        )
        """,
        "CREATE INDEX run_by_kernel ON run (kernel_id, measured_ns)",
        "CREATE INDEX run_by_time ON run (measured_ns)",
        "CREATE INDEX kernel_by_family ON kernel (family, home)",
        "CREATE INDEX kernel_by_baseline ON kernel (baseline_id)",
        """
        CREATE TABLE source (
            id INTEGER PRIMARY KEY,
            digest TEXT NOT NULL UNIQUE,
            packed BLOB NOT NULL
        )
        """,
        """
        CREATE TABLE run_file (
            run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            compiled_path TEXT NOT NULL,
            local_path TEXT,
            source_id INTEGER REFERENCES source (id),
            read_ns INTEGER NOT NULL,
            PRIMARY KEY (run_id, position)
        )
        """,
        "CREATE INDEX run_file_by_source ON run_file (source_id)",
        "CREATE INDEX run_file_by_path ON run_file (local_path)",
    ),
)

SCHEMA_VERSION = len(_STEPS)


def prepare_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables up to date, in one transaction; of two processes that try, one does it.

    Raises:
        InputError: the database is somebody else's, or a newer version's.
        sqlite3.Error: the file is damaged, locked or cannot be written.
    """
    if read_version(connection) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = read_version(connection)
        _check_owner(connection, version, path)
        check_version(version, path)
        for step in _STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def read_version(connection: sqlite3.Connection) -> int:
    """Steps this database has behind it."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_version(version: int, path: Path) -> None:
    """Raises:
    UnsupportedInputError: a newer gpa-lsp has changed the tables.
    """
    if version > SCHEMA_VERSION:
        raise UnsupportedInputError(
            f"the history was written by a newer gpa-lsp (its version is {version}, this program knows {SCHEMA_VERSION})",
            path=path,
            remedy="update this gpa-lsp; until then it remembers nothing, and nothing is lost",
        )


def _check_owner(connection: sqlite3.Connection, version: int, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (table_count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_new = version == 0 and table_count == 0 and application_id in (0, APPLICATION_ID)
    if not is_new and (application_id != APPLICATION_ID or version < 0):
        raise InputError(
            "this is a database of another program",
            path=path,
            remedy="move it away, or set GPA_LSP_DATA_DIR to another folder",
        )
