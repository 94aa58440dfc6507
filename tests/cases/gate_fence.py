"""Fences ``gate``: what the roofline makes of the advice on a kernel::

    roof FP32 1.2T of 10T
    roof DRAM 1.64T of 2T
    memory-bound ~ DRAM bandwidth is at 82.0 %
    global_coalescing 1.11x ~ comes before larger estimates
    warp_balance 1.22x cut by DRAM bandwidth ~ comes behind
    silence thread_increase gated ~ more warps would only queue

Lines ``roof`` are those of :mod:`tests.cases.roofline_lines`. Then what holds the kernel up, with words about it; everybody who speaks, in the
order of the list, with words of the reason for that place (no words: it stands where its estimate puts it), and with words of what cuts the
estimate; and some who are silent.
"""

import re

from gpa_lsp.advice.advise import advise_kernel
from gpa_lsp.advice.gates import Limit, find_standing
from gpa_lsp.advice.subject import build_subject
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.rows.model import Kernel
from tests.cases.roofline_lines import split_roofs

_ADVICE = re.compile(
    r"(?P<name>[a-z_]+)\s+(?P<estimate>\d+\.\d\d)x(?:\s+cut by (?P<cut>[^~]+?))?(?:\s+~ (?P<words>.+))?"
)
_SILENCE = re.compile(r"silence (?P<name>[a-z_]+) (?P<stage>[a-z_]+) ~ (?P<words>.+)")
_LIMIT = re.compile(rf"(?P<limit>{'|'.join(Limit)})(?: ~ (?P<words>.+))?")


def check_gate(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare the advice on a kernel below the roofs of a fence with the fence.

    Raises:
        ValueError: a line is none of the notation.
        AssertionError: anything differs; the message is what is said.
    """
    roofline, lines = split_roofs(text)
    standing = find_standing(build_subject(kernel, blame, None, roofline))
    found, problems = advise_kernel(kernel, blame, None, roofline)
    assert not problems
    said = [f"{standing.limit} ~ {standing.words}"]
    said += [
        f"{one.optimizer} {one.speedup.estimate:.2f}x cut by {one.speedup.bound_reason} ~ {one.rank_reason}"
        for one in found.advice
    ]
    said += [f"silence {one.optimizer} {one.stage.value} ~ {one.message}" for one in found.silences]
    told = "\n".join(["This is what is said:", *said])
    speakers = []
    for line in lines:
        if silence := _SILENCE.fullmatch(line):
            one = next((one for one in found.silences if one.optimizer == silence["name"]), None)
            assert one is not None, told
            assert one.stage.value == silence["stage"], told
            assert silence["words"] in one.message, told
        elif limit := _LIMIT.fullmatch(line):
            assert standing.limit == limit["limit"], told
            assert (limit["words"] or "") in standing.words, told
        elif advice := _ADVICE.fullmatch(line):
            speakers.append(advice)
        else:
            raise ValueError(f"this is no line of a gate: {line}")
    assert [one["name"] for one in speakers] == [one.optimizer for one in found.advice], told
    for written, one in zip(speakers, found.advice, strict=True):
        assert written["estimate"] == f"{one.speedup.estimate:.2f}", told
        assert (written["words"] or "") in one.rank_reason, told
        assert bool(written["words"]) == bool(one.rank_reason), told
        assert (written["cut"] or "") in one.speedup.bound_reason, told
