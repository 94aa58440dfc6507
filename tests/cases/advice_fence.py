"""Fences ``advice``: what the optimizers say about the kernel, one item a line::

    register_reuse 2.50x  bound 2.71x  M=600/530  loop k.cu:4-5
        0x0040 FMUL <- 0x0020 LDL  long_scoreboard=550/530  R4  2 instructions, 6 cycles
        0x0020 LDL <- itself  selected=46/0  ~ words of the note
        hint ~ travel through local memory
        caveat ~ More registers per thread
        reason ~ Equation 2
    silence fast_math not_matched ~ none of the 10 instructions
    also loop_unrolling, store_drain

* A **header** names the optimizer, its estimate (two or three decimals), where they matter ``bound 2.71x``, ``interval 2.1-2.9`` and ``uncapped
  3x`` (the formula without clamps), then M and M^L (matched samples, all and without issue; ``?`` is unknown), and the
  scope. Words behind ``~`` must be part of the bound's reason.
* A **scope** is ``kernel``, or ``function``, ``loop``, ``call``, ``inlined`` or ``line`` and a place: ``file:line``, ``file:line-last``,
  ``name@file:line``, or ``row 3`` where there is no line.
* ``region 1.20x  M=20/18  loop k.cu:5`` begins a **region**; they stand in their order, all of them. Where there is only one, of the size and
  scope of the whole, this line is left out.
* A **hotspot** is the instruction that suffers, ``<-``, the one to blame or ``itself``, the reason and its samples, all and without issue; then the
  operand and the distance, where they are known, and ``[together]`` where the use waits for several causes at once. Words behind ``~`` must be
  part of its note. All hotspots that a region shows are listed, in their order.
* ``hint``, ``caveat`` and ``reason`` demand words; a hint behind a region may be the region's own.
* ``silence`` names an optimizer that has nothing to say, at what stage it stopped, and words of its message.
* ``also`` names optimizers that speak as well and are not looked at. Nobody else may speak. Advice is listed best first.

Estimates are those of the model itself: what errors of such estimates were (``calibration.toml``) is left out, and the interval reaches from the
square root of the estimate to the power of one and a half of it.

Whole numbers are exact; a number with decimals is compared to as many. Instructions are named as in fences ``blame``, of the default blamer.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, KernelAdvice, Region, Silence
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.uncalibrated import leave_uncalibrated
from tests.cases.blame_fence import name_rows

_COUNT = r"\d+(?:\.\d+)?"
_NUMBERS = re.compile(
    rf"(?P<estimate>\d+\.\d\d\d?)x"
    rf"|bound (?P<bound>{_COUNT})x"
    rf"|interval (?P<low>{_COUNT})-(?P<high>{_COUNT})"
    rf"|uncapped (?P<uncapped>{_COUNT})x"
    rf"|M=(?P<matched>{_COUNT})/(?P<latency>{_COUNT}|\?)"
    rf"|(?P<kind>{'|'.join(ScopeKind)})(?: (?P<place>row \d+|\S+:\d+(?:-\d+)?))?(?= |$)"
)
_PLACE = re.compile(r"(?:(?P<function>[^@\s]+)@)?(?P<file>.+):(?P<line>\d+)(?:-(?P<last>\d+))?")
_HEADER = re.compile(r"(?P<optimizer>[a-z_]+)\s+(?P<rest>\d+\.\d.*)")
_SAID = re.compile(r"(?P<what>hint|caveat|reason) ~ (?P<words>.+)")
_SILENCE = re.compile(r"silence (?P<optimizer>\w+) (?P<stage>\w+)(?: ~ (?P<words>.+))?")
_SAMPLES = re.compile(rf"=(?P<all>{_COUNT})/(?P<latency>{_COUNT}|\?)")


@dataclass(slots=True, kw_only=True)
class _Place:
    """A region as written; hotspots with the words of their notes."""

    numbers: dict[str, str]
    hotspots: list[tuple[str, str]] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Item:
    """An advice as written."""

    optimizer: str
    numbers: dict[str, str]
    places: list[_Place] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Expected:
    """A fence, read."""

    items: list[_Item] = field(default_factory=list)  # advice, in order
    silences: list[tuple[str, str, str]] = field(default_factory=list)  # optimizer, stage, and words of the message
    also: list[str] = field(default_factory=list)  # who speaks besides

    @property
    def names(self) -> set[str]:
        """Every optimizer that is mentioned."""
        return {*(item.optimizer for item in self.items), *(name for name, _, _ in self.silences), *self.also}


def check_advice(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare what the optimizers say about a kernel with a fence.

    Raises:
        ValueError: a line is none of the notation.
        AssertionError: anything differs; the message lists what, and what they say in this notation.
    """
    with leave_uncalibrated():
        found, problems = advise_kernel(Subject(kernel, blame))
    compare_advice(kernel, found, problems, text)


