"""The notation of blame in built reports; ``tests/report_builder.py`` describes it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpa_lsp.code.binary.model import ResourceKind, name_resource
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
    WaitCheck,
)
from gpa_lsp.report.model import InstructionColumns
from tests.advice.subjects import build_edges

PAIR = re.compile(r"(?P<use>\S+)\s+<-\s+(?P<def>\S+)\s+(?P<rest>.*)")
ROW = re.compile(r"(?:(?:(?P<function>\S+)\+)?0x(?P<offset>[0-9a-f]+)|(?P<number>\d+))")
_REASON = re.compile(r"(?P<reason>[a-z_]+)(?:=(?P<all>[\d.]+)(?:/(?P<latency>[\d.]+))?)?")
_RESOURCES = {
    name_resource(kind << 8 | index): kind << 8 | index for kind in map(int, ResourceKind) for index in range(256)
}
_CATEGORY_OF_REASON = {
    "long_scoreboard": BlameCategory.MEMORY_GLOBAL,
    "short_scoreboard": BlameCategory.EXECUTION_SHARED,
    "wait": BlameCategory.EXECUTION_ARITHMETIC,
    "selected": BlameCategory.ISSUED,
    "not_selected": BlameCategory.NOT_SELECTED,
    "barrier": BlameCategory.SYNCHRONISATION,
    "membar": BlameCategory.SYNCHRONISATION,
    "branch_resolving": BlameCategory.BRANCH,
    "no_instructions": BlameCategory.INSTRUCTION_FETCH,
    "math_pipe_throttle": BlameCategory.PIPE_THROTTLE,
    "lg_throttle": BlameCategory.MEMORY_THROTTLE,
    "mio_throttle": BlameCategory.MIO_THROTTLE,
    "tex_throttle": BlameCategory.TEXTURE_THROTTLE,
    "imc_miss": BlameCategory.CONSTANT_MISS,
    "dispatch_stall": BlameCategory.DISPATCH,
    "drain": BlameCategory.DRAIN,
    "sleeping": BlameCategory.SLEEPING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words that follow the rows of a pair."""

    reason: str
    samples: float | None
    latency_samples: float | None
    category: BlameCategory | None
    dependency: Dependency | None
    cause: UnattributedCause | None
    resource: int
    cycles: int
    instructions: int
    group: int | None
    is_shared: bool
    note: str


class Rows:
    """The instructions of a kernel, as the notation names them."""

    def __init__(self, columns: InstructionColumns, kernel: str) -> None:
        self.columns = columns
        self.kernel = kernel

    def find(self, text: str) -> int:
        """``3`` is the fourth instruction, ``0x10`` an offset in the kernel, ``helper+0x10`` one in another section."""
        found = ROW.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} names no instruction")
        if found["number"] is not None:
            return int(found["number"])
        columns, offset = self.columns, int(found["offset"], 16)
        section = columns.functions.index(found["function"] or self.kernel)
        rows = np.flatnonzero((columns.function_index == section) & (columns.pc_offsets == offset))
        return int(rows[0])

    def samples(self, row: int, reason: str) -> tuple[int, int]:
        """All samples and latency samples."""
        if reason not in self.columns.reasons:
            return 0, 0
        number = self.columns.reasons.index(reason)
        return int(self.columns.all_samples[row, number]), int(self.columns.latency_samples[row, number])


def parse_blame(text: str, columns: InstructionColumns, kernel: str) -> KernelBlame:
    """The blame a text describes; samples it does not mention stay with the instruction they were taken at."""
    rows = Rows(columns, kernel)
    moved: list[tuple[int, int, Words]] = []
    lost: list[tuple[float, ...]] = []
    left = {
        (row, reason): [*map(float, rows.samples(row, reason))]
        for row in range(len(columns))
        for reason in columns.reasons
    }
    for line in list_lines(text):
        found = PAIR.fullmatch(line)
        if found is None:
            raise ValueError(f"{line!r} is no pair")
        use, words = rows.find(found["use"]), parse_words(found["rest"])
        every, latency = count_samples(words, rows.samples(use, words.reason))
        budget = left[use, words.reason]
        budget[0] -= every
        budget[1] -= latency
        if min(budget) < -1e-6:
            raise ValueError(f"{line!r} takes more samples than the instruction has")
        if found["def"] == "?":
            cause = UnattributedCause.NO_PRODUCER if words.cause is None else words.cause
            lost.append((use, columns.reasons.index(words.reason), cause, every, latency))
        else:
            moved.append((use, rows.find(found["def"]), words))
    edges = list(_make_edges(moved, left, rows))
    selected = columns.reasons.index("selected") if "selected" in columns.reasons else None
    counts = columns.all_samples[:, selected] if selected is not None else np.zeros(len(columns))
    return KernelBlame(
        blamer="scoreboard",
        edges=build_edges(edges),
        unattributed=Unattributed.from_rows(lost).sort_by("row", "reason", "cause"),
        issue_counts=IssueCounts(
            counts=counts.astype(np.float64), is_exact=False, why="no execution counts", chi_square_per_row=None
        ),
        coverage=SingleDependencyCoverage(
            before_ratio=0.625,
            after_ratio=0.9375,
            nodes=max(1, len(columns)),
            group_ratio=0.99,
            group_samples=int(columns.all_samples.sum()),
            explained_ratio=1.0,
        ),
        wait_check=WaitCheck(correlation=0.98, measured_samples=100, predicted_samples=97.5, rows=3),
    )


