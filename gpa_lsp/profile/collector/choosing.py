"""Which launches of a run go into its profile: the first few of each kernel, launch configuration and calling context."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.profile.collector.records import FLAG_GRAPH, FLAG_SAMPLED, CollectedProcess, Mode


class Selection(Struct, frozen=True, kw_only=True):
    """What is wanted of a run."""

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
    """A launch with what the GPU said of it."""

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
    """The launches of a process beside the times of their kernels, as columns.

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
        """One of them: those that the program launched, then those that graphs did."""
        if number >= len(self.rows):
            return self._build_of_graph(int(self._of_graphs[number - len(self.rows)]))
        row = self.rows[number]
        at = int(self._kernel_of[number])
        kernel = None if at < 0 else self.process.kernels[at]
        return TimedLaunch(
            kernel=self.process.texts.get(int(row["kernel"]), ""),
            context=int(row["context"]),
            path=int(row["path"]),
            grid=_read_three(row["grid"]),
            block=_read_three(row["block"]),
            correlations=tuple(int(row[name]) for name in ("correlation", "outer") if row[name]),
            is_sampled=bool(row["flags"] & FLAG_SAMPLED),
            dynamic_bytes=int(row["shared_bytes"]) if kernel is None else int(kernel["dynamic_bytes"]),
            duration_ns=None if kernel is None else int(kernel["end_ns"]) - int(kernel["start_ns"]),
            registers=None if kernel is None else int(kernel["registers"]),
            static_bytes=None if kernel is None else int(kernel["static_bytes"]),
            stream=None if kernel is None else int(kernel["stream"]),
        )

    def _build_of_graph(self, at: int) -> TimedLaunch:
        kernel = self.process.kernels[at]
        correlation = int(kernel["correlation"])
        return TimedLaunch(
            kernel=self.process.texts.get(int(kernel["kernel"]), ""),
            context=int(kernel["context"]),
            path=self._graph_paths.get(correlation, 0),
            grid=_read_three(kernel["grid"]),
            block=_read_three(kernel["block"]),
            correlations=(),  # samples of a graph's kernels share its number, and cannot be told apart
            is_sampled=False,
            dynamic_bytes=int(kernel["dynamic_bytes"]),
            duration_ns=int(kernel["end_ns"]) - int(kernel["start_ns"]),
            registers=int(kernel["registers"]),
            static_bytes=int(kernel["static_bytes"]),
            stream=int(kernel["stream"]),
        )

    def choose(self, selection: Selection) -> list[int]:
        """Numbers of the launches that are wanted, ascending."""
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
        """What tells launches apart: kernel (by position in the names), path, grid and block."""
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
        """How the process was measured: what most of it allows."""
        return max((context.mode for context in self.process.contexts.values()), default=Mode.TIMING)


def _match(launches: npt.NDArray[np.void], kernels: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """For each launch the position of its kernel; -1 where there is none. A runtime's launch is known by the runtime's number."""
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
    """How many of its group come before each."""
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
