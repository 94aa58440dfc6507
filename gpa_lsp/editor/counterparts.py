"""The other ends of a line's stalls: every place it waits for, or that waits for it, once, whatever the reasons are. Pure functions."""

from typing import TYPE_CHECKING

from gpa_lsp.editor.identity_cache import IdentityCache
from gpa_lsp.editor.lines.places import Place
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.report.pairs import LinePair

_ALL_RATIO = 0.95  # Of the samples of a place: a pair with as many speaks for all of them


class Counterpart(ColumnRecord, frozen=True, kw_only=True):
    """One place at the other end."""

    place: Place | None  # None for all code without lines together
    samples: float  # of all pairs with that place
    heaviest: "LinePair"  # the pair with most of them


def gather_counterparts(pairs: "tuple[LinePair, ...]") -> tuple[Counterpart, ...]:
    """The places of some pairs of one line, most samples first."""
    return _known(pairs)


def gather_for_reason(pairs: "tuple[LinePair, ...]", reason: str) -> tuple[Counterpart, ...]:
    """The same of the pairs with one stall reason."""
    return _gather(tuple(pair for pair in pairs if pair.reason == reason))


def _gather(pairs: "tuple[LinePair, ...]") -> tuple[Counterpart, ...]:
    sums: dict[Place | None, float] = {}
    heaviest: dict[Place | None, LinePair] = {}
    for pair in pairs:
        place = None if pair.place is None else (pair.place.file, pair.place.line)
        sums[place] = sums.get(place, 0.0) + pair.samples
        heaviest.setdefault(place, pair)
    ranked = sorted(sums, key=lambda place: -sums[place])
    return tuple(Counterpart(place=place, samples=sums[place], heaviest=heaviest[place]) for place in ranked)


def describe_counterpart(counterpart: Counterpart) -> str:
    """``60 samples of long_scoreboard through R2``: what connects the two; ``60 samples, mostly …`` where other things do as well."""
    from gpa_lsp.code.binary.model import name_resource  # needs numpy, which the answer to initialize must not wait for

    pair = counterpart.heaviest
    count = round(counterpart.samples)
    link = ", mostly" if pair.samples < _ALL_RATIO * counterpart.samples else " of"
    text = f"{format_count_of(count, 'sample')}{link} {pair.reason}"
    return text if pair.resource is None else f"{text} through {name_resource(pair.resource)}"


_known: "IdentityCache[tuple[LinePair, ...], tuple[Counterpart, ...]]" = IdentityCache(_gather)
