"""Causes of stalls and advice in words, the same in every view."""

import math
import re
from collections.abc import Mapping, Sequence

from gpa_lsp.diagnosis.advice.model import (
    LEAST_SPEEDUP,
    SMALL_SPEEDUP,
    UNPRICED,
    Advice,
    Category,
    Hotspot,
    Region,
    Silence,
    SilenceStage,
    Speedup,
    Standing,
)
from gpa_lsp.diagnosis.analyses.model import LimiterKind, shorten_limit
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.document.layout import Span, style_of_share
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    floor_speedup,
    format_count,
    format_count_of,
    format_gain_range,
    format_share,
    format_speedup,
)
from gpa_lsp.foundation.prose import NOTHING, Part, Sentence, begin_lower, drop_stop, factor, join, say
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from gpa_lsp.report.model import KernelReport

# Up to here, the beginning of a range is no gain that could be measured.
_NO_SPEEDUP = 1.02

LIKELY = "likely"  # In place of a gain of which the evidence gives no number

_MOST_HINT_CHARS = 150
_STOP = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_FEWEST_CHARS = 20  # Of what is left of a sentence
# Where one ends, brackets before a sign included; a ratio (14.8 : 1) is no end, nor are brackets within a clause
_CLAUSE = re.compile(r"(?<! )[,;:] | (?=\([^()]*\)(?:[.,;:]|$))")
# A hint that begins with one of these says what was found; others say what to do
_FINDING_WORDS = frozenset({"The", "Each", "All", "A", "An", "It", "SMs", "Warps"})

# In the order they are shown
SECTION_TITLES: Mapping[Category, str] = {
    Category.CODE: "Change the code",
    Category.PARALLEL: "Change blocks and threads",
    Category.BINARY: "Change how it is compiled",
    Category.CALLS: "Change how the library is called",
}

_CAUSES: Mapping[BlameCategory, str] = {
    BlameCategory.MEMORY_GLOBAL: "data from global memory",
    BlameCategory.MEMORY_LOCAL: "data from local memory (spills, stack)",
    BlameCategory.MEMORY_CONSTANT: "an indexed constant, through L1",
    BlameCategory.MEMORY_TEXTURE: "data from texture or surface memory",
    BlameCategory.EXECUTION_SHARED: "data from shared memory",
    BlameCategory.EXECUTION_CONSTANT: "a constant load",
    BlameCategory.EXECUTION_ARITHMETIC: "an arithmetic result",
    BlameCategory.EXECUTION_SPECIAL: "a special function, a conversion or other slow arithmetic",
    BlameCategory.EXECUTION_WARP: "a warp shuffle, vote or reduction",
    BlameCategory.EXECUTION_SYSTEM: "a special register",
    BlameCategory.WRITE_AFTER_READ: "a register that is still to be read",
    BlameCategory.ISSUE: "the issue cost of the previous instruction",
    BlameCategory.SYNCHRONISATION: "a barrier or a fence",
    BlameCategory.BRANCH: "an unresolved branch",
    BlameCategory.INDIRECT: "the target of an indirect branch",
    BlameCategory.INSTRUCTION_FETCH: "instruction fetch",
    BlameCategory.PIPE_THROTTLE: "a busy arithmetic pipe",
    BlameCategory.MEMORY_THROTTLE: "the full queue for global and local memory",
    BlameCategory.MIO_THROTTLE: "the full queue for shared memory and special functions",
    BlameCategory.TEXTURE_THROTTLE: "the full texture queue",
    BlameCategory.CONSTANT_MISS: "a constant operand that missed its cache",
    BlameCategory.NOT_SELECTED: "the scheduler, which picked another warp",
    BlameCategory.ISSUED: "nothing: it issues",
    BlameCategory.DISPATCH: "the dispatcher",
    BlameCategory.DRAIN: "its last stores",
    BlameCategory.SLEEPING: "the end of a sleep",
    BlameCategory.MISC: "something the hardware does not name",
}

