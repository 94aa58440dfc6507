"""One connection to the history's database: opening, short whole transactions, and replacement of a damaged file.

Two servers and a shell may use the file at once. Every write is one ``BEGIN IMMEDIATE`` transaction, so that a process that is killed leaves all
of it or nothing, and one that has to wait waits at the beginning, not in the middle. On a local disk the journal is a write-ahead log; where
other machines may open the file too (a home on NFS), SQLite's rollback journal.

Source: SQLite, "Write-Ahead Logging" and "Pragma statements" (auto_vacuum, secure_delete, trusted_schema).
"""

import contextlib
import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

from gpa_lsp.foundation.errors import InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.files import DATA_VARIABLE

# The tables of the history, and how older ones become today's.
#
# ``PRAGMA user_version`` is the number of steps that were taken. A step, once published, is never changed; a new one is appended.

APPLICATION_ID = 0x67706168  # ``gpah``: the database is ours. Source: SQLite, "Pragma statements", application_id.

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
    """Bring the tables up to date, in one transaction.

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
    """Number of schema steps taken by this database."""
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


_LOG = logging.getLogger(__name__)

BUSY_SECONDS = 10.0  # How long one waits for another process to end its transaction

_LOG_LIMIT_BYTES = 1 << 20
# instructions of SQLite's machine for one transaction; listing 10,000 runs takes a few million
_MOST_STEPS = 100_000_000
_STEPS_BETWEEN_LOOKS = 100_000
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_REMEDIES = {
    sqlite3.SQLITE_ERROR: "move the file away, so that a new one is started",
    sqlite3.SQLITE_INTERRUPT: "it asks for endless work; move the file away, so that a new one is started",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked; end it",
    sqlite3.SQLITE_LOCKED: "another program keeps the file locked; end it",
    sqlite3.SQLITE_READONLY: "set GPA_LSP_DATA_DIR to a folder that can be written",
    sqlite3.SQLITE_CANTOPEN: "set GPA_LSP_DATA_DIR to a folder that can be written",
    sqlite3.SQLITE_IOERR: "check whether the disk is full or failing, or set GPA_LSP_DATA_DIR to another folder",
}

Result = TypeVar("Result")


class Database:
    """A connection, for one thread.

    Args:
        path: the file; made when it is not there.

    Raises:
        InputError: it cannot be opened, is somebody else's or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: tuple[Problem, ...] = ()
        self._opened = (0, 0)
        self._connection: sqlite3.Connection | None = None
        self._repair(self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the last one of all processes empties the write-ahead log."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run queries on one state of the database.

        Raises:
            InputError: the file cannot be read.
        """
        return self._repair(lambda: self._transact(work, "BEGIN"))

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Change the database: all of ``work`` or nothing. ``work`` runs twice if the file turns out to be damaged.

        Raises:
            InputError: the file cannot be written.
        """
        return self._repair(lambda: self._transact(work, "BEGIN IMMEDIATE"))

    def give_back_space(self, limit_bytes: int) -> None:
        """Return unused pages to the file system, if they are many or the file is longer than allowed.

        Where that fails, everything is still there and the file only longer; the next write may do better.
        """
        try:
            self._repair(lambda: self._give_back_space(limit_bytes))
        except InputError as error:
            _LOG.info("not shortened: %s", error)

    def _give_back_space(self, limit_bytes: int) -> None:
        connection = self._expect_connection()
        pages, free, size = (read_number(connection, name) for name in ("page_count", "freelist_count", "page_size"))
        if free and (free > max(64, pages // 8) or pages * size > limit_bytes):
            connection.executescript("PRAGMA incremental_vacuum")  # execute() would give one page back and stop
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _transact(self, work: Callable[[sqlite3.Connection], Result], begin: str) -> Result:
        connection = self._expect_connection()
        self._steps = 0
        connection.execute(begin)
        try:
            version = read_version(connection)  # another server may have brought the tables up to date since
            if version != SCHEMA_VERSION:
                check_version(version, self.path)
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        return result

    def _is_too_much(self) -> bool:
        """Progress handler of SQLite: abort a query that takes more steps than any history needs, as a malicious view may."""
        self._steps += _STEPS_BETWEEN_LOOKS
        return self._steps > _MOST_STEPS

    def _expect_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._open()
        assert self._connection is not None
        return self._connection

    def _repair(self, work: Callable[[], Result]) -> Result:
        """Run a function; if the file turns out to be damaged, once more on a new one."""
        for is_last in (False, True):
            try:
                return work()
            except sqlite3.Error as error:
                self.close()
                if is_last or _read_code(error) not in _DAMAGED:
                    raise self._explain(error) from error
                self._set_aside(str(error))
        raise AssertionError

    def _explain(self, error: sqlite3.Error) -> InputError:
        remedy = _REMEDIES.get(_read_code(error))
        return InputError(f"measurements are not remembered: {error}", path=self.path, remedy=remedy)

    def _open(self) -> None:
        prepare_file(self.path)
        facts = self.path.stat()
        self._opened = (facts.st_dev, facts.st_ino)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.set_progress_handler(self._is_too_much, _STEPS_BETWEEN_LOOKS)
        self._steps = 0
        try:
            _configure(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _set_aside(self, reason: str) -> None:
        """Rename a damaged file and its companions, unless another process has done so."""
        real = Path(os.path.realpath(self.path))
        aside = real.with_name(f"{real.name}.damaged-{time.time_ns()}")
        try:
            with _hold(real.with_name(real.name + ".lock")):
                facts = real.stat()
                if (facts.st_dev, facts.st_ino) != self._opened:
                    return
                for suffix in ("-wal", "-shm", "-journal", ""):
                    with contextlib.suppress(FileNotFoundError):
                        real.with_name(real.name + suffix).rename(aside.with_name(aside.name + suffix))
        except OSError as error:
            message = f"the history is damaged ({reason}) and cannot be moved: {error.strerror or error}"
            raise InputError(message, path=self.path, remedy="move it away") from None
        _LOG.warning("%s: damaged (%s), now %s", real, reason, aside)
        message = f"the history was damaged ({reason}) and a new one was started; the old one is kept beside it as {aside.name}"
        self.problems += (Problem.warning(message, path=self.path),)


def read_number(connection: sqlite3.Connection, pragma: str) -> int:
    """Value of a numeric pragma."""
    (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(value)


def _read_code(error: sqlite3.Error) -> int:
    """The primary result code; 0 when the error does not come from SQLite."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _configure(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # what was cleared shall not be found in the file
    connection.execute(
        "PRAGMA auto_vacuum = INCREMENTAL"
    )  # takes effect in a new file only, and before its first table
    wanted = "delete" if is_shared_between_machines(path) else "wal"
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != wanted:
        try:
            (mode,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
        except sqlite3.OperationalError as error:
            if _read_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
    if mode == "wal":
        connection.execute(
            "PRAGMA synchronous = NORMAL"
        )  # survives a kill; a power cut may cost the last runs, never the file
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
    prepare_schema(connection, path)


@contextlib.contextmanager
def _hold(path: Path) -> Iterator[None]:
    """Lock for one process at a time; no lock where the system has none."""
    try:
        import fcntl  # POSIX only
    except ImportError:
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


_REMEDY = f"set {DATA_VARIABLE} to a folder that can be written, to remember measurements there"

# File systems other machines may write to at the same time
_SHARED_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "fhgfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "vboxsf", "wekafs",
    }
)  # fmt: skip


def prepare_file(path: Path) -> None:
    """Create the folder and an empty file that only the user can read, where missing: sources are private.

    Raises:
        InputError: it cannot be made or written, or something else has its name.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o600)  # SQLite gives the files beside it the same mode
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"measurements are not remembered: {reason}", path=path, remedy=_REMEDY) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise InputError("measurements are not remembered: this is not a file", path=path, remedy=_REMEDY)
        if os.name == "posix" and facts.st_mode & 0o077:
            with contextlib.suppress(OSError):  # another user's, who may have meant it
                os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def is_shared_between_machines(path: Path, mounts: str | None = None) -> bool:
    """Whether other machines may open the file. A write-ahead log needs shared memory, which they lack.

    Known on Linux only; elsewhere only network shares of Windows are told.

    Args:
        mounts: the text of ``/proc/self/mountinfo``; None reads it.

    Source:
        proc(5), "/proc/pid/mountinfo"; SQLite, "Write-Ahead Logging", disadvantage 1.
    """
    real = os.path.realpath(path)
    if real.startswith(("\\\\", "//")):
        return True
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
    best_length, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = _unescape(parts[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best_length:  # of several mounts on one point the last one is seen
            best_length, kind = len(point), rest.split(" ", 1)[0]
    return kind in _SHARED_FILE_SYSTEMS


def _unescape(text: str) -> str:
    r"""Decode a mount point with the kernel's octal escapes.

    >>> _unescape(r"/my\040data")
    '/my data'
    """
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace("\\" + code, character)
    return text