def compare_advice(kernel: Kernel, found: KernelAdvice, problems: Iterable[Problem], text: str) -> None:
    """Compare advice on a kernel with a fence.

    Raises:
        ValueError: a line is none of the notation.
        AssertionError: anything differs; the message lists what, and what was advised in this notation.
    """
    written = read_fence(text)
    names = name_rows(kernel)
    differences = [problem.message for problem in problems]
    differences += _compare_speakers(written, found)
    by_name = {advice.optimizer: advice for advice in found.advice}
    for item in written.items:
        if item.optimizer in by_name:
            differences += [f"{item.optimizer}: {one}" for one in _compare(item, by_name[item.optimizer], names)]
    silences = {silence.optimizer: silence for silence in found.silences}
    for name, stage, words in written.silences:
        differences += _compare_silence(name, stage, words, silences.get(name))
    assert not differences, "\n".join([*differences, "", "The optimizers say:", render_advice(found, names)])


def read_fence(text: str) -> Expected:
    """Read the lines of a fence.

    Raises:
        ValueError: a line is none of the notation, an optimizer is none of the catalogue, or nothing is expected.
    """
    written = Expected()
    for raw in text.splitlines():
        line = raw.strip()
        if line:
            _read_line(line, written)
    for item in written.items:
        item.places = item.places or [_Place(numbers=item.numbers)]
    if unknown := written.names - list_optimizers().keys():
        raise ValueError(f"no optimizer is named {', '.join(sorted(unknown))}")
    if not written.items and not written.silences:
        raise ValueError("a fence names an advice or a silence at least")
    return written


def _read_line(line: str, written: Expected) -> None:
    if found := _SILENCE.fullmatch(line):
        written.silences.append((found["optimizer"], found["stage"], found["words"] or ""))
    elif line.startswith("also "):
        written.also += [name.strip() for name in line[5:].split(",")]
    elif (found := _HEADER.fullmatch(line)) and found["optimizer"] != "region":
        written.items.append(_Item(optimizer=found["optimizer"], numbers=_read_numbers(found["rest"])))
    elif not written.items:
        raise ValueError(f"{line!r} belongs to no advice")
    else:
        _read_detail(line, written.items[-1])


def _read_detail(line: str, item: _Item) -> None:
    if line.startswith("region "):
        item.places.append(_Place(numbers=_read_numbers(line[len("region ") :])))
    elif said := _SAID.fullmatch(line):
        if said["what"] == "hint" and item.places:
            item.places[-1].hints.append(said["words"])
        else:
            item.said.append((said["what"], said["words"]))
    elif " <- " in line:
        # Hotspots right behind a header are those of the only region.
        item.places = item.places or [_Place(numbers=item.numbers)]
        hotspot, _, words = line.partition(" ~ ")
        item.places[-1].hotspots.append((" ".join(hotspot.split()), words.strip()))
    else:
        raise ValueError(f"{line!r} is no line of an advice fence")


def _read_numbers(text: str) -> dict[str, str]:
    fields, _, bound_words = text.partition(" ~ ")
    found: dict[str, str] = {}
    rest = fields.strip()
    while rest:
        number = _NUMBERS.match(rest)
        if number is None:
            raise ValueError(f"{rest!r} is neither a number nor a scope")
        found |= {name: value for name, value in number.groupdict().items() if value is not None}
        rest = rest[number.end() :].strip()
    missing = [name for name in ("estimate", "matched", "kind") if name not in found]
    if missing:
        raise ValueError(f"{text!r} lacks {', '.join(missing)}")
    return {**found, "scope": f"{found['kind']} {found.get('place', '')}".strip(), "words": bound_words.strip()}


