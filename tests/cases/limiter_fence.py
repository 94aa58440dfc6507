"""Fences ``limiter``: what limits the kernel, and what that makes of the advice::

    unit dram ~ Limited by DRAM: 85 % of peak
    warp_balance 1.22x cut by DRAM, at 85 %
    global_coalescing 1.11x
    silence code_reordering gated by limiter ~ so this would gain nothing

First kind and unit of the limiter, with words of its sentence; then everybody who speaks, in the order of the list, with words of what bounds the
estimate; and some who are silent, with the analysis that contradicts them.
"""

import re

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel
from tests.advice.uncalibrated import leave_uncalibrated

_LIMITER = re.compile(rf"(?P<kind>{'|'.join(LimiterKind)})(?: (?P<unit>\w+))? ~ (?P<words>.+)")
_ADVICE = re.compile(r"(?P<name>[a-z_]+)\s+(?P<estimate>\d+\.\d\d)x(?:\s+cut by (?P<cut>[^~]+?))?")
_SILENCE = re.compile(r"silence (?P<name>[a-z_]+) (?P<stage>[a-z_]+)(?: by (?P<by>\w+))? ~ (?P<words>.+)")


def check_limiter(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare the limiter of a kernel, and the advice on it, with a fence.

    Raises:
        ValueError: a line is none of the notation.
        AssertionError: anything differs; the message is what is said.
    """
    limiter = find_limiter(Subject(kernel, blame))
    with leave_uncalibrated():
        found, problems = advise_kernel(Subject(kernel, blame))
    assert not problems
    said = [f"{limiter.kind} {limiter.unit} ~ {limiter.sentence}"]
    said += [f"{one.optimizer} {one.speedup.estimate:.2f}x cut by {one.speedup.bound_reason}" for one in found.advice]
    said += [
        f"silence {one.optimizer} {one.stage.value} by {one.contradicted_by} ~ {one.message}" for one in found.silences
    ]
    told = "\n".join(["This is what is said:", *said])
    speakers = []
    for line in text.splitlines():
        if silence := _SILENCE.fullmatch(line):
            one = next((one for one in found.silences if one.optimizer == silence["name"]), None)
            assert one is not None, told
            assert (one.stage.value, one.contradicted_by) == (silence["stage"], silence["by"] or ""), told
            assert silence["words"] in one.message, told
        elif limit := _LIMITER.fullmatch(line):
            assert (limiter.kind, limiter.unit) == (limit["kind"], limit["unit"] or ""), told
            assert limit["words"] in limiter.sentence, told
        elif advice := _ADVICE.fullmatch(line):
            speakers.append(advice)
        elif line.strip():
            raise ValueError(f"this is no line of a limiter: {line}")
    assert [one["name"] for one in speakers] == [one.optimizer for one in found.advice], told
    for written, one in zip(speakers, found.advice, strict=True):
        assert written["estimate"] == f"{one.speedup.estimate:.2f}", told
        assert (written["cut"] or "") in one.speedup.bound_reason, told
