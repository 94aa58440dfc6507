"""Fences ``decomposition``: what the top-down tree, the memory and the sources of stalls say of the kernel, a line each::

    ANALYSIS  summary  TEXT
    ANALYSIS  bar      LABEL: PERCENT[, WORDS]
    ANALYSIS  finding  TEXT
    ANALYSIS  source   REASON: LABEL: PERCENT

Of an analysis, the lines of a kind are all there are of that kind; ``source`` are rows of the table of sources.
"""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.questions import memory_latency, stall_sources, top_down
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel

_QUESTIONS = {one.ANALYSIS.name: one.ANALYSIS.ask for one in (top_down, memory_latency, stall_sources)}


def check_decomposition(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare the kinds of lines a fence has with what the analyses say.

    Raises:
        AssertionError: anything differs; the message is the fence as it would be right.
    """
    expected = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    facts = Subject(kernel, blame, None)
    found = []
    for name, kind in dict.fromkeys(tuple(line.split()[:2]) for line in expected):
        found += [line for line in describe_answer(_QUESTIONS[name](facts)) if line.split()[1] == kind]
    assert sorted(found) == sorted(expected), "\n".join(["this is what they say:", *found])


def describe_answer(answer: Answer) -> Iterator[str]:
    """The lines of one answer."""
    yield f"{answer.analysis} summary {answer.summary}"
    for bar in answer.bars:
        words = f", {bar.words}" if bar.words else ""
        yield f"{answer.analysis} bar {bar.label}: {bar.ratio:.1%}{words}"
    for finding in answer.findings:
        yield f"{answer.analysis} finding {finding.text}"
    for table in answer.tables:
        if table.columns[0].name == "reason":
            for reason, label, ratio, *_ in table.rows:
                yield f"{answer.analysis} source {reason}: {label}: {ratio:.1%}"