def _compare_speakers(written: Expected, found: KernelAdvice) -> list[str]:
    """Compare the optimizers that speak, and their order."""
    expected = [item.optimizer for item in written.items]
    speaking = [advice.optimizer for advice in found.advice]
    messages = {one.optimizer: f"{one.stage.value}, {one.message}" for one in found.silences}
    missing = [name for name in [*expected, *written.also] if name not in speaking]
    others = [name for name in speaking if name not in expected and name not in written.also]
    differences = [f"{name} is silent: {messages.get(name)}" for name in missing]
    differences += [f"{name} speaks, too" for name in others]
    order = [name for name in speaking if name in expected]
    if not missing and order != expected:
        differences.append(f"the order is {', '.join(order)}")
    return differences


def _compare(item: _Item, advice: Advice, names: Sequence[str]) -> Iterable[str]:
    whole = Region(
        scope=advice.scope,
        matched_samples=advice.matched_samples,
        matched_latency_samples=advice.matched_latency_samples,
        share=advice.share,
        speedup=advice.speedup,
        density=1.0,
        hotspots=(),
    )
    yield from _compare_numbers(item.numbers, whole)
    texts = {"hint": (advice.hint,), "caveat": advice.caveats, "reason": advice.reasons}
    for what, words in item.said:
        if not any(words in text for text in texts[what]):
            yield f"no {what} says {words!r}"
    regions = advice.regions or (whole,)
    if len(item.places) != len(regions):
        yield f"{len(regions)} regions instead of {len(item.places)}"
        return
    for place, region in zip(item.places, regions, strict=True):
        yield from _compare_numbers(place.numbers, region)
        yield from _compare_hotspots(place.hotspots, region.hotspots, names)
        hint = f"{region.hint} {advice.hint}"
        yield from (f"the hint does not say {words!r}" for words in place.hints if words not in hint)


def _compare_numbers(written: dict[str, str], region: Region) -> Iterable[str]:
    speedup = region.speedup
    pairs = (
        ("estimate", written.get("estimate"), speedup.estimate),
        ("bound", written.get("bound"), speedup.bound),
        ("low end", written.get("low"), speedup.low),
        ("high end", written.get("high"), speedup.high),
        ("uncapped value", written.get("uncapped"), speedup.uncapped),
        ("M", written.get("matched"), region.matched_samples),
        ("M^L", written.get("latency"), region.matched_latency_samples),
    )
    for name, text, value in pairs:
        if text is not None and not is_equal(text, value):
            yield f"the {name} is {'unknown' if value is None else f'{value:.4f}'} instead of {text}"
    if not _is_place(written["scope"], region.scope):
        yield f"the scope is {render_scope(region.scope)} instead of {written['scope']}"
    if written["words"] not in speedup.bound_reason:
        yield f"the bound's reason is {speedup.bound_reason!r}"


def is_equal(text: str, value: float | None) -> bool:
    """Whether a number is the written one: whole numbers are exact, others as exact as they are written; ``?`` is one nobody knows.

    >>> is_equal("120", 119.9), is_equal("1.43", 200 / 140), is_equal("1.429", 200 / 140), is_equal("1.44", 200 / 140)
    (False, True, True, False)
    """
    if value is None or text == "?":
        return value is None and text == "?"
    decimals = len(text.partition(".")[2])
    tolerance = 0.5 * 10**-decimals if decimals else 0.0
    return abs(float(text) - value) <= tolerance + 1e-9


def _is_place(text: str, scope: Scope) -> bool:
    kind, _, place = text.partition(" ")
    if kind != scope.kind.value:
        return False
    if place.startswith("row "):
        return int(place[4:]) == scope.row and scope.file is None
    found = _PLACE.fullmatch(place)
    if found is None:
        return not place and scope.kind is ScopeKind.KERNEL
    last = scope.line if scope.last_line is None else scope.last_line
    return (
        (found["file"], int(found["line"])) == (scope.file, scope.line)
        and (found["function"] or scope.function) == scope.function
        and int(found["last"] or found["line"]) == last
    )


