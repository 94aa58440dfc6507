"""What each optimizer matches and when it keeps silent: the Markdown files of this folder, one named after each optimizer.

A section is a heading, a listing, indented, in the notation of :mod:`tests.rows.written`, and what is expected. Behind the samples of a line
stand the rows to blame for them (``<- 1``, where there are several reasons ``<- wait: 4 5; barrier: 3``); samples without are their own cause.
Sources are fences ``cuda k.cu``; they hold from there on. A listing like the one before is written as what differs: ``3 = line`` is another
row 3, ``3 + line`` a line before it, ``3 <- 1`` other rows to blame, ``3 -`` no such row; ``old ⇒ new`` replaces text wherever it stands. A heading
may end in options of ``write_kernel`` in parentheses (``registers=254 8.0 metric=number``), ``no source``, ``no code``. Expected is::

    - silent gated: the whole message, or … words of it …
    - region loop 4: samples 372, latency 271.5, active 150, hotspots 4<-1 5<-4
    - region hint: … words …       of the region before; also `hint`, `caveat`, `reason`, `note 3` of the hotspot that blames row 3
    - no caveat: words that none has; `no hint`, `no region hint` the same
    - active 150   of the match; `relieves L1 L2`; `title` and `estimate` of the advice

All regions are listed where one is; a hotspot of a row itself is written ``4``, and all are listed where some are.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.model import Silence
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.cases.repeats import expand_repeats

_PART = re.compile(
    r"^```cuda (?P<file>\S+)\n(?P<source>.*?)^```$"
    r"|^## (?P<title>[^\n(]+)(?:\((?P<options>[^\n]*)\))?\n+(?:[^\s-][^\n]*\n+)*(?P<text>(?:(?:    [^\n]*)?\n)*)"
    r"(?P<expected>(?:- [^\n]+\n(?:  \S[^\n]*\n)*)+)",
    re.MULTILINE | re.DOTALL,
)
_CHANGE = re.compile(r"    (?:(?P<row>\d+) (?P<how>=|\+|<-|-)(?: (?P<new>.*))?|(?P<old>.+?) ⇒ ?(?P<with>.*))")
_SAMPLED = re.compile(r"(\w+)=\d")


def is_instruction(line: str) -> bool:
    code = line.partition("#")[0].strip()
    return bool(code) and not code.endswith(":") and not code.startswith("[")


def change(text: str, changes: list[re.Match[str]]) -> str:
    for one in changes:
        lines = text.splitlines()
        if one["old"] is not None:
            assert one["old"] in text, one[0]
            text = text.replace(one["old"], one["with"].replace("⏎", "\n"))
            continue
        number = [at for at, line in enumerate(lines) if is_instruction(line)][int(one["row"])]
        written = {
            "=": (one["new"] or "").split("⏎"),
            "+": [*(one["new"] or "").split("⏎"), lines[number]],
            "<-": [f"{lines[number].partition('<-')[0]} <- {one['new']}"],
            "-": [],
        }[one["how"]]
        text = "\n".join([*lines[:number], *written, *lines[number + 1 :]])
    return text


def list_sections() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("*.md")):
        text, sources = "", dict[str, str]()
        whole = path.read_text(encoding="utf-8") + "\n"
        found = list(_PART.finditer(whole))
        assert sum(one["title"] is not None for one in found) == whole.count("\n## "), f"{path.name}: not understood"
        assert sum((one["expected"] or "").count("- ") for one in found) >= whole.count("\n- "), path.name
        for one in found:
            if one["title"] is None:
                sources = {**sources, one["file"]: one["source"]}
                continue
            lines = [line for line in one["text"].splitlines() if line.strip()]
            changes = [_CHANGE.fullmatch(line) for line in lines]
            if all(changes):
                text = change(text, changes)  # type: ignore[arg-type]
            else:
                text = expand_repeats("\n".join(lines) + "\n")
            yield pytest.param(
                path.stem,
                text,
                one["options"] or "",
                sources,
                one["expected"],
                id=f"{path.stem}: {one['title'].strip()}",
            )


def read_causes(text: str) -> dict[tuple[int, str], tuple[int, ...]]:
    causes = {}
    for row, line in enumerate(filter(is_instruction, text.splitlines())):
        samples, _, clauses = line.partition("#")[2].partition("<-")
        reasons = [one for one in _SAMPLED.findall(samples.split("| x=")[0]) if one not in ("selected", "not_selected")]
        for clause in filter(str.strip, clauses.split(";")):
            named, _, rows = clause.rpartition(":")
            causes[row, named.strip() or reasons[0]] = tuple(map(int, rows.split()))
    return causes


def read_options(words: str) -> dict[str, Any]:
    options: dict[str, Any] = {"metrics": {}}
    for word in words.split():
        name, _, value = word.partition("=")
        if re.fullmatch(r"\d+\.\d", word):
            options["compute_capability"] = tuple(map(int, word.split(".")))
        elif name in ("registers", "sm_count"):
            options[name] = int(value)
        elif name in ("grid", "block"):
            options[name] = (int(value), 1, 1)
        elif value:
            options["metrics"][name] = float(value)
    return options


def holds(said: str, words: str) -> bool:
    """Whether a text is the words, or with ``…`` has them, in their order."""
    if "…" not in words:
        return said == words
    pattern = ".*".join(re.escape(part.strip()) for part in words.split("…"))
    return re.fullmatch(pattern, said, re.DOTALL) is not None


@pytest.mark.parametrize(("optimizer", "text", "options", "sources", "expected"), [*list_sections()])
def test_what_the_optimizer_says(
    optimizer: str, text: str, options: str, sources: dict[str, str], expected: str
) -> None:
    given = read_options(options)
    plain = re.sub(r"<-.*", "", text)
    subject = write_subject(plain, read_causes(text), sources={} if "no source" in options else sources, **given)
    subject = forget_code(subject) if "no code" in options else subject
    found = list_optimizers()[optimizer].match(subject)
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
        elif kind in ("title", "estimate"):
            advice: Any = list_optimizers()[optimizer].advise(subject)
            assert advice.title == words or advice.speedup.uncapped == pytest.approx(float(rest[0]), abs=5e-4), advice
        elif kind == "active":
            assert matched.active_samples == pytest.approx(float(rest[0]), abs=1e-3)
        elif kind == "relieves":
            assert [one.name for one in matched.relieves] == rest
        else:
            said = list_texts(matched, listed[-1:] or regions[:1], what)
            assert any(holds(one, words) for one in said) or (kind == "no" and not any(words in one for one in said)), (
                line,
                said,
            )
    assert len(listed) in (0, len(regions)), found


def join_lines(text: str) -> str:
    return re.sub(r"\n +", " ", text.strip())


def list_texts(found: Any, here: list[Any], what: str) -> list[str]:
    """What is said: of the region before, of all regions, of a hotspot, of the whole match."""
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
            pairs = [(spot.use_row, spot.def_row) for spot in region.hotspots]
            assert [f"{cause}" if use in (None, cause) else f"{use}<-{cause}" for use, cause in pairs] == values
        else:
            said = getattr(
                region, {"samples": "samples", "latency": "latency_samples", "active": "active_samples"}[name]
            )
            assert said == pytest.approx(float(values[0]), abs=1e-3), (figure, said)
