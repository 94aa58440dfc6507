"""The :class:`History`: measurements of this user on this machine, found again by kernel.

with History.open() as history:
    run = history.record(recording)
    previous = history.find_previous(run)
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from gpa_lsp.basis.errors import InputError, Problem
from gpa_lsp.history import queries
from gpa_lsp.history.bounds import remove_orphans, trim
from gpa_lsp.history.database import Database
from gpa_lsp.history.insertion import add_recording
from gpa_lsp.history.location import find_database
from gpa_lsp.history.model import (
    DEFAULT_LIMITS,
    HistoryLimits,
    KernelKey,
    Recording,
    RememberedLines,
    Run,
    RunFilter,
)
from gpa_lsp.history.predecessors import find_baseline_of, find_previous, list_predecessors
from gpa_lsp.report.line_map import split_lines


class History:
    """The history in one database file. For one thread; any number of processes may have it open.

    Every method raises :class:`~gpa_lsp.basis.errors.InputError` where the file cannot be read or written any more. A damaged file is replaced by a
    new one and kept under another name; :attr:`problems` then says so.

    Args:
        database: open.
        limits: how much is kept.
    """

    def __init__(self, database: Database, limits: HistoryLimits = DEFAULT_LIMITS) -> None:
        self._database = database
        self.limits = limits

    @classmethod
    def open(cls, path: Path | None = None, *, limits: HistoryLimits = DEFAULT_LIMITS) -> "History":
        """Open the history, or begin one.

        Args:
            path: the file; None for the user's.
            limits: how much is kept.

        Raises:
            InputError: it cannot be written, is no history, or a newer version's; the message says what to do.
        """
        return cls(Database(path or find_database()), limits)

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the file and has been dealt with."""
        return tuple(self._database.problems)

    def record(self, recording: Recording) -> Run:
        """Keep a measurement. One that is there already is not kept twice: its details are brought up to date."""

        def add(connection: sqlite3.Connection) -> Run:
            run_id, is_new = add_recording(connection, recording, time.time_ns())
            if is_new:
                trim(connection, self.limits, run_id)
            return queries.expect_run(connection, run_id)

        run = self._database.write(add)
        self._database.give_back_space(self.limits.database_bytes)
        return run

    def find_run(self, run_id: int) -> Run | None:
        """A run by its row; None when there is none."""
        return self._database.read(lambda connection: queries.find_run(connection, run_id))

    def expect_run(self, run_id: int) -> Run:
        """A run by its row.

        Raises:
            InputError: there is none.
        """

        def find(connection: sqlite3.Connection) -> Run:
            self._expect(connection, run_id)
            return queries.expect_run(connection, run_id)

        return self._database.read(find)

    def read_lines(self, run: Run) -> RememberedLines:
        """The lines and files of a run; without any when it is gone by now."""
        return self._database.read(lambda connection: queries.read_content(connection, run.run_id))

    def find_previous(self, run: Run) -> Run | None:
        """The latest earlier measurement of the same kernel on the same GPU; None when there is none.

        Where one profile holds several variants of a kernel (an autotuner's), the one with the same code, else the one with the same launch;
        None when neither tells them apart. A kernel whose name has changed with its template arguments or with the line its directive is on is
        still the same, where nothing else could be meant. All kernels of the run's profile should have been recorded.
        """
        return self._database.read(lambda connection: find_previous(connection, run))

    def list_predecessors(self, run: Run, most: int) -> tuple[Run, ...]:
        """The run before, as :meth:`find_previous` finds it, the one before that, and so on: at most so many, newest first."""
        return self._database.read(lambda connection: list_predecessors(connection, run, most))

    def find_recorded(self, mangled_name: str, identity: str) -> Run | None:
        """The run that a measurement was recorded as; None when it was not.

        Args:
            mangled_name: of its kernel.
            identity: as its :class:`~gpa_lsp.history.model.Recording` has it.
        """
        return self._database.read(lambda connection: queries.find_recorded(connection, mangled_name, identity))

    def find_baseline_of(self, run: Run) -> Run | None:
        """The pinned run of a run's kernel, or of what it was called before; it may be the run itself."""
        return self._database.read(lambda connection: find_baseline_of(connection, run))

    def find_other_device(self, run: Run) -> str | None:
        """The GPU of the latest earlier measurement of the same kernel on another one; None when there is none."""
        return self._database.read(lambda connection: queries.find_other_device(connection, run))

    def find_baseline(self, key: KernelKey) -> Run | None:
        """The pinned run of a kernel."""
        return self._database.read(lambda connection: queries.find_baseline(connection, key))

    def count_runs(self, key: KernelKey) -> int:
        """Measurements of a kernel."""
        return self._database.read(lambda connection: queries.count_runs(connection, key))

    def list_runs(self, wanted: RunFilter | None = None) -> tuple[Run, ...]:
        """Runs, newest measurement first; rows that are damaged are left out."""
        return self._database.read(lambda connection: queries.list_runs(connection, wanted or RunFilter()))

    def find_source(self, local_path: str, measured_ns: int) -> tuple[str, ...] | None:
        """What a file held when something was measured, as far as a measurement then or before tells.

        Args:
            local_path: links resolved.
            measured_ns: when, since 1970.

        Returns:
            Lines without their ends; None when nobody knows.
        """
        text = self._database.read(lambda connection: queries.find_source(connection, local_path, measured_ns))
        return None if text is None else split_lines(text)

    def pin(self, run_id: int) -> Run:
        """Make a run its kernel's baseline, in place of any other.

        Raises:
            InputError: there is no such run.
        """

        def set_baseline(connection: sqlite3.Connection) -> Run:
            self._expect(connection, run_id)
            connection.execute(
                "UPDATE kernel SET baseline_id = ? WHERE id = (SELECT kernel_id FROM run WHERE id = ?)",
                (run_id, run_id),
            )
            return queries.expect_run(connection, run_id)

        return self._database.write(set_baseline)

    def unpin(self, key: KernelKey) -> bool:
        """Forget which run is a kernel's baseline; the run stays. False when none was."""

        def clear(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                f"UPDATE kernel SET baseline_id = NULL WHERE baseline_id IS NOT NULL AND {queries.IS_KERNEL}",
                queries.bind_key(key),
            )
            return changed.rowcount > 0

        return self._database.write(clear)

    def delete(self, run_ids: Iterable[int]) -> None:
        """Forget some runs, pinned or not.

        Raises:
            InputError: one of them is not there; then none is forgotten.
        """
        wanted: Sequence[int] = tuple(dict.fromkeys(run_ids))

        def remove(connection: sqlite3.Connection) -> None:
            for run_id in wanted:
                self._expect(connection, run_id)
                connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
            remove_orphans(connection)

        self._database.write(remove)
        self._database.give_back_space(0)

    def clear(self) -> int:
        """Forget everything; says how many runs that were."""

        def remove(connection: sqlite3.Connection) -> int:
            removed = connection.execute("DELETE FROM run").rowcount
            remove_orphans(connection)
            return removed

        count = self._database.write(remove)
        self._database.give_back_space(0)
        return count

    def _expect(self, connection: sqlite3.Connection, run_id: int) -> None:
        if not queries.has_run(connection, run_id):
            raise InputError(f"there is no run {run_id} in the history", remedy="gpa-lsp history lists the runs")
