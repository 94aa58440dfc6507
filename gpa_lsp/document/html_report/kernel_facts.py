"""What a kernel is and what its warps did, for a page: facts, bars of states and causes, tables."""

from collections.abc import Sequence

from gpa_lsp.document.advice_words import NO_SASS
from gpa_lsp.document.context_words import name_shape
from gpa_lsp.document.launch_place_words import describe_place_time
from gpa_lsp.document.layout import join_facts
from gpa_lsp.document.sampling_words import describe_device, describe_quiet, list_sampling_facts
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_spread,
)
from gpa_lsp.foundation.prose import Sentence, count, say
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.model import KernelReport

_MOST_CONTEXTS = 50


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
