"""Selection of a run's launches for its profile, and the sums of their samples."""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.profile.collector.records import FLAG_GRAPH, FLAG_SAMPLED, SAMPLE_ROW, CollectedProcess, Mode
from gpa_lsp.profile.stall_reasons import CountedReason, read_reason


class Selection(Struct, frozen=True, kw_only=True):
    """Kernels and launches to keep."""

    # part of the readable name of the kernels, or of the mangled one when it starts with ``_Z``; empty for all
    kernel: str = ""
    # of each kernel, launch configuration and calling context, or of all kernels together when ``kernel`` names some; 0 for all
    launches: int = 3
    skipped_launches: int = 0  # matching launches passed over before

    def matches(self, name: str) -> bool:
        """Whether a kernel is wanted.

        >>> Selection(kernel="scale<").matches("_Z5scaleIfEvPT_"), Selection(kernel="_Z5sc").matches("_Z5scaleIfEvPT_")
        (True, True)
        """
        return self.kernel in (name if self.kernel.startswith("_Z") else demangle(name))


class TimedLaunch(Struct, frozen=True, kw_only=True):
    """A launch with the GPU's timing."""

    kernel: str  # mangled name
    context: int  # number of its CUDA context
    path: int  # of its calling context; 0 when not known
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    correlations: tuple[int, ...]  # numbers by which samples name it
    is_sampled: bool  # sampling was on
    duration_ns: int | None = None  # None when the GPU did not say
    registers: int | None = None  # of a thread; None in the same case
    static_bytes: int | None = None  # of shared memory; None in the same case
    dynamic_bytes: int = 0  # of shared memory
    stream: int | None = None  # CUPTI's number; None when not known


