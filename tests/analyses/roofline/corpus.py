"""Launches of the corpus of real reports, joined once."""

from dataclasses import dataclass
from functools import cache

from gpa_lsp.diagnosis.analyses.questions.speed_of_light import Basis
from gpa_lsp.diagnosis.analyses.roofline.counts import count_launch, read_span
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Launch
from tests.real_reports import join


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A launch that has numbers, with its kernel and what shares are recomputed from."""

    kernel: Kernel
    launch: Launch
    basis: Basis


@cache
def list_measured(name: str) -> tuple[Measured, ...]:
    """The launches of a report that have numbers."""
    found = []
    for kernel in join(name):
        for launch in kernel.launches:
            span, machine = read_span(launch), find_machine(launch.device, kernel.architecture, launch)
            if span is None or machine is None:
                continue
            basis = Basis(
                launch=launch,
                span=span,
                machine=machine,
                architecture=kernel.architecture,
                executions=count_launch(kernel, launch, len(kernel.launches)),
            )
            found.append(Measured(kernel=kernel, launch=launch, basis=basis))
    return tuple(found)
