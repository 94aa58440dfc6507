"""Matches and silences of each optimizer: the Markdown files of this folder, one named after each optimizer.

The sections are those of :mod:`tests.rows.sections`. Behind the samples of a line stand the rows to blame for them (``<- 1``, where there are
several reasons ``<- wait: 4 5; barrier: 3``); samples without are their own cause. Options are those of ``write_kernel`` (``registers=254 8.0``),
metrics (``name=number``), ``no source`` and ``no code``. Expected is::

    - silent gated: the whole message, or … words of it …
    - region loop 4: samples 372, latency 271.5, active 150, hotspots 4<-1 5<-4
    - region hint: … words …       of the region before; also `hint`, `caveat`, `reason`, `note 3` of the hotspot that blames row 3
    - no caveat: words that none has; `no hint`, `no region hint` the same
    - reasons 2    no more and no fewer of them; `caveats` the same
    - active 150   of the match; `work l1 0.5 tags 0.25`, what stays of each unit's; `title`, `category` and `estimate` of the advice
    - low 1        of advice that looks at the launch; `high`, `uncapped` and `bound` with its reason the same

All regions are listed where one is; a hotspot of a row itself is written ``4``, samples behind it ``4<-1=300``, and all are listed where some are.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.diagnosis.advice.advise import find_obstacle, list_optimizers
from gpa_lsp.diagnosis.advice.model import Advice, Silence
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.advice.uncalibrated import leave_uncalibrated
from tests.rows.sections import holds, is_instruction, join_lines, list_sections, read_options

# optimizers that look at the launch, on a V100 without shared memory where nothing else is said
PARALLEL = ("block_increase", "partial_last_warp", "sm_imbalance", "small_grid", "tail_effect", "thread_increase")
NO_SHARED = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}
_SAMPLED = re.compile(r"(\w+)=\d")


def read_causes(text: str) -> dict[tuple[int, str], tuple[int, ...]]:
    causes = {}
    for row, line in enumerate(filter(is_instruction, text.splitlines())):
        samples, _, clauses = line.partition("#")[2].partition("<-")
        reasons = [one for one in _SAMPLED.findall(samples.split("| x=")[0]) if one not in ("selected", "not_selected")]
        for clause in filter(str.strip, clauses.split(";")):
            named, _, rows = clause.rpartition(":")
            causes[row, named.strip() or reasons[0]] = tuple(map(int, rows.split()))
    return causes


@pytest.mark.parametrize(
    ("optimizer", "text", "options", "sources", "expected"), [*list_sections(Path(__file__).parent)]
)
def test_what_the_optimizer_says(
    optimizer: str, text: str, options: str, sources: dict[str, str], expected: str
) -> None:
    given = read_options(options)
    plain = re.sub(r"<-.*", "", text)
    if optimizer in PARALLEL:
        given = {"compute_capability": (7, 0), "sm_count": 80, **given, "metrics": {**NO_SHARED, **given["metrics"]}}
    subject = write_subject(plain, read_causes(text), sources={} if "no source" in options else sources, **given)
    subject = forget_code(subject) if "no code" in options else subject
    found = ask(optimizer, subject) if optimizer in PARALLEL else list_optimizers()[optimizer].match(subject)
    if expected.startswith("- silent"):
        stage, _, words = join_lines(expected).removeprefix("- silent ").partition(": ")
        assert isinstance(found, Silence), found
        assert (found.stage.value, holds(found.message, words)) == (stage, True), found
        return
    assert not isinstance(found, Silence), found
    matched: Any = found
    regions = list(getattr(found, "regions", ()))
    listed: list[Any] = []
    for line in re.findall(r"^- (.+(?:\n  .+)*)", expected, re.MULTILINE):
        what, _, words = join_lines(line).partition(": ")
        kind, *rest = what.split()
        if kind == "region" and rest != ["hint"]:
            listed.append(regions[len(listed)])
            check_region(listed[-1], rest, words)
        elif optimizer in PARALLEL and kind in ("estimate", "uncapped", "low", "high", "bound"):
            assert getattr(matched.speedup, kind) == pytest.approx(float(rest[0]), abs=6e-5), matched.speedup
            assert kind != "bound" or holds(matched.speedup.bound_reason, words), matched.speedup
        elif kind in ("title", "category", "estimate"):
            with leave_uncalibrated():
                advice: Any = list_optimizers()[optimizer].advise(subject)
            if kind == "estimate":
                assert advice.speedup.uncapped == pytest.approx(float(rest[0]), abs=5e-4), advice
            else:
                assert getattr(advice, kind) == words, advice
        elif kind == "scope":
            assert matched.scope.kind.value == rest[0]
        elif kind == "active":
            assert matched.active_samples == pytest.approx(float(rest[0]), abs=1e-3)
        elif kind in ("reasons", "caveats"):
            assert len(getattr(matched, kind)) == int(rest[0]), getattr(matched, kind)
        elif kind == "work":
            assert {unit: round(left, 3) for unit, left in matched.work.items()} == {
                unit: float(left) for unit, left in zip(rest[::2], rest[1::2], strict=True)
            }
        else:
            said = list_texts(matched, listed[-1:] or regions[:1], what)
            assert any(holds(one, words) for one in said) or (kind == "no" and not any(words in one for one in said)), (
                line,
                said,
            )
    assert len(listed) in (0, len(regions)), found


def ask(name: str, subject: Subject) -> Advice | Silence:
    """Advise by an optimizer that looks at the launch."""
    optimizer = list_optimizers()[name]
    with leave_uncalibrated():
        return find_obstacle(optimizer, subject) or optimizer.advise(subject)


def list_texts(found: Any, here: list[Any], what: str) -> list[str]:
    """Texts of one kind: of the region before, of all regions, of a hotspot, of the whole match."""
    if what == "region hint":
        return [one.hint for one in here]
    if what == "no region hint":
        return [one.hint for one in found.regions]
    if what.startswith("note "):
        return [spot.note for one in found.regions for spot in one.hotspots if spot.def_row == int(what[5:])]
    return {"hint": [found.hint], "caveat": list(found.caveats), "reason": list(found.reasons)}[
        what.removeprefix("no ")
    ]


def check_region(region: Any, place: list[str], words: str) -> None:
    """Compare the place and the figures of a region."""
    assert region.scope.kind.value == place[0], region.scope
    assert place[1] in (str(region.scope.line), region.scope.function), region.scope
    for figure in filter(None, words.split(", ")):
        name, *values = figure.split()
        if name == "hotspots":
            spots = [
                f"{spot.def_row}" if spot.use_row in (None, spot.def_row) else f"{spot.use_row}<-{spot.def_row}"
                for spot in region.hotspots
            ]
            assert spots == [one.partition("=")[0] for one in values]
            for one, spot in zip(values, region.hotspots, strict=True):
                assert "=" not in one or spot.samples == pytest.approx(float(one.partition("=")[2]), abs=1e-3), spot
        else:
            said = getattr(
                region, {"samples": "samples", "latency": "latency_samples", "active": "active_samples"}[name]
            )
            assert said == pytest.approx(float(values[0]), abs=1e-3), (figure, said)