def _compare_hotspots(
    written: Sequence[tuple[str, str]], hotspots: Sequence[Hotspot], names: Sequence[str]
) -> Iterable[str]:
    if len(written) != len(hotspots):
        yield f"{len(hotspots)} hotspots instead of {len(written)}"
        return
    for (text, words), hotspot in zip(written, hotspots, strict=True):
        actual, samples = render_hotspot(hotspot, names), _SAMPLES.search(text)
        is_same = _SAMPLES.sub("", text) == _SAMPLES.sub("", actual) and samples is not None
        if (
            samples is None
            or not is_same
            or not is_equal(samples["all"], hotspot.samples)
            or not is_equal(samples["latency"], hotspot.latency_samples)
        ):
            yield f"a hotspot is {actual!r} instead of {text!r}"
        if words not in hotspot.note:
            yield f"the note at {text!r} is {hotspot.note!r}"


def _compare_silence(name: str, stage: str, words: str, silence: Silence | None) -> list[str]:
    if silence is None:
        return [f"{name} is not silent"]
    differences = []
    if silence.stage.value != stage:
        differences.append(f"{name} is silent as {silence.stage.value} instead of {stage}: {silence.message}")
    if words not in silence.message:
        differences.append(f"{name} is silent because {silence.message!r}")
    return differences


def render_advice(found: KernelAdvice, names: Sequence[str]) -> str:
    """The whole advice of the optimizers, in all columns that a fence can hold."""
    lines: list[str] = []
    for advice in found.advice:
        lines.append(f"{_render_numbers(advice.optimizer, advice)} ~ {advice.speedup.bound_reason}")
        for region in advice.regions:
            lines.append(f"    {_render_numbers('region', region)}")
            lines += [
                f"        {render_hotspot(one, names)}{f' ~ {one.note}' if one.note else ''}" for one in region.hotspots
            ]
            lines += [f"        hint ~ {region.hint}"] if region.hint else []
        lines.append(f"    hint ~ {advice.hint}")
        lines += [f"    caveat ~ {caveat}" for caveat in advice.caveats]
        lines += [f"    reason ~ {reason}" for reason in advice.reasons]
    lines += [f"silence {one.optimizer} {one.stage.value} ~ {one.message}" for one in found.silences]
    return "\n".join(lines)


def _render_numbers(name: str, of: Advice | Region) -> str:
    speedup = of.speedup
    parts = [
        f"{name} {speedup.estimate:.3f}x",
        f"bound {speedup.bound:.3f}x",
        f"interval {speedup.low:.3f}-{speedup.high:.3f}",
        f"uncapped {speedup.uncapped:.3f}x",
        f"M={_render_count(of.matched_samples)}/{_render_count(of.matched_latency_samples)}",
        render_scope(of.scope),
    ]
    return "  ".join(parts)


def _render_count(samples: float | None) -> str:
    if samples is None:
        return "?"
    return f"{samples:.0f}" if abs(samples - round(samples)) < 1e-9 else f"{samples:.3f}"


def render_scope(scope: Scope) -> str:
    """A scope: its kind and its place."""
    if scope.kind is ScopeKind.KERNEL:
        return "kernel"
    if scope.file is None or scope.line is None:
        return f"{scope.kind} row {scope.row}"
    last = "" if scope.last_line in (None, scope.line) else f"-{scope.last_line}"
    function = f"{scope.function}@" if scope.kind in (ScopeKind.CALL, ScopeKind.INLINED) else ""
    return f"{scope.kind} {function}{scope.file}:{scope.line}{last}"


def render_hotspot(hotspot: Hotspot, names: Sequence[str]) -> str:
    """A hotspot without its note."""
    use_row = hotspot.def_row if hotspot.use_row is None else hotspot.use_row
    parts = [
        names[use_row],
        "<-",
        "itself" if hotspot.use_row is None else names[hotspot.def_row],
        f"{hotspot.reason}={_render_count(hotspot.samples)}/{_render_count(hotspot.latency_samples)}",
        hotspot.operand,
        _render_distance(hotspot),
        None if hotspot.is_separable else "[together]",
    ]
    return " ".join(part for part in parts if part)


def _render_distance(hotspot: Hotspot) -> str:
    counts = ((hotspot.distance_instructions, "instruction"), (hotspot.distance_cycles, "cycle"))
    return ", ".join(f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in counts if number is not None)
