"""Def-use pairs by source line, and the graph of a kernel's instructions.

Blame joins instructions; people read lines. An instruction belongs to every line of its inline chain, so a pair is found from the line inside
the inlined function as well as from the line that calls it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, KernelBlame
from gpa_lsp.foundation.distinct import find_distinct, find_distinct_rows
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import SourceLine, is_path_end, write_place
from gpa_lsp.foundation.ownership import choose_frame, choose_other_frame
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.model import InstructionColumns, KernelReport

if TYPE_CHECKING:
    import networkx as nx


class BlamedPair(Struct, frozen=True, kw_only=True):
    """Samples of one stall reason at a use, blamed on a def."""

    reason: str  # stall reason
    category: BlameCategory  # what kind of cause it is
    dependency: Dependency  # how the use depends on the def
    samples: float  # blamed on the def
    # of the samples, those whose use waits for this def alone; the others were shared out by convention
    separable_samples: float
    resource: int | None  # resource number that connects the two; None when none does
    distance_cycles: int | None  # between the two, encoded cycles; None when unknown


class InstructionPair(BlamedPair, frozen=True, kw_only=True):
    """A pair with one instruction as cause or as victim, for one reason."""

    row: int  # the other instruction


class LinePair(BlamedPair, frozen=True, kw_only=True):
    """Pairs of a line with one other place as cause or as victim, for one reason; over all instructions of both.

    What connects the two is said of the heaviest pair of instructions.
    """

    # the other line, as compiled; None where the other instructions have none. It may be the same line: one of its instructions waits for another.
    place: SourceLine | None
    latency_samples: float | None  # of the samples, those without issue; None when unknown
    edge_count: int  # pairs of instructions
    use_row: int  # the suffering instruction of the heaviest pair
    def_row: int  # its causing instruction


class LineBlame(Struct, frozen=True, kw_only=True):
    """Samples of one line by outcome, and stalls it causes elsewhere. The first three sum to the line's inclusive samples."""

    waiting_samples: float  # taken here, blamed on other instructions (of this line or another)
    own_samples: float  # taken here, and the instruction's own matter
    unattributed_samples: float  # taken here, nobody is blamed
    causing_samples: float  # blamed on instructions of this line by other instructions (of this line or another)


