"""Answers to each question: the Markdown files of this folder, one named after each question.

The sections are those of :mod:`tests.rows.sections`. Options are those of ``write_kernel``, metrics, and ``no launch``, ``no table`` (of the
architecture), ``no code``; ``then grid=40`` is another launch that differs in that. Expected is::

    - summary: words, or … words of it …      `unknown` where nothing can be said
    - first high: words                        the first finding; `finding` any, `only` the only one; a share may stand behind the weight
      remedy ~ words of what to do
    - no finding: words that none has
    - bar label: 0.25 of 0.5
    - row title: cell | * | 0.5                a row of the table that is titled so, from its first cell on; ``–`` is unknown, ``*`` any
    - missing: words                           in what, why or the metrics
    - mark 4 12: words                         in those of a mark, perhaps of line 4 with the value 12
    - count 2 bars                             or marks, missing, findings; `count 2 rows: title` of a table

Every answer is sound in itself, too.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel, list_analyses
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.model import Kernel
from tests.analyses.checked_answers import check_answer
from tests.cases.answer_fence import _matches
from tests.real_reports import REPORTS, join
from tests.rows.sections import holds, list_sections, read_options
from tests.rows.written import write_kernel

_ALWAYS_KNOWN = (
    *("divergence", "instruction_mix", "memory_access"),
    *("memory_latency", "stall_sources", "top_down"),
)
_WITHOUT_ROOFLINE = ("occupancy", "load_balance", "instruction_mix", "memory_access", "divergence")


def write(text: str, options: str) -> Kernel:
    given, *others = re.split(r" ?\bthen ", options)
    kernel = write_kernel(text, **read_options(given))
    launches = [kernel.launches[0]]
    for number, one in enumerate(others, start=1):
        changed = {name: value for name, value in read_options(one).items() if name != "metrics"}
        launches.append(replace(launches[0], index=number, **changed))
    kernel = replace(kernel, launches=() if "no launch" in options else tuple(launches))
    if "no code" in options:
        bare = tuple(replace(one, instructions=None, graph=None) for one in kernel.functions)
        kernel = replace(kernel, functions=bare)
    return replace(kernel, architecture=None) if "no table" in options else kernel


def ask(question: str, kernel: Kernel) -> Answer:
    roofline = None if question in _WITHOUT_ROOFLINE else place_kernel(kernel)
    blame = (
        blame_kernel(kernel) if question in ("memory_access", "memory_latency", "top_down", "stall_sources") else None
    )
    return list_analyses()[question].ask(Subject(kernel, blame, roofline))


@pytest.mark.parametrize(
    ("question", "text", "options", "sources", "expected"), [*list_sections(Path(__file__).parent)]
)
def test_what_is_answered(question: str, text: str, options: str, sources: dict[str, str], expected: str) -> None:
    answer = ask(question, write(text, options))
    check_answer(answer)
    for line in re.findall(r"^- (.+(?:\n  .+)*)", expected, re.MULTILINE):
        what, _, words = re.sub(r"\n +(?! |remedy ~)", " ", line).partition(": ")
        kind, *rest = what.split()
        if kind in ("summary", "unknown"):
            assert (answer.is_known, holds(answer.summary, words)) == (kind == "summary", True), answer.summary
        elif kind == "bar":
            ratio, _, ceiling = words.partition(" of ")
            (bar,) = (one for one in answer.bars if one.label == what[4:])
            assert (_matches(ratio, bar.ratio), _matches(ceiling or "1", bar.ceiling_ratio)) == (True, True), bar
        elif kind == "row":
            rows = [row for table in answer.tables if table.title == what[4:] for row in table.rows]
            cells = words.split(" | ")
            assert any(all(_matches(*pair) for pair in zip(cells, row, strict=False)) for row in rows), rows
        elif kind == "count":
            counted = (
                [row for table in answer.tables if table.title == words for row in table.rows]
                if rest[1:] == ["rows"]
                else getattr(answer, rest[1])
            )
            assert len(counted) == int(rest[0]), counted
        elif kind == "mark":
            marks = [one for one in answer.marks if not rest or (one.line, one.value) == tuple(map(float, rest))]
            assert any(words in one.text for one in marks), answer.marks
        elif kind == "missing":
            said = [f"{one.what}; {one.why}; {one.metrics}" for one in answer.missing]
            assert any(words in one for one in said), said
        elif kind == "no":
            assert not any(words in one.text for one in answer.findings), words
        else:
            check_finding(answer, kind, rest, words)


def check_finding(answer: Answer, kind: str, rest: list[str], words: str) -> None:
    assert kind != "only" or len(answer.findings) == 1, answer.findings
    text, _, remedy = words.partition("\n  remedy ~ ")
    candidates: list[Any] = [
        one for one in (answer.findings if kind == "finding" else answer.findings[:1]) if holds(one.text, text.strip())
    ]
    assert candidates, [one.text for one in answer.findings]
    assert candidates[0].weight.value == rest[0], candidates[0]
    assert remedy in candidates[0].remedy
    assert len(rest) == 1 or candidates[0].share_ratio == pytest.approx(float(rest[1]), abs=1e-3), candidates[0]


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_every_question_has_a_sound_answer_on_real_kernels(name: str) -> None:
    for kernel in join(name):
        answers = analyse_kernel(Subject(kernel, blame_kernel(kernel), place_kernel(kernel))).answers
        assert [answer.analysis for answer in answers] == list(list_analyses())
        for answer in answers:
            check_answer(answer)
            assert answer.is_known or answer.analysis not in _ALWAYS_KNOWN, answer.summary
            if answer.analysis in ("divergence", "instruction_mix"):
                assert sum(bar.ratio for bar in answer.bars) == pytest.approx(1), "the bars are one whole"
