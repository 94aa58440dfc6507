"""Lines of a kernel: what each is stalled on, what is stalled on it, its hottest instructions, its advice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.ownership import is_library_file
from gpa_lsp.kernel.line_waits import LineWait
from gpa_lsp.kernel.scopes import ScopeKind
from gpa_lsp.report.changes import Place
from gpa_lsp.report.model import InstructionColumns, KernelReport
from gpa_lsp.report.pairs import LineBlame, LinePair, build_pair_index

_HOTTEST_PER_LINE = 5

MOST_PAIRS = 12  # Pairs kept per line and direction; the rest is counted in the sums


class LineCauses(Struct, frozen=True, kw_only=True):
    """Stalls of one line of one kernel, by cause."""

    blame: LineBlame  # what became of its samples, and what it costs others
    waits: tuple[LinePair, ...]  # what it is stalled on, most samples first
    waiters: tuple[LinePair, ...]  # what is stalled on it, most samples first
    # reason → stall samples that are the line's own matter, most first; issuing and being passed over are no stalls
    own_stalls: Mapping[str, float]
    called_samples: float  # estimate of samples in functions called from this line

    @property
    def caused_samples(self) -> float:
        """Stalls attributed to this line, wherever they were taken."""
        return self.blame.causing_samples + sum(self.own_stalls.values())


def list_waits(kernel: KernelReport) -> tuple[LineWait, ...]:
    """Share of the stalls that each line causes, largest first; empty without attribution."""
    total = max(kernel.total_samples, 1)
    found = (
        LineWait(ratio=min(1.0, one.caused_samples / total), is_simulated=kernel.is_simulated, file=file, line=line)
        for (file, line), one in find_causes(kernel).items()
    )
    return tuple(sorted(found, reverse=True))


def find_causes(kernel: KernelReport) -> dict[Place, LineCauses]:
    """Lines that are stalled or cause stalls; empty without attribution."""
    index = build_pair_index(kernel)
    if index is None:
        return {}
    called = {(row.file, row.line): row.called_samples for row in kernel.lines if row.called_samples}
    found: dict[Place, LineCauses] = {}
    for place in index.places:
        blame = index.measure_line(place)
        called_samples = called.get((place.file, place.line), 0.0)
        taken = blame.waiting_samples + blame.own_samples + blame.unattributed_samples
        if blame.causing_samples + taken + called_samples <= 0:
            continue
        found[(place.file, place.line)] = LineCauses(
            blame=blame,
            waits=index.list_waits(place)[:MOST_PAIRS],
            waiters=index.list_waiters(place)[:MOST_PAIRS],
            own_stalls=index.count_own_stalls(place),
            called_samples=called_samples,
        )
    return found


def find_remedies(kernel: KernelReport) -> dict[Place, tuple[int, ...]]:
    """Advice of each line: as a cause in a hotspot, or as the place of a region.

    Returns:
        Indices into the kernel's advice, best first.
    """
    found: dict[Place, dict[int, None]] = {}
    for number, advice in enumerate(_list_advice(kernel)):
        for place in _list_places(advice, kernel):
            found.setdefault(place, {})[number] = None
    return {place: tuple(numbers) for place, numbers in found.items()}


def _list_advice(kernel: KernelReport) -> tuple[Advice, ...]:
    return () if kernel.advice is None else kernel.advice.advice


def _list_places(advice: Advice, kernel: KernelReport) -> Iterator[Place]:
    columns = kernel.instructions
    for region in advice.regions:
        scope = region.scope
        if scope.kind not in (ScopeKind.KERNEL, ScopeKind.FUNCTION) and scope.file and scope.line:
            yield scope.file, scope.line
        for hotspot in region.hotspots:
            chain = int(columns.chain_index[hotspot.def_row])
            if chain >= 0:
                yield from list_places(columns.chains[chain])


def list_places(chain: InlineChain) -> Iterable[Place]:
    """The lines of an inline chain, innermost first."""
    return ((frame.file, frame.line) for frame in chain if frame.line)


def sum_by_line(
    instructions: InstructionColumns, values: npt.NDArray[np.float64]
) -> dict[Place, npt.NDArray[np.float64]]:
    """Sums per line over the instructions with that line anywhere in their inline chain.

    Args:
        instructions: n of them.
        values: float64[n, k].

    Returns:
        float64[k] for each line; lines whose sums are all zero are left out.
    """
    sums = np.zeros((len(instructions.chains), values.shape[1]))
    known = instructions.chain_index >= 0
    np.add.at(sums, instructions.chain_index[known], values[known])
    found: dict[Place, npt.NDArray[np.float64]] = {}
    for number in np.flatnonzero(sums.any(axis=1)).tolist():
        for place in dict.fromkeys(list_places(instructions.chains[number])):
            found[place] = found[place] + sums[number] if place in found else sums[number]
    return found


def find_hottest(instructions: InstructionColumns) -> dict[tuple[str, int], tuple[int, ...]]:
    """Sampled instructions of each line (anywhere in the inline chain), most samples first, a few at most."""
    samples = instructions.all_samples.sum(axis=1)
    hottest: dict[tuple[str, int], list[int]] = {}
    for index in (-samples).argsort(kind="stable"):
        chain_index = int(instructions.chain_index[index])
        if samples[index] == 0 or chain_index < 0:
            continue
        for place in {(frame.file, frame.line) for frame in instructions.chains[chain_index]}:
            found = hottest.setdefault(place, [])
            if len(found) < _HOTTEST_PER_LINE:
                found.append(int(index))
    return {place: tuple(found) for place, found in hottest.items()}


def find_body(kernel: KernelReport) -> tuple[str, tuple[int, ...]] | None:
    """Lines of the kernel's own body: outermost frames of its instructions, in the file with most of them; None without lines.

    Files of libraries count where there are no others: Julia names no caller of what it compiles into a kernel, most of which is its Base.
    """
    columns = kernel.instructions
    if kernel.mangled_name not in columns.functions:
        return None
    own = columns.function_index == columns.functions.index(kernel.mangled_name)
    chains = set(columns.chain_index[own & (columns.chain_index >= 0)].tolist())
    outermost = [columns.chains[chain][-1] for chain in chains]
    places = [(frame.file, frame.line) for frame in outermost if frame.line > 0]
    if not places:
        return None
    own_files = [file for file, _ in places if not is_library_file(file)]
    ((file, _),) = Counter(own_files or [file for file, _ in places]).most_common(1)
    return file, tuple(sorted({line for place_file, line in places if place_file == file}))
