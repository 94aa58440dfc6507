"""Which kernel before is which kernel after: by name, as somebody says, or by what they look like."""

import math
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import Sentence, list_of, percent, say
from gpa_lsp.kernel.names import list_named, shorten_name
from gpa_lsp.report.comparison import LikelyPair
from gpa_lsp.report.differences import count_opcodes
from gpa_lsp.report.families import find_family
from gpa_lsp.report.model import KernelReport, Report

Pair = tuple[KernelReport, KernelReport]

_LEAST_LIKENESS = 0.55
_MOST_COMPARED = 10_000  # Pairs of kernels that are looked at; whoever has more names them
_ALIKE = 0.8  # From this likeness of two opcode counts on the code is called similar
_LISTED_NAMES = 20


def pair_by_name(
    before: Sequence[KernelReport], after: Sequence[KernelReport]
) -> tuple[list[Pair], list[KernelReport], list[KernelReport]]:
    """Kernels of the same linkage name and GPU, then those whose short name is unique on both sides; and what is left over of each side."""
    pairs: list[Pair] = []
    old, new = list(before), list(after)
    for name in (_full_name, _short_name):
        for kernel in list(old):
            alike = [other for other in new if name(other) == name(kernel)]
            rivals = [other for other in old if name(other) == name(kernel)]
            if len(alike) == 1 and len(rivals) == 1:
                pairs.append((kernel, alike[0]))
                old.remove(kernel)
                new.remove(alike[0])
    return pairs, old, new


def _full_name(kernel: KernelReport) -> tuple[str, str | None]:
    return kernel.mangled_name, kernel.device.name


def _short_name(kernel: KernelReport) -> tuple[str, str | None]:
    return find_family(kernel.name, None).name, None


def find_named(report: Report, text: str, side: str) -> KernelReport:
    """The kernel that ``text`` names, as in :func:`~gpa_lsp.kernel.names.list_named`.

    Args:
        side: ``before`` or ``after``, for the message.

    Raises:
        InputError: there is none, or there are several.
    """
    found = list_named(text, report.kernels, lambda kernel: (kernel.mangled_name, kernel.name))
    if len(found) == 1:
        return found[0]
    problem = f"several kernels {side} are named" if found else f"no kernel {side} is named"
    listed = list(dict.fromkeys(shorten_name(kernel.name) for kernel in found or report.kernels))
    more = " and others" if len(listed) > _LISTED_NAMES else ""
    raise InputError(
        f"{problem} {text!r}", remedy=f"there are {', '.join(listed[:_LISTED_NAMES])}{more}" if listed else None
    )


def find_likely_pairs(before: Sequence[KernelReport], after: Sequence[KernelReport]) -> tuple[LikelyPair, ...]:
    """Kernels on the same GPU that look alike, most alike first; none is in two pairs."""
    if len(before) * len(after) > _MOST_COMPARED:
        return ()
    opcodes = {id(kernel): count_opcodes(kernel) for kernel in (*before, *after)}
    every = [
        _Likeness.of(old, new, _compare_counts(opcodes[id(old)], opcodes[id(new)]))
        for old in before
        for new in after
        if old.device.name == new.device.name
    ]
    found: list[LikelyPair] = []
    for one in sorted(every, key=lambda likeness: -likeness.value):
        is_free = all(one.before is not pair.before and one.after is not pair.after for pair in found)
        if is_free and one.value >= _LEAST_LIKENESS:
            found.append(LikelyPair(before=one.before, after=one.after, likeness=one.value, why=one.explain()))
    return tuple(found)


class _Likeness(Struct, frozen=True, kw_only=True):
    """How alike two kernels are; each ratio is 0..1, None where it is unknown."""

    before: KernelReport
    after: KernelReport
    code: float | None
    work: float | None
    name: float
    file: bool | None

    @classmethod
    def of(cls, before: KernelReport, after: KernelReport, code: float | None) -> "_Likeness":
        """Of two kernels whose code is as alike as said."""
        threads = [_count_threads(kernel) for kernel in (before, after)]
        files = [_find_file(kernel) for kernel in (before, after)]
        names = [shorten_name(kernel.name).partition("<")[0] for kernel in (before, after)]
        return cls(
            before=before,
            after=after,
            code=code,
            work=min(threads) / max(threads) if all(threads) else None,
            name=SequenceMatcher(None, names[0], names[1], autojunk=False).ratio(),
            file=files[0] == files[1] if all(files) else None,
        )

    @property
    def value(self) -> float:
        """The mean of what is known: the code counts most, then the name, which people change least at its stem."""
        weighted = [(self.code, 4), (self.name, 4), (self.work, 2), (self.file, 2)]
        known = [(float(value), weight) for value, weight in weighted if value is not None]
        return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)

    def explain(self) -> Sentence:
        """What the two have in common."""
        return list_of(self._list_reasons())

    def _list_reasons(self) -> Iterator[Sentence]:
        if self.work == 1:
            yield say("the same number of threads")
        if self.code is not None and self.code >= _ALIKE:
            yield say("similar code ({alike})", alike=percent(self.code))
        if self.file:
            yield say("source files of the same name")
        if self.name >= 0.5 or (self.work != 1 and (self.code or 0.0) < _ALIKE and not self.file):
            yield say("similar names")


def _count_threads(kernel: KernelReport) -> int:
    launch = kernel.configuration
    return 0 if launch.grid is None or launch.block is None else prod(launch.grid) * prod(launch.block)


def _find_file(kernel: KernelReport) -> str:
    """Name of the file most of its samples are in; empty where it has no lines."""
    file = next((row.file for row in kernel.lines if row.file is not None), None)
    return "" if file is None else PurePosixPath(file.replace("\\", "/")).name


def _compare_counts(before: dict[str, int], after: dict[str, int]) -> float | None:
    """Cosine of the angle between two counts of opcodes; None where one of them is empty."""
    if not before or not after:
        return None
    product = sum(count * after.get(opcode, 0) for opcode, count in before.items())
    lengths = [math.sqrt(sum(count * count for count in counts.values())) for counts in (before, after)]
    return product / (lengths[0] * lengths[1])