_STAGES: Mapping[SilenceStage, str] = {
    SilenceStage.NO_SAMPLES: "no samples",
    SilenceStage.NO_CODE: "the profile has no code",
    SilenceStage.NOT_KNOWN: "the profile lacks what they need",
    SilenceStage.NO_METRICS: "metrics were not collected",
    SilenceStage.NOT_MATCHED: "pattern not found",
    SilenceStage.GATED: "pattern found, but the change is ruled out",
    SilenceStage.TOO_SMALL: "too little to gain",
    SilenceStage.NO_PLACE: "no place in the code to point at",
    SilenceStage.NOT_YOURS: "the code is a library's",
    SilenceStage.FAILED: "failed",
}

_SCOPES: Mapping[ScopeKind, str] = {
    ScopeKind.KERNEL: "the whole kernel",
    ScopeKind.FUNCTION: "function",
    ScopeKind.LOOP: "loop",
    ScopeKind.CALL: "call of",
    ScopeKind.INLINED: "inlined",
    ScopeKind.LINE: "line",
}

_WITHOUT_NAME = (ScopeKind.KERNEL, ScopeKind.LOOP, ScopeKind.LINE)


def describe_cause(category: BlameCategory) -> str:
    """The cause of a stall, to follow "stalled on".

    >>> describe_cause(BlameCategory.MEMORY_GLOBAL)
    'data from global memory'
    """
    return _CAUSES[category]


def describe_sharing(dependency: Dependency) -> str:
    """Words for a cause that shares its stall with others of one group.

    >>> describe_sharing(Dependency.QUEUE), describe_sharing(Dependency.SCOREBOARD)
    ('shared with others in one queue', 'shared with others behind one scoreboard')
    """
    place = "in one queue" if dependency is Dependency.QUEUE else "behind one scoreboard"
    return f"shared with others {place}"


def describe_speedup(speedup: Speedup) -> Sentence:
    """Expected speedup, its bound, and the value of the formula before the bound.

    >>> reason = say("half the time is issuing")
    >>> describe_speedup(Speedup(estimate=1.4, low=1.3, high=1.5, bound=1.5, bound_reason=reason, uncapped=1.9))
    'expected 1.40×; at most 1.50×: half the time is issuing; the formula alone gives 1.90×'
    """
    if speedup.doubt:
        return join((describe_bound(speedup), speedup.doubt), "; ")
    has_range = speedup.low < speedup.estimate < speedup.high
    expected = say("expected {estimate}", estimate=show_estimate(speedup)) if has_range else NOTHING
    return join((expected, describe_bound(speedup), describe_formula(speedup)), "; ")


def describe_formula(speedup: Speedup) -> Sentence:
    """Speedup by the formula before the bound caps it; empty where the bound does not."""
    if format_speedup(speedup.uncapped) == format_speedup(speedup.estimate):
        return NOTHING
    return say("the formula alone gives {uncapped}", uncapped=factor(speedup.uncapped))


def name_doubt(speedup: Speedup) -> str:
    """Word in place of a number: ``likely`` where a gain is expected, else a dash."""
    return LIKELY if speedup.estimate >= LEAST_SPEEDUP else UNKNOWN


def show_estimate(speedup: Speedup) -> str:
    """The expected speedup, never above its bound as printed: ``1.39×``; a word where no number is worth printing."""
    return name_doubt(speedup) if speedup.doubt else format_speedup(min(speedup.estimate, floor_speedup(speedup.bound)))


def show_bound(speedup: Speedup) -> str:
    """The most that can be reached, rounded down."""
    return format_speedup(floor_speedup(speedup.bound))


def show_gain_range(speedup: Speedup) -> str:
    """The range of a speedup in the digits that a model can say: ``1.3–1.5×``; a word where no number is worth printing.

    A range that begins at no gain is one that can be missed: ``likely, up to 1.5×``.
    """
    if speedup.doubt:
        return name_doubt(speedup)
    shown = format_gain_range(speedup.low, speedup.high, speedup.bound)
    _, dash, last = shown.rpartition("–")
    if dash and speedup.low == speedup.high:
        return show_estimate(speedup)
    return f"{LIKELY}, up to {last}" if dash and speedup.low <= _NO_SPEEDUP else shown


def describe_bound(speedup: Speedup) -> Sentence:
    """The upper bound of a speedup, and the reason for it."""
    if not math.isfinite(speedup.bound):
        return say("no known upper bound")
    return join((say("at most {bound}", bound=factor(floor_speedup(speedup.bound))), speedup.bound_reason), ": ")


