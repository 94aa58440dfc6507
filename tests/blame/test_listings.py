"""Listings that say at each sampled instruction whom the blamers blame: the Markdown files of this folder.

A case is a heading with the listing below it, indented, in the notation of :mod:`tests.rows.written`; behind the samples of a line stands whom they
are blamed on:

    B-:R-:W0:-:S02  LDG.E R2, [R4.64]
    B0:R-:W-:-:S04  FADD R3, R2, R3  # long_scoreboard=60/50 wait=3 <- 0=60/50 memory_global/read_after_write R2 2c 1i; wait: nobody no_producer

Clauses stand between ``;`` and begin with the reason where the line has several. A cause is a row, ``itself`` or ``nobody``, with its samples (all
of them where it is the only cause), and what else is to be held to in the notation of :mod:`tests.blame_notation`; ``g0`` are marks: causes of one
row are in one group if and only if they bear the same one. All causes are listed. Stalls without a clause stay with their instruction; those that
issued or were not selected always do. A listing like the one before is written as what differs: ``0 = text`` is another row 0, ``2 <- clauses``
expects something else of row 2.

A heading may end in options in parentheses: ``paper`` or ``scoreboard`` is the blamer (both where none is named are asked for nothing but the
default one), ``issues 1 2 3`` how often each instruction issued, ``8.0`` the compute capability, ``no table`` an unknown architecture, ``budget 0``
the work allowed, ``kernel`` that the sections are blamed together.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.blame import blame_kernel, find_blamer
from gpa_lsp.diagnosis.blame.view import WorkBudget
from tests.advice.subjects import list_rows
from tests.blame.written_views import view_kernel
from tests.blame_notation import parse_words
from tests.rows.sections import is_instruction
from tests.rows.written import write_kernel

_CASE = re.compile(
    r"^## (?P<title>[^\n(]+)(?:\((?P<options>[^\n]*)\))?\n+(?P<prose>(?:\S[^\n]*\n+)*)(?P<text>(?:(?:    [^\n]*)?\n)+)",
    re.MULTILINE,
)
_CHANGE = re.compile(r"^    (?P<row>\d+) (?P<how>=|<-) (?P<new>.*)$", re.MULTILINE)
_SAMPLED = re.compile(r"(\w+)=\d")
_NO_STALLS = ("selected", "not_selected")
FILES = sorted(Path(__file__).parent.glob("*.md"))


def read_cases() -> Iterator[Any]:
    for path in FILES:
        text = ""
        for found in _CASE.finditer(path.read_text(encoding="utf-8") + "\n"):
            changes = list(_CHANGE.finditer(found["text"]))
            text = change(text, changes) if changes else found["text"]
            yield pytest.param(text, found["options"] or "", id=f"{path.stem}: {found['title'].strip()}")


def change(text: str, changes: list[re.Match[str]]) -> str:
    """A listing with some rows, or what is expected of them, replaced."""
    lines = text.splitlines()
    rows = [number for number, line in enumerate(lines) if is_instruction(line)]
    for one in changes:
        number = rows[int(one["row"])]
        lines[number] = one["new"] if one["how"] == "=" else f"{lines[number].partition('<-')[0]} <- {one['new']}"
    return "\n".join(lines)


def read_expected(text: str) -> dict[tuple[int, str], dict[str, str]]:
    """(Row, reason) → cause → samples and words, of all stalls."""
    expected: dict[tuple[int, str], dict[str, str]] = {}
    row = -1
    for line in text.splitlines():
        if not is_instruction(line):
            continue
        row += 1
        notes, _, clauses = line.partition("#")[2].partition("<-")
        samples = next((note for note in notes.split("|") if "=" in note), "")
        reasons = [reason for reason in _SAMPLED.findall(samples) if reason not in _NO_STALLS]
        reason = reasons[0] if reasons else ""
        for clause in filter(str.strip, clauses.split(";")):
            named, _, cause = clause.rpartition(":")
            reason = named.strip() or reason
            assert reason in reasons, line
            target = re.match(r"\w+", cause.strip())
            assert target is not None, line
            expected.setdefault((row, reason), {})[target[0]] = reason + cause.strip()[target.end() :]
        for reason in reasons:
            expected.setdefault((row, reason), {"itself": reason})
    return expected


def render(edge: Any, reason: str) -> tuple[str, str]:
    """A cause, and its words."""
    if hasattr(edge, "cause"):
        return "nobody", f"{reason}={edge.all_samples:g}/{edge.latency_samples:g} {edge.cause.name.lower()}"
    target = "itself" if edge.dependency.name == "ITSELF" else str(edge.def_row)
    words = [
        f"{reason}={edge.all_samples:g}/{edge.latency_samples:g}",
        f"{edge.category.name}/{edge.dependency.name}".lower(),
    ]
    words += [name_resource(edge.resource)] * (edge.resource >= 0)
    if target != "itself" and edge.distance_instructions >= 0:
        words += [f"{edge.distance_cycles}c", f"{edge.distance_instructions}i"]
    return target, " ".join([*words, f"g{edge.group}"])


def differ(expected: str, found: str, *, is_alone: bool) -> bool:
    """Whether a cause is another than the words say."""
    wanted, actual = parse_words(expected), parse_words(found)
    assert actual.samples is not None
    assert actual.latency_samples is not None
    pairs = [(wanted.samples, actual.samples), (wanted.latency_samples, actual.latency_samples)]
    if any(one is not None and other != pytest.approx(one, abs=5e-3) for one, other in pairs) or (
        wanted.samples is None and not is_alone
    ):
        return True
    names = ("category", "dependency", "cause", "resource", "cycles", "instructions")
    return any(getattr(wanted, name) not in (None, -1, getattr(actual, name)) for name in names)


def are_marked_alike(expected: dict[str, str], found: dict[str, str]) -> bool:
    """Whether the groups of the causes that bear marks are the same exactly where the marks are."""
    marks = {cause: parse_words(words).group for cause, words in expected.items()}
    groups = {(mark, parse_words(found[cause]).group) for cause, mark in marks.items() if mark is not None}
    return len(groups) == len({mark for mark, _ in groups}) == len({group for _, group in groups})


@pytest.mark.parametrize(("text", "options"), [*read_cases()])
def test_whom_the_listing_blames(text: str, options: str) -> None:
    expected = read_expected(text)
    capability = re.search(r"(\d+)\.(\d)", options)
    given = re.search(r"issues ([\d ]+)", options)
    budget = re.search(r"budget (\d+)", options)
    plain = re.sub(r"<-.*", "", text)
    kernel = write_kernel(plain, compute_capability=(int(capability[1]), int(capability[2])) if capability else (8, 6))
    blamer = "paper" if "paper" in options else "scoreboard"
    if "kernel" in options:
        whole = blame_kernel(kernel, blamer)
        edges, lost = whole.edges, whole.unattributed
    else:
        view = view_kernel(kernel, [float(one) for one in given[1].split()] if given else None)
        if "no table" in options:
            view = replace(view, architecture=None)
        work = WorkBudget(remaining=int(budget[1])) if budget else WorkBudget.for_function(len(view))
        work.spend(1)
        found = find_blamer(blamer).blame(view, work)
        edges, lost = found.edges, found.unattributed
    actual: dict[tuple[int, str], dict[str, str]] = {}
    for edge in [*list_rows(edges), *list_rows(lost)]:
        reason = kernel.reasons[edge.reason]
        if reason not in _NO_STALLS:
            cause, words = render(edge, reason)
            actual.setdefault((edge.row if cause == "nobody" else edge.use_row, reason), {})[cause] = words
    wrong = {
        key
        for key in expected.keys() | actual.keys()
        if (wanted := expected.get(key, {})).keys() != (said := actual.get(key, {})).keys()
        or any(differ(wanted[cause], said[cause], is_alone=len(said) == 1) for cause in said)
        or not are_marked_alike(wanted, said)
    }
    assert not wrong, "\n".join(
        f"{row} <- {cause} {words}"
        for row, reason in sorted(wrong)
        for cause, words in actual.get((row, reason), {}).items()
    )
