"""What a kernel is and what its warps did, for a page: facts, bars of states and causes, tables."""

from collections.abc import Sequence

from gpa_lsp.diagnosis.blame.model import NO_STALLS
from gpa_lsp.document.advice_text import list_estimates
from gpa_lsp.document.advice_words import NO_SASS, describe_cause
from gpa_lsp.document.blame_words import NO_CAUSE, measure_causes
from gpa_lsp.document.context_words import build_context_table, name_shape
from gpa_lsp.document.html_report.tables import Cell, Meter, PageTable, convert_text_table
from gpa_lsp.document.kernel_tables import build_function_table, build_launch_table, build_loop_table
from gpa_lsp.document.launch_place_words import describe_place_time
from gpa_lsp.document.layout import clamp_ratio, join_facts
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sampling_words import describe_device, describe_quiet, list_sampling_facts
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_spread,
    format_percent,
    format_share,
)
from gpa_lsp.foundation.prose import Sentence, count, say
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.changes import ReasonCount
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.model import KernelReport

_MOST_CONTEXTS = 50
_LEAST_SHOWN_RATIO = 0.01  # Of the samples: states and causes with fewer share a row


def list_facts(kernel: KernelReport, profile: str, measured: str) -> list[tuple[str, str]]:
    """Name and value of what is known of a kernel."""
    configuration = kernel.configuration
    shared_bytes = (configuration.shared_static_bytes or 0) + (configuration.shared_dynamic_bytes or 0)
    facts = [("GPU", describe_device(kernel.device))]
    if kernel.launches:
        facts.append(("Time", format_duration_spread(kernel.duration_spread_ns)))
        facts.append(("Launches", "unknown" if kernel.launch_count is None else format_count(kernel.launch_count)))
        shape = f"{format_dim3(configuration.grid)} × {format_dim3(configuration.block)}"
        facts.append(("Grid × block", " ".join(filter(None, (shape, name_shape(kernel))))))
    else:
        facts.append(("Time", "not measured"))
    if configuration.registers_per_thread is not None:
        facts.append(("Registers", f"{format_count(configuration.registers_per_thread)} per thread"))
    if shared_bytes:
        facts.append(("Shared memory", f"{format_bytes(shared_bytes)} per block"))
    facts.append(("Samples", _describe_samples(kernel)))
    facts.append(("Profile", join_facts([profile, measured]) if measured else profile))
    return [(name, value) for name, value in facts if value]


def describe_bases(kernel: KernelReport) -> Sentence:
    """What the shares on the page are of, in words that tie those of other bases to them."""
    return say(
        "Shares are of all {samples} of the kernel, issued ones included. A stall reason says how warps wait, a cause what they wait for: one cause "
        "can hold several reasons. Two bases are named where they stand: issue slots, of which only the empty ones have a reason, and the warps' "
        "time, which is by counters of the longest launch; the same stall therefore has another share of each. Cycles each time are of one stall; "
        "cycles per execution are spread over every execution of a load, most of which need not stall.",
        samples=count(kernel.total_samples, "sample"),
    )


def measure_states(kernel: KernelReport) -> list[Meter]:
    """Samples by warp state; rare ones in one row."""
    shown = [one for one in kernel.by_reason.items() if kernel.share_of(one[1].all_samples).ratio >= _LEAST_SHOWN_RATIO]
    meters = []
    for name, count_of_state in shown:
        reason = describe_stall_reason(name)
        share = kernel.share_of(count_of_state.all_samples)
        meters.append(
            Meter(
                label=name,
                ratio=clamp_ratio(share.ratio),
                text=format_share(share),
                words=_describe_state(count_of_state),
                tone="" if reason.is_stall else "faint",
                title=reason.description,
            )
        )
    names = [name for name, _ in kernel.by_reason.items() if name not in dict(shown)]
    rare = sum(kernel.by_reason[name].all_samples for name in names)
    return [*meters, _sum_rare(kernel, rare, ", ".join(names))] if rare else meters


