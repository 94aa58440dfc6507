"""Why a kernel gets no advice, or no more than it gets."""

from collections.abc import Iterator, Mapping

from gpa_lsp.diagnosis.advice.model import Silence, SilenceStage
from gpa_lsp.document.advice_words import describe_stage
from gpa_lsp.document.layout import EMPTY_LINE, Line, Style, hang, text_line, wrap
from gpa_lsp.foundation.numbers import format_count, format_count_of
from gpa_lsp.report.gather import explain_no_samples
from gpa_lsp.report.model import KernelReport


def render_silences(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    """A kernel without advice gets every reason, by stage; one with advice a line that counts them."""
    if kernel.advice is not None and kernel.advice.advice:
        counted = count_silences(kernel)
        if counted:
            yield from wrap(counted, width, style=Style.DIM)
        return
    yield EMPTY_LINE
    yield text_line("No advice", Style.HEADING)
    for stage, messages in explain_silence(kernel).items():
        yield from wrap(stage, width)
        for message, optimizers in messages.items():
            names = ", ".join(optimizers)
            lead = f"    {names}: " if names else "    "
            yield from hang(((lead, Style.DIM), (message, Style.PLAIN)), width, indent=6)


def explain_silence(kernel: KernelReport) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Why there is no advice: stage in words → message → the optimizers that say so (none for what concerns all of them)."""
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
        f"{describe_stage(stage)} ({format_count_of(sum(map(len, messages.values())), 'optimizer')})": messages
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
    """How many optimizers do not apply, and why; empty where all do."""
    silences = kernel.advice.silences if kernel.advice is not None else ()
    if not silences:
        return ""
    counts = [
        f"{describe_stage(stage)} ({format_count(sum(map(len, messages.values())))})"
        for stage, messages in group_silences(silences).items()
    ]
    do = "does" if len(silences) == 1 else "do"
    return f"{format_count_of(len(silences), 'other optimizer')} {do} not apply: {'; '.join(counts)}"


def _describe_missing_samples(kernel: KernelReport) -> str:
    failure = next((launch.failure for launch in kernel.launches if launch.failure is not None), None)
    if failure is not None:
        return f"the launch was not measured: {failure}"
    return "; ".join(explain_no_samples(kernel))