class PairIndex:
    """Pairs of one kernel, by line."""

    def __init__(self, columns: InstructionColumns, blame: KernelBlame) -> None:
        self._columns = columns
        self._edges = blame.edges
        self._chains_of: dict[SourceLine, list[int]] = {}
        for number, chain in enumerate(columns.chains):
            for place in dict.fromkeys(frame.source_line for frame in chain):
                self._chains_of.setdefault(place, []).append(number)
        self._bundles = _bundle_edges(columns, blame.edges)
        self._own = _sum_by_chain(columns, blame.edges.use_row, blame.edges.all_samples * ~blame.edges.is_moved)
        self._own_stalls = _sum_own_stalls(columns, blame.edges)
        self._lost = _sum_by_chain(columns, blame.unattributed.row, blame.unattributed.all_samples)

    @property
    def places(self) -> Iterable[SourceLine]:
        """All lines of the kernel's instructions."""
        return self._chains_of.keys()

    def list_waits(self, place: SourceLine) -> tuple[LinePair, ...]:
        """Causes of a line's stalls, most samples first."""
        return self._gather(place, self._bundles.by_use)

    def list_waiters(self, place: SourceLine) -> tuple[LinePair, ...]:
        """Places stalled on a line, most samples first."""
        return self._gather(place, self._bundles.by_def)

    def measure_line(self, place: SourceLine) -> LineBlame:
        """Samples of a line by outcome; zeros for a line without instructions."""
        chains = self._chains_of.get(place, [])
        bundles = self._bundles
        waiting = [number for chain in chains for number in bundles.by_use.get(chain, ())]
        causing = [number for chain in chains for number in bundles.by_def.get(chain, ())]
        return LineBlame(
            waiting_samples=float(bundles.samples[waiting].sum()),
            own_samples=float(self._own[chains].sum()),
            unattributed_samples=float(self._lost[chains].sum()),
            causing_samples=float(bundles.samples[causing].sum()),
        )

    def count_own_stalls(self, place: SourceLine) -> Mapping[str, float]:
        """Stall reason → samples whose cause is the line's own instruction, most first; issuing and not-selected are no stalls."""
        sums = self._own_stalls[self._chains_of.get(place, [])].sum(axis=0)
        order = sorted(np.flatnonzero(sums).tolist(), key=lambda reason: (-sums[reason], self._columns.reasons[reason]))
        return {self._columns.reasons[reason]: float(sums[reason]) for reason in order}

    def _gather(self, place: SourceLine, numbers_of: Mapping[int, list[int]]) -> tuple[LinePair, ...]:
        bundles, is_use = self._bundles, numbers_of is self._bundles.by_use
        alike: dict[tuple[SourceLine | None, int, int], list[int]] = {}
        for chain in self._chains_of.get(place, ()):
            for number in numbers_of.get(chain, ()):
                other = int(bundles.def_chain[number] if is_use else bundles.use_chain[number])
                shown = self._name_other(chain, other)
                key = (shown, int(bundles.reason[number]), int(bundles.category[number]))
                alike.setdefault(key, []).append(number)
        pairs = [self._make_pair(shown, numbers) for (shown, _, _), numbers in alike.items()]
        pairs.sort(key=lambda pair: (-pair.samples, pair.use_row, pair.def_row, pair.reason))
        return tuple(pairs)

    def _name_other(self, own: int, other: int) -> SourceLine | None:
        if other < 0:
            return None
        return choose_other_frame(self._columns.chains[own], self._columns.chains[other]).source_line

    def _make_pair(self, place: SourceLine | None, numbers: list[int]) -> LinePair:
        bundles, edges = self._bundles, self._edges
        heaviest = int(
            bundles.heaviest[max(numbers, key=lambda number: float(edges.all_samples[bundles.heaviest[number]]))]
        )
        return LinePair(
            place=place,
            samples=float(bundles.samples[numbers].sum()),
            latency_samples=None if bundles.latency_samples is None else float(bundles.latency_samples[numbers].sum()),
            separable_samples=float(bundles.separable_samples[numbers].sum()),
            edge_count=int(bundles.edge_count[numbers].sum()),
            use_row=int(edges.use_row[heaviest]),
            def_row=int(edges.def_row[heaviest]),
            **_describe_edge(self._columns, edges, heaviest),
        )


def _describe_edge(columns: InstructionColumns, edges: BlameEdges, number: int) -> dict[str, Any]:
    """Connection between the two ends of an edge, as fields of a :class:`BlamedPair`."""
    resource, cycles = (
        None if one < 0 else int(one) for one in (edges.resource[number], edges.distance_cycles[number])
    )
    return {
        "reason": columns.reasons[edges.reason[number]],
        "category": BlameCategory(int(edges.category[number])),
        "dependency": Dependency(int(edges.dependency[number])),
        "resource": resource,
        "distance_cycles": cycles,
    }


def build_pair_index(kernel: KernelReport) -> PairIndex | None:
    """Index of a kernel; None without attribution."""
    return None if kernel.blame is None else PairIndex(kernel.instructions, kernel.blame)


class _Bundles(ColumnRecord, frozen=True, kw_only=True):
    """The b combinations of use chain, def chain, reason and category among moved edges."""

    use_chain: npt.NDArray[np.int64]  # int64[b], -1 without line
    def_chain: npt.NDArray[np.int64]  # int64[b], -1 without line
    reason: npt.NDArray[np.int64]  # int64[b]
    category: npt.NDArray[np.int64]  # int64[b]
    samples: npt.NDArray[np.float64]  # float64[b]
    latency_samples: npt.NDArray[np.float64] | None  # float64[b]; None when unknown
    separable_samples: npt.NDArray[np.float64]  # float64[b]
    edge_count: npt.NDArray[np.int64]  # int64[b]
    heaviest: npt.NDArray[np.int64]  # int64[b], number of the edge with most samples
    by_use: Mapping[int, list[int]]  # use chain → bundles
    by_def: Mapping[int, list[int]]  # def chain → bundles


