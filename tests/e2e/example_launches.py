"""Profiles of the example's first kernel, launched as a test wants it."""

import copy
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.document.advice_screen import build_screen
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pipeline import analyse
from tests.conftest import ROOT

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"

Launch = dict[str, Any]


def write_launches(folder: Path, *launches: Launch, name: str = "some") -> Path:
    """A profile with some launches of the kernel."""
    for image in ("short_def_use_original.cubin", "inline_chain_original.cubin"):
        target = folder / "cubins" / "sm_80" / image
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "fixtures" / "cubins" / "sm_80" / image, target)
    profile = json.loads(EXAMPLE.read_text())
    profile["launches"] = launches
    path = folder / f"{name}.gpa-profile.json"
    path.write_text(json.dumps(profile))
    return path


def make_launch(grid: int = 1024, *, time_ns: float = 186240.0, stack: Sequence[str] = (), **reasons: int) -> Launch:
    """A launch of the example's kernel: its grid, its time, the lines of ``main`` that made it, and factors of samples by stall reason."""
    launch: Launch = copy.deepcopy(json.loads(EXAMPLE.read_text())["launches"][0])
    launch["grid"] = [grid, 1, 1]
    launch["metrics"]["gpu__time_duration.sum"] = time_ns
    if stack:
        launch["call_stack"] = [{"function": "main", "file": "app.cu", "line": int(line)} for line in stack]
    for sample in launch["samples"]:
        for reason, counts in sample["by_reason"].items():
            factor = reasons.get(reason, 1)
            counts.update({kind: factor * number for kind, number in counts.items()})
    return launch


def judge(path: Path) -> KernelReport:
    (kernel,) = analyse([path]).kernels
    return kernel


def list_gains(advice: KernelAdvice | None) -> list[tuple[str, float, float, float]]:
    assert advice is not None
    return [(one.optimizer, one.speedup.low, one.speedup.estimate, one.speedup.high) for one in advice.advice]


def read_screen(kernel: KernelReport, width: int | None = None) -> list[str]:
    return [read_plain(line) for line in write_terminal([build_screen(kernel, "k", PlaceNames())], width, indent=0)]
