"""What the editor shows of causes: per line what it waits for, who waits for it, and the advice about it. Computed in the worker process."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.advice.model import Advice
    from gpa_lsp.locations import InlineChain
    from gpa_lsp.report.model import KernelReport
    from gpa_lsp.report.pairs import LineBlame, LinePair

Place = tuple[str, int]
"""File as compiled, and line."""

MOST_PAIRS = 12
"""Pairs kept per line and direction; the rest is counted in the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCauses:
    """One line of one kernel, by cause.

    Attributes:
        blame: what became of its samples, and what it costs others.
        waits: what it waits for, most samples first.
        waiters: who waits for it, most samples first.
        own_stalls: reason → stall samples that are the line's own matter, most first; issuing and being passed over are no stalls.
        called_samples: estimate of samples in functions called from this line.
    """

    blame: "LineBlame"
    waits: tuple["LinePair", ...]
    waiters: tuple["LinePair", ...]
    own_stalls: Mapping[str, float]
    called_samples: float

    @property
    def caused_samples(self) -> float:
        """Stalls that would go if this line were free: those blamed on it, wherever they were taken."""
        return self.blame.causing_samples + sum(self.own_stalls.values())


def find_causes(kernel: "KernelReport") -> dict[Place, LineCauses]:
    """Every line of a kernel that waits or is waited for; empty where nothing was blamed."""
    from gpa_lsp.report.pairs import build_pair_index  # see above

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


def find_remedies(kernel: "KernelReport") -> dict[Place, tuple[int, ...]]:
    """Line → the advice that names it: as the cause in one of its hotspots, or as the place of one of its regions.

    Returns:
        Indices into the kernel's advice, best first.
    """
    found: dict[Place, dict[int, None]] = {}
    for number, advice in enumerate(_list_advice(kernel)):
        for place in _list_places(advice, kernel):
            found.setdefault(place, {})[number] = None
    return {place: tuple(numbers) for place, numbers in found.items()}


def _list_advice(kernel: "KernelReport") -> "tuple[Advice, ...]":
    return () if kernel.advice is None else kernel.advice.advice


def _list_places(advice: "Advice", kernel: "KernelReport") -> Iterator[Place]:
    from gpa_lsp.advice.model import ScopeKind

    columns = kernel.instructions
    for region in advice.regions:
        scope = region.scope
        if scope.kind not in (ScopeKind.KERNEL, ScopeKind.FUNCTION) and scope.file and scope.line:
            yield scope.file, scope.line
        for hotspot in region.hotspots:
            chain = int(columns.chain_index[hotspot.def_row])
            if chain >= 0:
                yield from list_places(columns.chains[chain])


def list_places(chain: "InlineChain") -> Iterable[Place]:
    """The lines of an inline chain, innermost first."""
    return ((frame.file, frame.line) for frame in chain if frame.line)
