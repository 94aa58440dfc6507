"""Agreement of all answers on one kernel's limiter: they quote it, and none has another opinion."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Confidence, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.read import read_profile
from tests.analyses.limiter.test_find import write
from tests.conftest import ROOT, find_corpus

CORPUS = find_corpus()
REPORTS = sorted((*CORPUS.glob("ncu/*.ncu-rep"), *CORPUS.glob("pairs/*.ncu-rep"))) if CORPUS else []

VERDICTS = {
    LimiterKind.UNIT: re.compile(
        r"% busy|\bis full\b|[Bb]ound by|is the bottleneck|memory-bound|compute-bound|issue-bound|[Oo]nly less work"
    ),
    LimiterKind.LATENCY: re.compile(r"latency-bound|Latency limits|Latency: no unit|latenc\w+ holds?"),
    LimiterKind.PARALLELISM: re.compile(r"SMs have no work"),
    LimiterKind.BUILD: re.compile(r"Debug build"),
}
"""Words by which a sentence says what limits a kernel."""

MORE_WARPS = re.compile(r"[Mm]ore warps help|[Kk]eep more warps|: more warps \(|or more warps;|Raise occupancy")
NO_MORE_WARPS = re.compile(r"[Mm]ore warps (cannot|would gain|would not|would hardly|do not)|more would not help")

BUSY = {"gpc__cycles_elapsed.max": 1000.0, "smsp__cycles_elapsed.avg.per_second": 1e9}
WARPS = {"smsp__warps_active.avg.per_cycle_active": 6.0, "smsp__issue_active.avg.per_cycle_active": 0.2}
IDLE = {"sm__cycles_active.avg": 300.0, "sm__cycles_active.max": 990.0, "sm__cycles_active.min": 100.0}
WRITTEN = {
    "a full unit": (write(dram__cycles_active=88.0, **BUSY, **WARPS), LimiterKind.UNIT),
    "a busy unit": (write(dram__cycles_active=66.0, **BUSY, **WARPS), LimiterKind.UNIT),
    "latency": (write(dram__cycles_active=25.0, **BUSY, **WARPS), LimiterKind.LATENCY),
    "a full queue": (write(queued=90, waiting=9, dram__cycles_active=25.0, **BUSY, **WARPS), LimiterKind.UNIT),
    "few blocks": (write(grid=1, dram__cycles_active=9.0, **BUSY, **WARPS, **IDLE), LimiterKind.PARALLELISM),
}


def list_texts(kernel: Kernel) -> tuple[Limiter, list[str]]:
    """The limiter, and all that the other answers say of a kernel, without what they quote of it."""
    blame = blame_kernel(kernel) if kernel.total_samples else None
    facts = Subject(kernel, blame, place_kernel(kernel))
    limiter = find_limiter(facts)
    found = analyse_kernel(facts)
    assert not found.problems
    texts = [
        str(text).replace(str(limiter.sentence), "<the limiter>")
        for answer in found.answers
        for text in (
            answer.summary,
            *(said for finding in answer.findings for said in (finding.text, finding.remedy)),
            *(table.note for table in answer.tables),
        )
    ]
    return limiter, texts


def find_other_voices(limiter: Limiter, texts: list[str]) -> Iterator[str]:
    """Sentences that say what limits a kernel in their own words, or what contradicts the limiter on more warps."""
    is_sure_unit = limiter.kind is LimiterKind.UNIT and limiter.confidence is Confidence.SURE
    for text in texts:
        for kind, words in VERDICTS.items():
            follows = kind is limiter.kind and is_sure_unit and text.startswith("Only less work for that unit")
            if words.search(text) and not follows:
                yield text
        if MORE_WARPS.search(text) and limiter.kind not in (LimiterKind.LATENCY, LimiterKind.UNKNOWN):
            yield text
        if NO_MORE_WARPS.search(text) and not is_sure_unit:
            yield text
    said = " ".join(texts)
    if MORE_WARPS.search(said) and NO_MORE_WARPS.search(said):
        yield said


@pytest.mark.parametrize("name", WRITTEN)
def test_written_kernels_have_one_voice(name: str) -> None:
    kernel, kind = WRITTEN[name]
    limiter, texts = list_texts(kernel)
    assert limiter.kind is kind
    assert not list(find_other_voices(limiter, texts))
    assert sum("<the limiter>" in text for text in texts) >= 3, "the limiter's own answer, and others that quote it"


def test_another_voice_is_heard() -> None:
    limiter, texts = list_texts(WRITTEN["latency"][0])
    for said in ("Bound by DRAM bandwidth.", "More warps cannot help: it is used.", "Memory is the bottleneck: DRAM."):
        assert list(find_other_voices(limiter, [*texts, said]))


def test_the_fixture_has_one_voice() -> None:
    check(ROOT / "fixtures" / "example.gpa-profile.json")


@pytest.mark.corpus
@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_real_kernels_have_one_voice(report: Path) -> None:
    check(report)


def check(report: Path) -> None:
    kernels, _ = join_profile(read_profile(report), with_text=False)
    assert kernels
    for kernel in kernels:
        limiter, texts = list_texts(kernel)
        assert not list(find_other_voices(limiter, texts)), kernel.name
