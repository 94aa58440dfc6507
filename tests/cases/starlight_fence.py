"""Fences ``starlight``: what Starlight's table says of a kernel::

    roof FP32 1.2T of 10T
    roof DRAM 1.333T of 2T
    count issued 80
    line 4 of k.cu  64.0 %  Poor memory usage  500  2.00x  2.40T  below the roof 2.40T
    says ~ on the memory side
    suggests Loop unroll ~ words of the movement
    leads Loop unroll to loop_unrolling

Lines ``roof`` make up the roofline: a type of operation with its rate and its peak, at most one; levels of the memory with theirs, in bytes per
second, and the part of the peak that they sustain where it is not all of it (``sustains 0.85``); and peaks of other types, without a rate.
``count`` lines are where the samples count, all of them, in any order. Then the lines of the kernel that gain most, all of them, in their
order: place, Equation 2, bottleneck, stalls, Equation 3, and, with a roofline, Equation 4 and what is left of it below the roof. ``says`` demands
words of a finding, ``suggests`` a suggestion of Table 1 and words of how it moves the kernel, ``leads`` the optimizers that it leads to.
"""

import re
from collections.abc import Sequence

from gpa_lsp.diagnosis.analyses.answers import Answer, Table
from gpa_lsp.diagnosis.analyses.model import KernelRoofline
from gpa_lsp.diagnosis.analyses.questions.starlight import answer_starlight
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.kernel.model import Kernel
from tests.analyses.roofline.launches import make_roofline

_RATE = r"\d+(?:\.\d+)?[TGM]"
_LINE = re.compile(rf"roof (?P<name>.+?) (?:(?P<rate>{_RATE}) )?of (?P<peak>{_RATE})(?:\s+sustains (?P<part>\d\.\d+))?")
_SIZES = {"T": 1e12, "G": 1e9, "M": 1e6}


def check_starlight(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare Starlight's answer about a kernel below the roofs of a fence with the fence.

    Raises:
        AssertionError: anything differs; the message is what is said.
    """
    roofline, lines = split_roofs(text)
    answer = answer_starlight(Subject(kernel, blame, roofline))
    counts, estimates = _describe_counts(answer), _describe_estimates(answer)
    findings = [finding.text for finding in answer.findings]
    suggestions = {str(row[1]): str(row[6]) for row in answer.tables[0].rows}
    led = [f"leads {row[1]} to {row[7]}" for row in answer.tables[0].rows]
    told = "\n".join(["This is what is said:", *counts, *estimates, *findings, str(suggestions), *led])
    written = [" ".join(line.split()) for line in lines]
    leading = [line for line in written if line.startswith("leads ")]
    assert leading in ([], led), told
    written = [line for line in written if line not in leading]
    demanded = [line for line in written if line.startswith(("says ~ ", "suggests "))]
    assert sorted(line for line in written if line.startswith("count ")) == sorted(counts), told
    assert [line for line in written if not line.startswith("count ") and line not in demanded] == estimates, told
    for line in demanded:
        what, _, words = line.partition(" ~ ")
        if what == "says":
            assert any(words in finding for finding in findings), told
        else:
            assert words in suggestions[what.removeprefix("suggests ")], told


def _find(answer: Answer, title: str) -> Table | None:
    return next((table for table in answer.tables if table.title == title), None)


def _describe_counts(answer: Answer) -> list[str]:
    parts = _find(answer, "Where the samples count")
    return [] if parts is None else [f"count {name} {count}" for name, count, _ in parts.rows]


def _describe_estimates(answer: Answer) -> list[str]:
    table = _find(answer, "Starlight's hot lines")
    found = []
    for place, share, bottleneck, removed, speedup, rate, below in () if table is None else table.rows:
        assert isinstance(share, float)
        assert isinstance(speedup, float)
        words = f"{place} {100 * share:.1f} % {bottleneck} {removed} {speedup:.2f}x"
        if isinstance(rate, float) and isinstance(below, float):
            words += f" {rate / 1e12:.2f}T below the roof {below / 1e12:.2f}T"
        found.append(words)
    return found


def split_roofs(text: str) -> tuple[KernelRoofline | None, list[str]]:
    """The roofline of a fence, None where no line says anything of roofs, and its other lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    roofs = [line for line in lines if line.startswith("roof ")]
    return (_read_roofs(roofs) if roofs else None), [line for line in lines if not line.startswith("roof ")]


def read_rate(text: str) -> float:
    return float(text[:-1]) * _SIZES[text[-1]]


def _read_roofs(lines: Sequence[str]) -> KernelRoofline:
    peaks: dict[OperationKind, float] = {}
    traffic: dict[MemoryLevel, tuple[float, float]] = {}
    ceilings: dict[MemoryLevel, float] = {}
    kind, rate = OperationKind.FP32, None
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"this is no roof: {line}")
        peak = read_rate(found["peak"])
        if found["name"] in set(MemoryLevel):
            level = MemoryLevel(found["name"])
            traffic[level] = (read_rate(found["rate"]), peak)
            ceilings[level] = float(found["part"] or 1.0)
            continue
        peaks[OperationKind(found["name"])] = peak
        if found["rate"]:
            kind, rate = OperationKind(found["name"]), read_rate(found["rate"])
    return make_roofline(ops_per_s=rate, peaks=peaks, traffic=traffic, kind=kind, ceilings=ceilings)