class Launches:
    """Launches of a process with the times of their kernels, as columns.

    Args:
        process: as it was read.
    """

    def __init__(self, process: CollectedProcess) -> None:
        self.process = process
        rows, kernels = process.launches, process.kernels
        is_graph = (rows["flags"] & FLAG_GRAPH) != 0
        self.rows = rows[~is_graph]
        self._kernel_of = _match(self.rows, kernels)
        taken = np.zeros(len(kernels), bool)
        taken[self._kernel_of[self._kernel_of >= 0]] = True
        self._of_graphs = np.flatnonzero(~taken)
        graphs = rows[is_graph]
        self._graph_paths = dict(zip(graphs["correlation"].tolist(), graphs["path"].tolist(), strict=True))
        self._graph_paths.update(
            (outer, path)
            for outer, path in zip(graphs["outer"].tolist(), graphs["path"].tolist(), strict=True)
            if outer
        )

    def __len__(self) -> int:
        return len(self.rows) + len(self._of_graphs)

    def build(self, number: int) -> TimedLaunch:
        """A launch by number: first those of the program, then those of graphs."""
        if number >= len(self.rows):
            at = int(self._of_graphs[number - len(self.rows)])
            row = self.process.kernels[at]
            path = self._graph_paths.get(int(row["correlation"]), 0)
            # Samples of a graph's kernels share its number, and cannot be told apart.
            return self._make(row, at, path=path, correlations=(), is_sampled=False)
        row = self.rows[number]
        return self._make(
            row,
            int(self._kernel_of[number]),
            path=int(row["path"]),
            correlations=tuple(int(row[name]) for name in ("correlation", "outer") if row[name]),
            is_sampled=bool(row["flags"] & FLAG_SAMPLED),
        )

    def _make(self, row: Any, at: int, *, path: int, correlations: tuple[int, ...], is_sampled: bool) -> TimedLaunch:
        """Launch from its row or its kernel's; *at* is the kernel's position, -1 if the GPU reported none."""
        kernel = None if at < 0 else self.process.kernels[at]
        return TimedLaunch(
            kernel=self.process.texts.get(int(row["kernel"]), ""),
            context=int(row["context"]),
            path=path,
            grid=_read_three(row["grid"]),
            block=_read_three(row["block"]),
            correlations=correlations,
            is_sampled=is_sampled,
            dynamic_bytes=int(row["shared_bytes"]) if kernel is None else int(kernel["dynamic_bytes"]),
            duration_ns=None if kernel is None else int(kernel["end_ns"]) - int(kernel["start_ns"]),
            registers=None if kernel is None else int(kernel["registers"]),
            static_bytes=None if kernel is None else int(kernel["static_bytes"]),
            stream=None if kernel is None else int(kernel["stream"]),
        )

    def choose(self, selection: Selection) -> list[int]:
        """Numbers of the selected launches, ascending."""
        keys, names = self._describe()
        wanted = np.array([selection.matches(name) for name in names], bool)
        chosen = np.flatnonzero(wanted[keys[:, 0]]) if len(keys) else np.zeros(0, np.int64)
        groups = np.zeros(len(chosen), np.int64)
        if not selection.kernel and len(chosen):
            groups = np.unique(keys[chosen], axis=0, return_inverse=True)[1].reshape(-1)
        ranks = _rank(groups)
        kept = ranks >= selection.skipped_launches
        if selection.launches:
            kept &= ranks < selection.skipped_launches + selection.launches
        return [int(number) for number in chosen[kept]]

    def _describe(self) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Keys that tell launches apart: kernel (position in the names), path, grid and block; and the names."""
        graph = self.process.kernels[self._of_graphs]
        texts = np.concatenate([self.rows["kernel"], graph["kernel"]]).astype(np.int64)
        numbers, positions = np.unique(texts, return_inverse=True)
        paths = [self._graph_paths.get(one, 0) for one in graph["correlation"].tolist()]
        columns = [
            positions.reshape(-1, 1),
            np.concatenate([self.rows["path"].astype(np.int64), np.array(paths, np.int64)]).reshape(-1, 1),
            np.concatenate([self.rows["grid"].astype(np.int64), graph["grid"].astype(np.int64)]),
            np.concatenate([self.rows["block"].astype(np.int64), graph["block"].astype(np.int64)]),
        ]
        return np.concatenate(columns, axis=1), [self.process.texts.get(one, "") for one in numbers.tolist()]

    @property
    def mode(self) -> Mode:
        """Measurement mode of the process: the highest of its contexts."""
        return max((context.mode for context in self.process.contexts.values()), default=Mode.TIMING)


def _match(launches: npt.NDArray[np.void], kernels: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Position of each launch's kernel; -1 if there is none. The runtime's number takes precedence."""
    found = np.full(len(launches), -1, np.int64)
    order = np.argsort(kernels["correlation"], kind="stable")
    sorted_numbers = kernels["correlation"][order]
    for name in ("outer", "correlation"):
        numbers = launches[name]
        at = np.searchsorted(sorted_numbers, numbers)
        inside = at < len(sorted_numbers)
        is_there = np.zeros(len(launches), bool)
        is_there[inside] = sorted_numbers[at[inside]] == numbers[inside]
        is_there &= (numbers != 0) & (found < 0)
        found[is_there] = order[at[is_there]]
    return found


def _rank(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of earlier members of its group, for each element."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(ordered)])
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, lengths)
    return ranks


def _read_three(values: npt.NDArray[np.integer]) -> tuple[int, int, int]:
    x, y, z = values.tolist()
    return x, y, z


_MOST_PENDING = 1 << 21  # Rows that wait to be added up: 40 MB
_KEY = ("function", "correlation", "offset", "reason")


class SampleTotals(Struct, dict=True):
    """Summed samples of a process.

    A count of samples without issue is a part of all samples of its reason. Should a version of CUPTI count each sample under one of both names
    only, some instruction has more of the former, and then all samples are both together.
    """

    reasons: tuple[CountedReason, ...]  # what the numbers of reasons in ``rows`` stand for
    # of :data:`SAMPLE_ROW`, one for each function, launch, offset and reason that was asked for, in this order
    rows: npt.NDArray[np.void]
    dropped: int  # lost in the GPU
    foreign: int  # of code that is not the user's
    missing: int  # what the collector counted and no row has

    @cached_property
    def are_apart(self) -> bool:
        """Whether samples without issue are counted under their own name only."""
        positions = {reason: number for number, reason in enumerate(self.reasons)}
        counted = {tuple(key): count for *key, count in self.rows[[*_KEY, "samples"]].tolist()}
        plain_of = {
            number: positions[name, False]
            for (name, is_latency), number in positions.items()
            if is_latency and (name, False) in positions
        }
        return any(
            count > counted.get((*place, plain_of[reason]), 0)
            for (*place, reason), count in counted.items()
            if reason in plain_of
        )

    def list_places(self, rows: npt.NDArray[np.void]) -> Iterator[tuple[tuple[int, int], dict[str, dict[str, int]]]]:
        """Function and offset of each instruction, with its samples by reason in the profile's form."""
        has_latency = any(reason[1] for reason in self.reasons)
        found: dict[tuple[int, int], dict[str, list[int]]] = {}
        for function, _, offset, number, count in rows.tolist():
            reason = self.reasons[number]
            counts = found.setdefault((function, offset), {}).setdefault(reason[0], [0, 0])
            counts[reason[1]] += count
        for place, by_reason in sorted(found.items()):
            written = {}
            for name, (every, latency) in sorted(by_reason.items()):
                written[name] = {"all": every + latency if self.are_apart else every}
                if has_latency:
                    written[name]["latency"] = latency
            yield place, written


