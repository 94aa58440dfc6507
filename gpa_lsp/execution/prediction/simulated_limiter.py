"""What limits a simulated launch, by the verdict that every profile gets: :func:`find_simulated_limiter`."""

import json
import tempfile
from pathlib import Path

from gpa_lsp.diagnosis.analyses.analyse_kernel import judge_kernel
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.limiter.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch, make_document
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile


def find_simulated_limiter(one: DocumentLaunch) -> Limiter | None:
    """The verdict; None where nobody can tell.

    Raises:
        GpaError: what was written cannot be read, which is a defect of ours.
    """
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "launch.gpa-profile.json"
        path.write_text(json.dumps(make_document([one], ())), encoding="utf-8")
        kernels, _ = join_profile(read_profile(path))
    if not kernels or not kernels[0].total_samples:
        return None
    (kernel, *_) = kernels
    limiter, _ = judge_kernel(KernelFacts(kernel, blame_kernel(kernel), place_kernel(kernel, None)))
    return limiter


def name_limiter(limiter: Limiter | None) -> str:
    """A few words for a table; empty where nothing is known."""
    if limiter is None or limiter.kind is LimiterKind.UNKNOWN:
        return ""
    found = limiter.find(limiter.unit)
    if limiter.kind is LimiterKind.UNIT:
        return f"{limiter.unit} queue" if found is None else found.label
    return f"{limiter.kind.value}: {limiter.unit}" if limiter.unit else limiter.kind.value