def find_first_suggestion(kernel: KernelReport) -> Advice | None:
    """The advice that comes first in every view: the first worth suggesting, else the first outside the kernel; None without either."""
    if kernel.advice is None:
        return None
    outside = (one for one in kernel.advice.advice if one.standing is Standing.OUTSIDE)
    return next(iter((*kernel.advice.worthy, *outside)), None)


BY_COUNTERS = "by counters"  # In place of shares and samples, where none were matched

# Beside everything that was made without it: what looks at instructions is missing there
NO_SASS = "its SASS was not read"


def name_first_suggestion(kernel: KernelReport) -> str:
    """Title of the first suggestion, for a list of kernels; marked where the SASS was not read, so better advice may be missing."""
    first = find_first_suggestion(kernel)
    title = "none" if first is None else first.title
    return f"{title} ({NO_SASS})" if kernel.lacks_sass else title


def describe_matched(advice: Advice) -> str:
    """Share of the kernel's samples that advice is about, or ``by counters``; empty where its matcher counts no samples."""
    if advice.by_counters:
        return BY_COUNTERS
    if not advice.matched_samples:
        return ""
    every = format_count(advice.matched_samples)
    quiet = "unknown" if advice.matched_latency_samples is None else format_count(advice.matched_latency_samples)
    return f"{format_share(advice.share)} of the samples: {every}, not issued: {quiet}"


def describe_region(advice: Advice, region: Region) -> str:
    """Share of the kernel's samples in one place of advice: ``12 %, 340 samples``, or ``by counters``."""
    if advice.by_counters or not region.matched_samples:
        return BY_COUNTERS
    return f"{format_share(region.share)}, {format_count_of(round(region.matched_samples), 'sample')}"


def describe_distance(hotspot: Hotspot) -> str:
    """Distance of use and def; empty where it is unknown.

    >>> hotspot = Hotspot(def_row=0, use_row=1, reason="wait", category=None, samples=1, latency_samples=0, distance_cycles=12)
    >>> describe_distance(hotspot)
    '12 cycles apart'
    """
    parts = []
    if hotspot.distance_cycles is not None:
        parts.append(format_count_of(hotspot.distance_cycles, "cycle"))
    if hotspot.distance_instructions is not None:
        parts.append(format_count_of(hotspot.distance_instructions, "instruction"))
    return f"{', '.join(parts)} apart" if parts else ""


def describe_loops(hotspot: Hotspot, region: Scope) -> str:
    """The loops a hotspot's def and use are in; empty outside loops, and where the region is that loop."""
    of_def, of_use = hotspot.def_loop, hotspot.use_loop
    if hotspot.use_row is None or of_def == of_use:
        return "" if of_def is None or of_def == region else _name_loop(of_def)
    return f"def {_name_loop(of_def)}, use {_name_loop(of_use)}"


def _name_loop(loop: Scope | None) -> str:
    if loop is None:
        return "outside loops"
    return "in a loop" if loop.line is None else f"in the loop of line {loop.line}"


def describe_hotspot(hotspot: Hotspot, region: Scope) -> Sequence[str]:
    """Facts of a hotspot besides its places: distance, loops, reason, cause, operand, doubts."""
    facts = [describe_distance(hotspot), describe_loops(hotspot, region)]
    cause = "" if hotspot.category is None else describe_cause(hotspot.category)
    facts.append(f"{hotspot.reason}: {cause}" if hotspot.reason and cause else hotspot.reason or cause)
    if hotspot.operand is not None:
        facts.append(f"in {hotspot.operand}")
    if not hotspot.is_separable:
        facts.append("stall split evenly among several causes")
    facts.append(hotspot.note)
    return tuple(fact for fact in facts if fact)


def describe_rivals(advice: Advice, every: Sequence[Advice]) -> str:
    """The other advice about the same samples, with what it gains; empty where there is none."""
    rivals = [other for other in every if other.group == advice.group and other is not advice]
    return ", ".join(f"{other.title} ({describe_gain(other)})" for other in rivals)