def add_up(process: CollectedProcess, correlations: Collection[int] | None) -> SampleTotals:
    """Read and sum the samples of a process, of some launches; None for all, whatever launch they are of."""
    adder = _Adder(process, correlations)
    for context, (total, dropped, foreign), rows in process.read_batches():
        adder.dropped += dropped
        adder.foreign += foreign
        adder.total += total
        adder.take(rows, process.reasons.get(context, {}))
    return adder.finish()


class _Adder:
    def __init__(self, process: CollectedProcess, correlations: Collection[int] | None) -> None:
        names = {name for reasons in process.reasons.values() for name in reasons.values()}
        known = {reason for name in names if (reason := read_reason(name)) is not None}
        self._reasons = tuple(sorted(known))
        self._positions = {reason: number for number, reason in enumerate(self._reasons)}
        self._is_latency = np.array([reason[1] for reason in self._reasons], bool)
        self._wanted = None if correlations is None else np.array(sorted(correlations), np.uint32)
        self._pending: list[npt.NDArray[np.void]] = []
        self._pending_rows = 0
        self._sum = np.zeros(0, SAMPLE_ROW)
        self.dropped = self.foreign = self.total = 0
        self._every = self._plain = 0

    def take(self, rows: npt.NDArray[np.void], reasons: Mapping[int, str]) -> None:
        positions = self._translate(rows["reason"], reasons)
        self._every += int(rows["samples"].sum(dtype=np.int64))
        rows = rows[positions >= 0].copy()  # the others count samples, not reasons
        rows["reason"] = positions[positions >= 0]
        counts = rows["samples"].astype(np.int64)
        plain = ~self._is_latency[rows["reason"]] if len(rows) else np.zeros(0, bool)
        self._plain += int(counts[plain].sum())
        if self._wanted is not None:
            rows = rows[np.isin(rows["correlation"], self._wanted)]
        self._pending.append(rows)
        self._pending_rows += len(rows)
        if self._pending_rows > _MOST_PENDING:
            self._reduce()

    def _translate(self, numbers: npt.NDArray[np.integer], reasons: Mapping[int, str]) -> npt.NDArray[np.int64]:
        """Positions of one GPU's numbers of reasons; -1 for numbers of no reason."""
        known = np.array(sorted(reasons), np.int64)
        if not len(known):
            return np.full(len(numbers), -1, np.int64)
        found = [read_reason(reasons[number]) for number in known.tolist()]
        places = np.array([-1 if reason is None else self._positions[reason] for reason in found], np.int64)
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[at] == numbers, places[at], -1)

    def _reduce(self) -> None:
        rows = np.concatenate([self._sum, *self._pending])
        self._pending, self._pending_rows = [], 0
        order = np.lexsort([rows[name] for name in reversed(_KEY)])
        rows = rows[order]
        is_first = np.ones(len(rows), bool)
        if len(rows):
            is_first[1:] = np.any([rows[name][1:] != rows[name][:-1] for name in _KEY], axis=0)
        starts = np.flatnonzero(is_first)
        self._sum = rows[starts].copy()
        if len(starts):
            self._sum["samples"] = np.add.reduceat(rows["samples"].astype(np.int64), starts)

    def finish(self) -> SampleTotals:
        self._reduce()
        counted = self.total - self.dropped - self.foreign
        missing = 0 if counted in (self._every, self._plain) else max(0, counted - self._every)
        return SampleTotals(
            reasons=self._reasons, rows=self._sum, dropped=self.dropped, foreign=self.foreign, missing=missing
        )