def _bundle_edges(columns: InstructionColumns, edges: BlameEdges) -> _Bundles:
    is_separable = _find_separable(edges)
    moved = np.flatnonzero(edges.is_moved)
    moved = moved[
        np.argsort(-edges.all_samples[moved], kind="stable")
    ]  # so that the first of each bundle is its heaviest
    table = np.stack(
        [
            columns.chain_index[edges.use_row[moved]].astype(np.int64),
            columns.chain_index[edges.def_row[moved]].astype(np.int64),
            edges.reason[moved].astype(np.int64),
            edges.category[moved].astype(np.int64),
        ],
        axis=1,
    )
    kinds, first, number = np.unique(table, axis=0, return_index=True, return_inverse=True)
    number = number.reshape(-1)
    samples, latency = edges.all_samples[moved], edges.latency_samples
    size = len(kinds)
    return _Bundles(
        use_chain=kinds[:, 0],
        def_chain=kinds[:, 1],
        reason=kinds[:, 2],
        category=kinds[:, 3],
        samples=_sum_by_number(number, samples, size),
        latency_samples=None if latency is None else _sum_by_number(number, latency[moved], size),
        separable_samples=_sum_by_number(number, samples * is_separable[moved], size),
        edge_count=np.bincount(number, minlength=size).astype(np.int64),
        heaviest=moved[first].astype(np.int64),
        by_use=_list_by_chain(kinds[:, 0]),
        by_def=_list_by_chain(kinds[:, 1]),
    )


def _find_separable(edges: BlameEdges) -> npt.NDArray[np.bool_]:
    """bool[e], edges whose group has one def only."""
    _, group_number = np.unique(edges.group, return_inverse=True)
    causes = find_distinct_rows(np.stack([group_number.reshape(-1), edges.def_row], axis=1))
    cause_count = np.bincount(causes[:, 0])
    return np.equal(cause_count[group_number.reshape(-1)], 1)


