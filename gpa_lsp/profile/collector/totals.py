"""Samples added up, batch by batch, so that a run of any length fits into memory: only what is asked for is kept."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.profile.collector.records import SAMPLE_ROW, CollectedProcess
from gpa_lsp.profile.cupti_reasons import CuptiReason, read_reason

_MOST_PENDING = 1 << 21  # Rows that wait to be added up: 40 MB
_KEY = ("function", "correlation", "offset", "reason")


class SampleTotals(Struct):
    """The samples of a process.

    A count of samples without issue is a part of all samples of its reason. Should a version of CUPTI count each sample under one of both names
    only, some instruction has more of the former, and then all samples are both together.
    """

    reasons: tuple[CuptiReason, ...]  # what the numbers of reasons in ``rows`` stand for
    # of :data:`SAMPLE_ROW`, one for each function, launch, offset and reason that was asked for, in this order
    rows: npt.NDArray[np.void]
    other_samples: int  # of launches that were not asked for
    dropped: int  # lost in the GPU
    foreign: int  # of code that is not the user's
    missing: int  # what the collector counted and no row has

    @property
    def are_apart(self) -> bool:
        """Whether samples without issue are counted under their own name only."""
        positions = {reason: number for number, reason in enumerate(self.reasons)}
        keys = self.rows[["function", "correlation", "offset"]]
        for reason, number in positions.items():
            plain = positions.get(CuptiReason(name=reason.name, is_latency=False))
            if not reason.is_latency or plain is None:
                continue
            of_latency = self.rows[self.rows["reason"] == number]
            every = dict(
                zip(
                    keys[self.rows["reason"] == plain].tolist(),
                    self.rows["samples"][self.rows["reason"] == plain].tolist(),
                    strict=True,
                )
            )
            latency_keys = of_latency[["function", "correlation", "offset"]].tolist()
            if any(
                count > every.get(key, 0)
                for key, count in zip(latency_keys, of_latency["samples"].tolist(), strict=True)
            ):
                return True
        return False

    def list_places(
        self, rows: npt.NDArray[np.void], *, are_apart: bool
    ) -> Iterator[tuple[tuple[int, int], dict[str, dict[str, int]]]]:
        """Function and offset of each instruction, with its samples by reason as a profile has them."""
        has_latency = any(reason.is_latency for reason in self.reasons)
        found: dict[tuple[int, int], dict[str, list[int]]] = {}
        for function, _, offset, number, count in rows.tolist():
            reason = self.reasons[number]
            counts = found.setdefault((function, offset), {}).setdefault(reason.name, [0, 0])
            counts[reason.is_latency] += count
        for place, by_reason in sorted(found.items()):
            written = {}
            for name, (every, latency) in sorted(by_reason.items()):
                written[name] = {"all": every + latency if are_apart else every}
                if has_latency:
                    written[name]["latency"] = latency
            yield place, written


def add_up(process: CollectedProcess, correlations: Collection[int] | None) -> SampleTotals:
    """Read and add up the samples of a process.

    Args:
        correlations: of the launches that are wanted; None for all, whatever launch they are of.
    """
    adder = _Adder(process, correlations)
    for batch in process.read_batches():
        adder.dropped += batch.dropped
        adder.foreign += batch.foreign
        adder.total += batch.total
        adder.take(batch.rows, process.reasons.get(batch.context, {}))
    return adder.finish()


class _Adder:
    def __init__(self, process: CollectedProcess, correlations: Collection[int] | None) -> None:
        names = {name for reasons in process.reasons.values() for name in reasons.values()}
        known = {reason for name in names if (reason := read_reason(name)) is not None}
        self._reasons = tuple(sorted(known, key=lambda reason: (reason.name, reason.is_latency)))
        self._positions = {reason: number for number, reason in enumerate(self._reasons)}
        self._is_latency = np.array([reason.is_latency for reason in self._reasons], bool)
        self._wanted = None if correlations is None else np.array(sorted(correlations), np.uint32)
        self._pending: list[npt.NDArray[np.void]] = []
        self._pending_rows = 0
        self._sum = np.zeros(0, SAMPLE_ROW)
        self.dropped = self.foreign = self.total = 0
        self._other = self._every = self._plain = 0

    def take(self, rows: npt.NDArray[np.void], reasons: Mapping[int, str]) -> None:
        positions = self._translate(rows["reason"], reasons)
        self._every += int(rows["samples"].sum(dtype=np.int64))
        rows = rows[positions >= 0].copy()  # the others count samples, not reasons
        rows["reason"] = positions[positions >= 0]
        counts = rows["samples"].astype(np.int64)
        plain = ~self._is_latency[rows["reason"]] if len(rows) else np.zeros(0, bool)
        self._plain += int(counts[plain].sum())
        if self._wanted is not None:
            is_wanted = np.isin(rows["correlation"], self._wanted)
            self._other += int(counts[plain & ~is_wanted].sum())
            rows = rows[is_wanted]
        self._pending.append(rows)
        self._pending_rows += len(rows)
        if self._pending_rows > _MOST_PENDING:
            self._reduce()

    def _translate(self, numbers: npt.NDArray[np.integer], reasons: Mapping[int, str]) -> npt.NDArray[np.int64]:
        """Numbers of one GPU as positions of reasons; -1 for what is none."""
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
            reasons=self._reasons,
            rows=self._sum,
            other_samples=self._other,
            dropped=self.dropped,
            foreign=self.foreign,
            missing=missing,
        )