def _make_edges(
    moved: Sequence[tuple[int, int, Words]], left: dict[tuple[int, str], list[float]], rows: Rows
) -> Iterator[dict[str, Any]]:
    group = max((words.group for _, _, words in moved if words.group is not None), default=-1)
    for use, cause, words in moved:
        every, latency = count_samples(words, rows.samples(use, words.reason))
        if words.group is None:
            group += 1
        yield {
            "use_row": use,
            "def_row": cause,
            "reason": rows.columns.reasons.index(words.reason),
            "category": choose_category(words.reason, words.category),
            "dependency": _choose_dependency(words, is_itself=use == cause),
            "resource": words.resource,
            "group": group if words.group is None else words.group,
            "all_samples": every,
            "latency_samples": latency,
            "distance_cycles": 0 if use == cause else words.cycles,
            "distance_instructions": 0 if use == cause else words.instructions,
        }
    for (row, reason), (every, latency) in left.items():
        if every < 1e-6:
            if latency > 1e-6:
                raise ValueError(f"instruction {row} has latency samples of {reason} left, and no others")
            continue
        group += 1
        yield {
            "use_row": row,
            "def_row": row,
            "reason": rows.columns.reasons.index(reason),
            "category": choose_category(reason, None),
            "dependency": Dependency.ITSELF,
            "resource": -1,
            "group": group,
            "all_samples": every,
            "latency_samples": latency,
            "distance_cycles": 0,
            "distance_instructions": 0,
        }


def choose_category(reason: str, category: BlameCategory | None) -> BlameCategory:
    return _CATEGORY_OF_REASON.get(reason, BlameCategory.MISC) if category is None else category


def _choose_dependency(words: Words, *, is_itself: bool) -> Dependency:
    if words.dependency is not None:
        return words.dependency
    return Dependency.ITSELF if is_itself else Dependency.READ_AFTER_WRITE


def count_samples(words: Words, sampled: tuple[int, int]) -> tuple[float, float]:
    """All of the row's samples of the reason unless a number is given, and as many latency samples in proportion."""
    every = float(sampled[0]) if words.samples is None else words.samples
    if words.latency_samples is not None:
        return every, words.latency_samples
    return every, every * sampled[1] / sampled[0] if sampled[0] else 0.0


def parse_words(text: str) -> Words:
    first, *others = text.partition("#")[0].split()
    reason = _REASON.fullmatch(first)
    if reason is None:
        raise ValueError(f"{first!r} is no reason")
    found: dict[str, object] = {}
    for word in others:
        found.update(_parse_word(word))
    return Words(
        reason=reason["reason"],
        samples=None if reason["all"] is None else float(reason["all"]),
        latency_samples=None if reason["latency"] is None else float(reason["latency"]),
        **{  # type: ignore[arg-type]
            **{"category": None, "dependency": None, "cause": None, "resource": -1},
            **{"cycles": -1, "instructions": -1, "group": None, "is_shared": False},
            **found,
        },
        note=text.partition("#")[2].strip(),
    )


def _parse_word(word: str) -> dict[str, object]:
    if word in _RESOURCES:
        return {"resource": _RESOURCES[word]}
    if word == "shared":
        return {"is_shared": True}
    if number := re.fullmatch(r"(\d+)([ci])|g(\d+)", word):
        if number[3] is not None:
            return {"group": int(number[3])}
        return {"cycles" if number[2] == "c" else "instructions": int(number[1])}
    name, _, dependency = word.upper().partition("/")
    if name in UnattributedCause.__members__:
        return {"cause": UnattributedCause[name]}
    found: dict[str, object] = {"category": BlameCategory[name]} if name else {}
    return {**found, "dependency": Dependency[dependency]} if dependency else found


def list_lines(text: str) -> Iterator[str]:
    return (stripped for raw in text.splitlines() if (stripped := raw.strip()))