def describe_small_regions(count: int) -> str:
    """Number of regions that are not shown because each gains next to nothing.

    >>> describe_small_regions(2)
    '2 regions that gain less than 1.01× each'
    """
    least = format_speedup(LEAST_SPEEDUP)
    return (
        f"1 region that gains less than {least}"
        if count == 1
        else f"{format_count(count)} regions that gain less than {least} each"
    )


def describe_scope(scope: Scope, kernel: KernelReport, places: PlaceNames) -> tuple[str, str]:
    """A scope in words, and its place as ``file:line`` or ``file:first-last``; the place is empty without line information."""
    words = _SCOPES[scope.kind]
    if scope.kind not in _WITHOUT_NAME and scope.function:
        words = f"{words} {shorten_name(demangle(scope.function))}"
    if scope.file is None or scope.line is None:
        columns = kernel.instructions
        is_needed = scope.kind in (ScopeKind.LOOP, ScopeKind.LINE, ScopeKind.CALL) and scope.row < len(columns)
        return words, InstructionPlaces(kernel, places).show_offset(scope.row) if is_needed else ""
    return words, write_place(places.show_file(kernel, scope.file), scope.line, scope.last_line)


def describe_limit(kernel: KernelReport) -> Sentence:
    """The limiter's sentence, and what limits the kernel next."""
    limiter = kernel.limiter
    if limiter is None:
        return say("unknown: the report holds no limiter; run gpa-lsp advise on the profile")
    text = drop_stop(limiter.sentence)
    if any(
        one.limiter is None or (one.limiter.kind, one.limiter.unit) != (limiter.kind, limiter.unit)
        for one in kernel.contexts
    ):
        text = say("{text} (in the heaviest launch context)", text=text)
    if limiter.kind is LimiterKind.UNKNOWN:
        return say("{text}; record it with --section SpeedOfLight", text=text)
    following, reach = limiter.next, limiter.next_factor
    if following is None or reach is None or not math.isfinite(reach):
        return text
    label = begin_lower(following.label)
    if reach < SMALL_SPEEDUP:
        return say("{text}. Next limit: {label}, equally near.", text=text, label=label)
    return say("{text}. Next limit: {label}, at a {reach} speedup.", text=text, label=label, reach=factor(reach))


def describe_limit_briefly(kernel: KernelReport) -> str:
    """The beginning of the limiter's sentence, for a lens or a table; empty where it is unknown."""
    return shorten_limit(kernel.limiter)


def describe_gain(advice: Advice) -> str:
    """The range of what a suggestion gains; empty where it promises nothing."""
    return "" if advice.optimizer in UNPRICED else show_gain_range(advice.speedup)


def lead_gain(advice: Advice) -> Span:
    """The gain, coloured by the part of the time that it saves; a dash where none is promised."""
    return describe_gain(advice) or UNKNOWN, style_of_share(1 - 1 / max(1.0, advice.speedup.estimate))


def describe_priced(advice: Advice) -> Sentence:
    """A suggestion and what it gains: ``Unroll the loop at line 21 by 16 (1.3–2.1×)``."""
    gain = _label_gain(advice)
    return join((describe_suggestion(advice), f"({gain})" if gain else NOTHING))


def label_suggestion(advice: Advice) -> str:
    """A suggestion in a few words: ``Unroll a loop 1.1–1.3×``, or ``Unroll a loop (gain likely)``."""
    gain = _label_gain(advice)
    return f"{advice.title} {f'({gain})' if advice.speedup.doubt else gain}".rstrip()


def _label_gain(advice: Advice) -> str:
    """Gain of a suggestion, with its noun where it is no number; empty where it promises nothing."""
    if not advice.speedup.doubt:
        return describe_gain(advice)
    return f"gain {LIKELY if advice.speedup.estimate >= LEAST_SPEEDUP else 'unknown'}"


