"""Reports of earlier versions are read: ``earlier/`` holds what the last program of each version wrote of the reports below."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.profile.model import Aggregate, Sampling
from gpa_lsp.report.changes import LaunchConfiguration, ReasonCount, ReasonCounts
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.saved.store import read_report
from tests.analyses_samples import ANALYSES
from tests.report_builder import build_kernel, build_report
from tests.report_file import test_json_advice, test_json_blame, test_store
from tests.report_file.json_documents import expand

EARLIER = Path(__file__).parent / "earlier"


def make_known_report() -> Report:
    report = test_store.make_report()
    advised = replace(test_json_advice.make_kernel(), analyses=ANALYSES)
    return replace(report, kernels=(*report.kernels, test_json_blame.make_kernel(), advised))


def make_unknown_report() -> Report:
    """What only the second version could say: latency samples, grid and block are unknown, and a launch stands for several."""
    kernel = forget_latency(build_kernel(test_store.LISTING, blame=""))
    anywhere = LaunchConfiguration(
        grid=None, block=None, registers_per_thread=32, shared_static_bytes=None, shared_dynamic_bytes=0
    )
    (launch,) = kernel.launches
    together = replace(
        launch,
        configuration=anywhere,
        aggregate=Aggregate(launches=None),
        sampling=Sampling(period_cycles=1 << 12, dropped_samples=3),
    )
    return build_report(replace(kernel, configuration=anywhere, launches=(together,), duration_spread_ns=None))


def forget_latency(kernel: KernelReport) -> KernelReport:
    blame = kernel.blame
    assert blame is not None
    return replace(
        kernel,
        latency_samples=None,
        by_reason=_forget(kernel.by_reason),
        launches=tuple(_forget_all(launch) for launch in kernel.launches),
        functions=tuple(_forget_all(row) for row in kernel.functions),
        lines=tuple(
            replace(
                _forget_all(row),
                inclusive_latency_samples=None,
                inclusive_by_reason=_forget(row.inclusive_by_reason),
            )
            for row in kernel.lines
        ),
        instructions=replace(kernel.instructions, latency_samples=None),
        blame=replace(
            blame,
            edges=replace(blame.edges, latency_samples=None),
            unattributed=replace(blame.unattributed, latency_samples=None),
        ),
    )


def _forget_all(row: Any) -> Any:
    return replace(row, latency_samples=None, by_reason=_forget(row.by_reason))


def _forget(counts: ReasonCounts) -> ReasonCounts:
    return {
        reason: ReasonCount(all_samples=count.all_samples, latency_samples=None) for reason, count in counts.items()
    }


@pytest.mark.parametrize(
    ("name", "report"), [("version_1.json", make_known_report()), ("version_2.json", make_unknown_report())]
)
def test_everything_is_read(name: str, report: Report) -> None:
    path = EARLIER / name
    assert f'"schema":"gpa-lsp/report/{name[8]}"' in path.read_text(encoding="ascii")
    assert expand(read_report(path)) == expand(report)
