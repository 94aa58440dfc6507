"""Kernels of the real reports, disassembled, for tests that compare sums over instructions with what the profiler summed up."""

from collections.abc import Iterator
from functools import cache

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, join


@cache
def every_kernel() -> tuple[Subject, ...]:
    """Facts of every kernel of the corpus whose code can be disassembled; without blame."""
    return tuple(_read_kernels())


def name_of(facts: Subject) -> str:
    """Name the report and the kernel, for messages."""
    path = facts.kernel.profile_path
    return f"{path.name if path else '?'} {facts.kernel.mangled_name[:40]}"


def launches_of(facts: Subject) -> tuple[Launch, ...]:
    """Launches of the kernel that have numbers."""
    return tuple(launch for launch in facts.kernel.launches if launch.failure is None)


def sum_over_launches(facts: Subject, *names: str) -> float | None:
    """The sum over launches of the first of some aggregates that each has; None where one has none of them."""
    total = 0.0
    for launch in launches_of(facts):
        found = (launch.read_number(name) for name in names)
        value = next((one for one in found if one is not None), None)
        if value is None:
            return None
        total += value
    return total


def runs_alike(facts: Subject) -> bool:
    """Every pass executed the same instructions, and none of them outside the module: executions add up to the hardware's own count."""
    counted = sum_over_launches(facts, "smsp__inst_executed.sum")
    return counted == int(facts.rows.executions[facts.rows.executions > 0].sum())


def _read_kernels() -> Iterator[Subject]:
    for name in REPORTS:
        for kernel in join(name):
            facts = Subject(kernel)
            if facts.rows.has_code:
                yield facts