def describe_suggestion(advice: Advice, most: int = _MOST_HINT_CHARS) -> Sentence:
    """Remedy, its places as values: what to do, and never only what was found.

    Args:
        most: characters; a sentence that is longer ends with a clause.
    """
    region = advice.regions[0].hint if advice.regions else NOTHING
    hint = region if region and not _is_finding(region) else advice.hint or region
    is_action = hint.split()[:1] == advice.title.split()[:1]
    words = NOTHING if is_action else _take_sentences(join((hint,)), most - len(advice.title) - 2)
    if words:
        return say("{title}: {words}", title=advice.title, words=begin_lower(words))
    alone = NOTHING if hint and _is_finding(hint) else _take_sentences(join((hint,)), most)
    return alone or say("{title}", title=advice.title)


def _is_finding(hint: Sentence) -> bool:
    return hint.split(maxsplit=1)[0] in _FINDING_WORDS


def _take_sentences(text: Sentence, most: int) -> Sentence:
    """The sentences from the beginning of a text that fit, without the last stop; of a long first one, its clauses. Empty where none fits."""
    sentences: list[list[Part]] = [[]]
    for part in text.parts:
        first, *others = _STOP.split(part) if isinstance(part, str) else (part,)
        sentences[-1].append(first)
        sentences.extend([one] for one in others)
    kept = Sentence(sentences[0])
    if len(kept) > most:
        return drop_stop(_take_clauses(kept, most))
    for one in sentences[1:]:
        longer = join((drop_stop(kept), Sentence(one)), ". ")
        if len(longer) > most:
            break
        kept = longer
    return drop_stop(kept)


def _take_clauses(text: Sentence, most: int) -> Sentence:
    """The longest beginning of a sentence that fits and ends with a clause; empty where there is none."""
    kept, parts, start = NOTHING, list[Part](), 0
    ends = [one.start() for one in _CLAUSE.finditer(text)]  # of the whole: brackets may hold values
    for part in text.parts:
        words = part if isinstance(part, str) else ""
        for end in (one - start for one in ends if start <= one < start + len(words)):
            shorter = Sentence([*parts, words[:end]])
            if _FEWEST_CHARS <= len(shorter) <= most and shorter.count("(") == shorter.count(")"):
                kept = shorter
        parts.append(part)
        start += len(str(part))
    return kept


def explain_silence(kernel: KernelReport) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Reasons for no advice: stage in words → message → optimizers concerned (none for what concerns all of them)."""
    if kernel.advice is None:
        if not kernel.launches:
            return {"not measured": {"this is code without a profile; give a profile": ()}}
        if not kernel.total_samples:
            return {"no samples": {_describe_missing_samples(kernel): ()}}
        message = "the report was saved without advice; run gpa-lsp advise on the profile"
        return {"not analysed": {message: ()}}
    if not kernel.advice.silences:
        return {"not analysed": {"there is no optimizer": ()}}
    stages = group_silences(kernel.advice.silences)
    return {
        f"{_STAGES[stage]} ({format_count_of(sum(map(len, messages.values())), 'optimizer')})": messages
        for stage, messages in stages.items()
    }


def group_silences(silences: tuple[Silence, ...]) -> Mapping[SilenceStage, Mapping[str, tuple[str, ...]]]:
    """Stage → message → optimizers, in the order of the stages."""
    found: dict[SilenceStage, dict[str, tuple[str, ...]]] = {}
    for stage in SilenceStage:
        for silence in silences:
            if silence.stage is stage:
                messages = found.setdefault(stage, {})
                messages[silence.message] = (*messages.get(silence.message, ()), silence.optimizer)
    return found


def count_silences(kernel: KernelReport) -> str:
    """Number of optimizers that do not apply, by stage; empty where all apply."""
    silences = kernel.advice.silences if kernel.advice is not None else ()
    if not silences:
        return ""
    counts = [
        f"{_STAGES[stage]} ({format_count(sum(map(len, messages.values())))})"
        for stage, messages in group_silences(silences).items()
    ]
    do = "does" if len(silences) == 1 else "do"
    return f"{format_count_of(len(silences), 'other optimizer')} {do} not apply: {'; '.join(counts)}"


def _describe_missing_samples(kernel: KernelReport) -> str:
    failure = next((launch.failure for launch in kernel.launches if launch.failure is not None), None)
    if failure is not None:
        return f"the launch was not measured: {failure}"
    from gpa_lsp.report.gather import explain_no_samples  # brings analyses, which a kept report is written without

    return "; ".join(explain_no_samples(kernel))
