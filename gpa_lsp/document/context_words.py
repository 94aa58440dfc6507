"""Launch contexts of a kernel in words: what tells them apart, what limits each, and its advice."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, KernelAdvice
from gpa_lsp.diagnosis.analyses.model import Limiter, Roofline, shorten_limit
from gpa_lsp.document.advice_words import label_suggestion
from gpa_lsp.document.blocks import NO_SPAN, Table, tabulate
from gpa_lsp.document.layout import Style, flexible, right
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sampling_words import describe_time
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of, format_dim3, format_percent
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, list_of, say
from gpa_lsp.report.launch_places import choose_frames, shorten_frame
from gpa_lsp.report.model import KernelReport, LaunchContext

_MOST_SUGGESTIONS = 2  # Suggestions of one context beside others

_MOST_SENTENCES = 2  # Contexts with a sentence each; the table holds all that were judged


def name_contexts(kernel: KernelReport) -> tuple[str, ...]:
    """Each context by what not all of them share: ``grid 8, block 256``."""
    contexts = kernel.contexts
    columns = [column for column in zip(*_list_traits(contexts), strict=True) if len(set(column)) > 1]
    names = [", ".join(filter(None, row)) for row in zip(*columns, strict=True)] or [""] * len(contexts)
    known = Counter(names)
    return tuple(
        name if known[name] == 1 else f"{name} (launch {context.launches[0]})".strip()
        for name, context in zip(names, contexts, strict=True)
    )


def list_context_lines(kernel: KernelReport) -> list[tuple[str, Roofline]]:
    """Each launch context with the roofline of its longest launch, heaviest context first; empty for a kernel of one."""
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    if roofline is None:
        return []
    found = []
    for name, context in zip(name_contexts(kernel), kernel.contexts, strict=True):
        line = next((one for one in roofline.launches if one.launch_index in context.launches), None)
        if line is not None:
            found.append((name, line))
    return found


def _list_traits(contexts: Sequence[LaunchContext]) -> list[tuple[str, ...]]:
    """Traits of each context, a row per context; grid and block are one trait."""
    shapes = [one.configuration for one in contexts]
    frames = choose_frames([one.call_stack for one in contexts])
    return [
        (
            f"grid {format_dim3(shape.grid)}, block {format_dim3(shape.block)}",
            ""
            if shape.shared_dynamic_bytes is None
            else f"{format_bytes(shape.shared_dynamic_bytes)} dynamic shared memory",
            "" if shape.registers_per_thread is None else format_count_of(shape.registers_per_thread, "register"),
            f"from {shorten_frame(frame)}" if frame else "from an unknown place",
        )
        for shape, frame in zip(shapes, frames, strict=True)
    ]


def describe_part(kernel: KernelReport, context: LaunchContext) -> str:
    """Share of the kernel in a context: ``62 % of the time``; of its samples, else of its launches, where times are incomplete."""
    has_times = all(one.duration_ns for one in kernel.contexts)
    whole = "time" if has_times else "samples" if all(one.total_samples for one in kernel.contexts) else "launches"
    return f"{format_percent(context.ratio)} of the {whole}"


def describe_rest(kernel: KernelReport) -> str:
    """Contexts that were not judged one by one; empty where all were.

    They are taken to gain as much as the others at best, and nothing at worst.
    """
    if not kernel.other_contexts:
        return ""
    ratio = max(0.0, 1 - sum(one.ratio for one in kernel.contexts))
    others = format_count_of(kernel.other_contexts, "other launch context")
    return f"{others} with {format_percent(ratio)}: not judged one by one; the estimates assume that they gain alike"


def count_contexts(kernel: KernelReport) -> str:
    """Number of launch contexts, for a lens; empty where there is one."""
    every = len(kernel.contexts) + kernel.other_contexts
    return format_count_of(every, "launch context") if kernel.contexts else ""


def describe_context_advice(context: LaunchContext) -> Sentence:
    """The first suggestions of a context with their gains."""
    every = () if context.advice is None else context.advice.advice
    labels = [label_suggestion(one) for one in every[:_MOST_SUGGESTIONS]]
    return join(labels, "; ") if labels else say("no advice")


def _are_alike(kernel: KernelReport) -> bool:
    """Whether the same limits all contexts and the same is to be done, whatever it gains."""
    return len({(_identify_limit(one.limiter), _list_optimizers(one.advice)) for one in kernel.contexts}) == 1


def _identify_limit(limiter: Limiter | None) -> tuple[str, str]:
    return ("", "") if limiter is None else (limiter.kind.value, limiter.unit)


def _list_optimizers(advice: KernelAdvice | None) -> frozenset[str]:
    return frozenset(
        one.optimizer for one in (() if advice is None else advice.advice) if one.optimizer != AT_THE_LIMIT
    )


def describe_contexts(kernel: KernelReport) -> Iterator[Sentence]:
    """Differences between launch contexts, in three sentences at most; none for a kernel of one."""
    contexts = kernel.contexts
    names = [
        say("{name} ({part})", name=name, part=describe_part(kernel, one))
        for name, one in zip(name_contexts(kernel), contexts, strict=True)
    ]
    if not names:
        return
    hidden = max(0, len(names) - _MOST_SENTENCES)
    if _are_alike(kernel):
        others = [say("{hidden} more", hidden=count(hidden))] if hidden else []
        yield say("{names}: the same limit and advice", names=list_of([*names[:_MOST_SENTENCES], *others]))
        hidden = 0
    else:
        for name, one in zip(names[:_MOST_SENTENCES], contexts, strict=False):
            limit = "" if _limits_alike(kernel, one) else shorten_limit(one.limiter) or "limit unknown"
            yield say("{name}: {what}", name=name, what=join((limit, describe_context_advice(one)), "; "))
    more = say("{hidden} more by gpa-lsp advise --details", hidden=count(hidden)) if hidden else NOTHING
    rest = join((more, describe_rest(kernel)), "; ")
    if rest:
        yield rest


def _limits_alike(kernel: KernelReport, context: LaunchContext) -> bool:
    own = kernel.limiter
    return own is not None and context.limiter is not None and own.sentence == context.limiter.sentence


def build_context_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """Launch contexts that were judged, heaviest first; no rows where there is one."""
    table = tabulate(
        zip(name_contexts(kernel), kernel.contexts, strict=True),
        [
            (right("part"), lambda row: describe_part(kernel, row[1])),
            (right("time", drop_order=2), lambda row: describe_time(kernel, row[1].duration_ns)),
            (right("launches", drop_order=1), lambda row: format_count(row[1].launch_count)),
            (flexible("launched with"), lambda row: (row[0], Style.TITLE)),
            (flexible("limited by", drop_order=3), lambda row: shorten_limit(row[1].limiter) or "unknown"),
            (flexible("advice", 20), lambda row: str(describe_context_advice(row[1]))),
        ],
        "Launch contexts",
    )
    rest = describe_rest(kernel)
    last = [*[NO_SPAN] * 3, (rest, Style.DIM), NO_SPAN, NO_SPAN]
    return replace(table, rows=[*table.rows, last]) if rest else table


def name_shape(kernel: KernelReport) -> str:
    """Context whose configuration is shown for the kernel; empty where all launches have the same."""
    return f"in the heaviest of {count_contexts(kernel)}" if kernel.contexts else ""