def _list_by_chain(chains: npt.NDArray[np.int64]) -> Mapping[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for number, chain in enumerate(chains.tolist()):
        numbers.setdefault(chain, []).append(number)
    return numbers


def _sum_by_chain(
    columns: InstructionColumns, rows: npt.NDArray[np.int32], samples: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """float64[chains], samples of some rows by their inline chain."""
    chains = columns.chain_index[rows]
    placed = chains >= 0
    return _sum_by_number(chains[placed], samples[placed], len(columns.chains))


def _sum_by_number(
    numbers: npt.NDArray[np.integer[Any]], samples: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    return np.bincount(numbers, weights=samples, minlength=size).astype(np.float64)


def _sum_own_stalls(columns: InstructionColumns, edges: BlameEdges) -> npt.NDArray[np.float64]:
    """float64[chains, k], stalls that stay with their instruction."""
    is_stall = np.array([describe_stall_reason(reason).is_stall for reason in columns.reasons], dtype=np.bool_)
    chains = columns.chain_index[edges.use_row]
    own = ~edges.is_moved & is_stall[edges.reason] & (chains >= 0)
    sums = np.zeros((len(columns.chains), len(columns.reasons)))
    np.add.at(sums, (chains[own], edges.reason[own]), edges.all_samples[own])
    return sums


MOST_PAIRS = 200  # Of one instruction, the heaviest ones: lists for people, not sums


def list_causes(kernel: KernelReport, row: int) -> tuple[InstructionPair, ...]:
    """Causes of an instruction's stalls, most samples first; empty without attribution."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    start, end = np.searchsorted(edges.use_row, (row, row + 1)).tolist()
    numbers = np.arange(start, end)[edges.is_moved[start:end]]
    return _make_pairs(kernel, edges, numbers, edges.def_row)


def list_victims(kernel: KernelReport, row: int) -> tuple[InstructionPair, ...]:
    """Instructions stalled on an instruction, most samples first; empty without attribution."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    numbers = np.flatnonzero(edges.def_row == row)
    return _make_pairs(kernel, edges, numbers[edges.use_row[numbers] != row], edges.use_row)


def join_by_instruction(pairs: Iterable[InstructionPair]) -> list[tuple[float, InstructionPair]]:
    """Other instructions of some pairs, with samples of all reasons and their heaviest pair, most samples first.

    Args:
        pairs: most samples first.
    """
    sums: dict[int, float] = {}
    heaviest: dict[int, InstructionPair] = {}
    for pair in pairs:
        sums[pair.row] = sums.get(pair.row, 0.0) + pair.samples
        heaviest.setdefault(pair.row, pair)
    ranked = sorted(sums, key=lambda row: (-sums[row], row))
    return [(sums[row], heaviest[row]) for row in ranked]


def list_own(kernel: KernelReport, row: int) -> tuple[tuple[str, float], ...]:
    """Reasons of an instruction's samples that have no other cause (issuing included), with samples, most first."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    start, end = np.searchsorted(edges.use_row, (row, row + 1)).tolist()
    own = np.arange(start, end)[~edges.is_moved[start:end]]
    sums = np.bincount(edges.reason[own], weights=edges.all_samples[own], minlength=1)
    order = np.flatnonzero(sums)[np.argsort(-sums[np.flatnonzero(sums)], kind="stable")]
    return tuple((kernel.instructions.reasons[reason], float(sums[reason])) for reason in order.tolist())


def count_unattributed(kernel: KernelReport, row: int) -> float:
    """Samples of an instruction without a known cause."""
    if kernel.blame is None:
        return 0.0
    lost = kernel.blame.unattributed
    return float(lost.all_samples[lost.row == row].sum())


def _make_pairs(
    kernel: KernelReport, edges: BlameEdges, numbers: npt.NDArray[np.int64], others: npt.NDArray[np.int32]
) -> tuple[InstructionPair, ...]:
    """Pairs of some edges, at most :data:`MOST_PAIRS`, without those of zero samples."""
    numbers = numbers[edges.all_samples[numbers] > 0]
    order = numbers[np.lexsort((others[numbers], -edges.all_samples[numbers]))]
    samples = edges.all_samples
    return tuple(
        InstructionPair(
            row=int(others[number]),
            samples=float(samples[number]),
            separable_samples=float(samples[number]) if _is_alone(edges, number) else 0.0,
            **_describe_edge(kernel.instructions, edges, number),
        )
        for number in order[:MOST_PAIRS].tolist()
    )


def _is_alone(edges: BlameEdges, number: int) -> bool:
    """Whether an edge's group has one def only; a group is of one use, and edges are in the order of their uses."""
    use = int(edges.use_row[number])
    start, end = np.searchsorted(edges.use_row, (use, use + 1)).tolist()
    together = edges.group[start:end] == edges.group[number]
    return len(find_distinct(edges.def_row[start:end][together])) == 1


def build_def_use_graph(kernel: KernelReport) -> "nx.DiGraph[int]":
    """Graph of a kernel's instructions that were sampled or cause stalls.

    An edge leads from the cause (def) to the instruction that was stalled (use), as in GPA, section IV and Figure 4. Samples are conserved: those
    that arrive at an instruction over its edges, its own and its unattributed ones are the samples that were taken there.

    Nodes are rows of ``kernel.instructions``; what is not known is absent. A node has ``function``, ``pc_offset`` (bytes), ``text`` (SASS),
    ``samples``, ``by_reason`` (stall reason → samples), ``own_samples`` (its own matter), ``unattributed_samples``, ``caused_samples`` (of others,
    blamed on it), ``file``, ``line`` (1-based, innermost frame) and ``executions`` (of warps, all launches). An edge has ``samples``,
    ``latency_samples`` (without issue), ``by_reason``, ``category`` and ``dependency`` of its heaviest reason, ``is_shared`` (several causes were
    waited for together: the split is a convention), ``resource`` (register), ``distance_instructions`` and ``distance_cycles``.

    Args:
        kernel: of a report.

    Returns:
        A graph whose attributes are ``kernel``, ``mangled_name``, ``unit`` ("samples") and ``total_samples``.

    Raises:
        InputError: nothing was blamed: the kernel has no samples, or its code is not in the report.
    """
    blame = kernel.blame
    if blame is None:
        raise InputError(
            f"{kernel.name} has no def-use graph: it has no samples, or no causes were found",
            remedy="give a report with sampled stalls and its code",
        )
    import networkx as nx  # as slow to import as numpy

    columns, edges = kernel.instructions, blame.edges
    graph: nx.DiGraph[int] = nx.DiGraph(
        kernel=kernel.name, mangled_name=kernel.mangled_name, unit="samples", total_samples=kernel.total_samples
    )
    count = len(columns)
    moved = edges.is_moved
    own = np.bincount(edges.use_row[~moved], edges.all_samples[~moved], count)
    caused = np.bincount(edges.def_row[moved], edges.all_samples[moved], count)
    lost = np.bincount(blame.unattributed.row, blame.unattributed.all_samples, count)
    sampled = columns.all_samples.sum(axis=1)
    for row in np.flatnonzero((sampled > 0) | (caused > 0)).tolist():
        known = _describe_instruction(columns, row)
        graph.add_node(
            row,
            **known,
            samples=int(sampled[row]),
            own_samples=float(own[row]),
            unattributed_samples=float(lost[row]),
            caused_samples=float(caused[row]),
        )
    _add_edges(graph, edges, columns.reasons)
    return graph


def cut_around(graph: "nx.DiGraph[int]", lines: Collection[tuple[str | None, int]], steps: int) -> "nx.DiGraph[int]":
    """Subgraph around source lines: their instructions, and all within some steps along or against edges.

    Args:
        graph: of :func:`build_def_use_graph`.
        lines: file (any end of its path; None for every file) and 1-based line.
        steps: at least 0.

    Raises:
        InputError: no instruction of the graph is of these lines.
    """
    import networkx as nx

    near = {
        row
        for row, known in graph.nodes(data=True)
        for file, line in lines
        if known.get("line") == line and (file is None or is_path_end(known["file"], file))
    }
    if not near:
        raise InputError(
            f"no sampled instruction of {graph.graph['kernel']} is of "
            + ", ".join(f"line {line}" if file is None else write_place(file, line) for file, line in lines),
            remedy="lines are those that were measured; gpa-lsp check lists the hot ones",
        )
    found = set(near)
    for _ in range(steps):
        near = {other for row in near for other in (*graph.successors(row), *graph.predecessors(row))} - found
        found |= near
    return nx.DiGraph(graph.subgraph(found))


def _describe_instruction(columns: InstructionColumns, row: int) -> dict[str, Any]:
    known: dict[str, Any] = {
        "function": columns.functions[columns.function_index[row]],
        "pc_offset": int(columns.pc_offsets[row]),
        "text": columns.texts[row],
        "by_reason": {
            reason: samples
            for reason, samples in zip(columns.reasons, columns.all_samples[row].tolist(), strict=True)
            if samples
        },
    }
    chain = int(columns.chain_index[row])
    if chain >= 0:
        frame = choose_frame(columns.chains[chain])
        known |= {"file": frame.file, "line": frame.line}
    executions = int(columns.executions[row])
    if executions >= 0:
        known["executions"] = executions
    return known


def _add_edges(graph: "nx.DiGraph[int]", edges: BlameEdges, reasons: tuple[str, ...]) -> None:
    """Add one edge per pair of instructions; its facts are those of the heaviest reason."""
    moved = np.flatnonzero(edges.is_moved)
    groups, sizes = np.unique(edges.group, return_counts=True)
    size_of = dict(zip(groups.tolist(), sizes.tolist(), strict=True))
    for edge in moved[np.argsort(-edges.all_samples[moved], kind="stable")].tolist():
        pair = int(edges.def_row[edge]), int(edges.use_row[edge])
        samples, reason = float(edges.all_samples[edge]), reasons[edges.reason[edge]]
        latency = None if edges.latency_samples is None else float(edges.latency_samples[edge])
        if graph.has_edge(*pair):
            known = graph.edges[pair]
            known["samples"] += samples
            known["by_reason"][reason] = known["by_reason"].get(reason, 0.0) + samples
            if latency is not None:
                known["latency_samples"] += latency
            continue
        known = {
            "samples": samples,
            "by_reason": {reason: samples},
            "category": BlameCategory(edges.category[edge]).name.lower(),
            "dependency": Dependency(edges.dependency[edge]).name.lower(),
            "is_shared": size_of[int(edges.group[edge])] > 1,
        }
        if latency is not None:
            known["latency_samples"] = latency
        if edges.resource[edge] >= 0:
            known["resource"] = name_resource(int(edges.resource[edge]))
        for name, distance in (
            ("distance_instructions", edges.distance_instructions[edge]),
            ("distance_cycles", edges.distance_cycles[edge]),
        ):
            if distance >= 0:
                known[name] = int(distance)
        graph.add_edge(*pair, **known)