def measure_attribution(kernel: KernelReport) -> list[Meter]:
    """Samples by the kind of cause they are attributed to, rare ones in one row, and those without a cause."""
    if kernel.blame is None:
        return []
    causes = measure_causes(kernel, kernel.blame)
    meters = [
        Meter(
            label=describe_cause(category),
            ratio=clamp_ratio(ratio),
            text=format_percent(ratio),
            words=format_count_of(round(ratio * kernel.total_samples), "sample"),
            tone="faint" if category in NO_STALLS else "",
        )
        for category, ratio in causes
        if ratio >= _LEAST_SHOWN_RATIO
    ]
    rare = [(category, ratio) for category, ratio in causes if ratio < _LEAST_SHOWN_RATIO]
    if rare:
        words = ", ".join(describe_cause(category) for category, _ in rare)
        meters.append(_sum_rare(kernel, round(sum(ratio for _, ratio in rare) * kernel.total_samples), words))
    lost = float(kernel.blame.unattributed.all_samples.sum())
    if lost:
        ratio = lost / (kernel.total_samples or 1)
        words = format_count_of(round(lost), "sample")
        meters.append(
            Meter(
                label=NO_CAUSE,
                ratio=clamp_ratio(ratio),
                text=format_percent(ratio),
                words=words,
                tone="faint",
            )
        )
    return meters


def _sum_rare(kernel: KernelReport, samples: int, names: str) -> Meter:
    ratio = samples / (kernel.total_samples or 1)
    return Meter(
        label="others",
        ratio=clamp_ratio(ratio),
        text=format_percent(ratio),
        words=format_count_of(samples, "sample"),
        tone="faint",
        title=names,
    )


def list_tables(kernel: KernelReport) -> list[PageTable]:
    """Functions and loops, where there are any."""
    places = PlaceNames()
    tables = [convert_text_table(build(kernel, places)) for build in (build_function_table, build_loop_table)]
    return [table for table in tables if table.rows]


def tabulate_launches(kernel: KernelReport) -> PageTable | None:
    """The launches; None where there is one and it went well."""
    table = convert_text_table(build_launch_table(kernel, PlaceNames()))
    return table if table.rows else None


def tabulate_contexts(kernel: KernelReport) -> PageTable | None:
    """The launch contexts; None where all launches are of one."""
    table = convert_text_table(build_context_table(kernel, PlaceNames()))
    return table if table.rows else None


def tabulate_estimates(kernel: KernelReport) -> PageTable | None:
    """What NVIDIA's rules estimate can be saved; None where they say nothing."""
    rows = [
        [
            Cell(text=estimate.factor),
            Cell(text=estimate.saved),
            Cell(text=estimate.base),
            Cell(text=estimate.rule, tone="code"),
            Cell(text=estimate.text),
        ]
        for estimate in list_estimates(kernel)
    ]
    if not rows:
        return None
    columns = [("factor", True), ("saves", True), ("of the time of", False), ("rule", False), ("remark", False)]
    note = "Estimates of NVIDIA's own rules, separate from ours."
    return PageTable(title="The profiler's own estimates", columns=columns, rows=rows, note=note)


def list_remarks(kernel: KernelReport) -> list[tuple[str, str, str]]:
    """Kind, rule and text of the profiler's remarks, each once, without those that found nothing."""
    notes = dict.fromkeys(note for launch in kernel.launches for note in launch.rules if note.kind != "ok")
    return [(note.kind, note.rule, note.text) for note in notes]


def list_contexts(kernel: KernelReport) -> tuple[Sequence[tuple[str, str]], str]:
    """NVTX ranges and call stack of each different place on the host, and how many are left out."""
    times = {place.stack: describe_place_time(place) for place in list_launch_places(kernel)}
    has_times = len(times) > 1
    found = list(
        dict.fromkeys(
            (
                " > ".join(launch.nvtx_ranges),
                ": ".join(
                    part
                    for part in (times[launch.call_stack] if has_times else "", " < ".join(launch.call_stack))
                    if part
                ),
            )
            for launch in kernel.launches
            if launch.nvtx_ranges or launch.call_stack
        )
    )
    rest = len(found) - _MOST_CONTEXTS
    return found[:_MOST_CONTEXTS], f"and {format_count_of(rest, 'place')} more" if rest > 0 else ""


def _describe_samples(kernel: KernelReport) -> str:
    if not kernel.total_samples:
        return "none"
    text = f"{format_count(kernel.total_samples)}, {describe_quiet(kernel)}"
    full = ["the sampling buffer was full, so they cover only the start"] if kernel.samples_truncated else []
    return "; ".join([text, *list_sampling_facts(kernel), *full, *([NO_SASS] if kernel.lacks_sass else [])])


def _describe_state(count: ReasonCount) -> str:
    every = format_count(count.all_samples)
    if count.latency_samples is None:
        return f"{every}, how many not issued is unknown"
    return f"{format_count(count.latency_samples)} of {every} not issued"
