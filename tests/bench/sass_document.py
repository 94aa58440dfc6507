"""A SASS document of 22,000 instructions, and what an editor asks when it is opened.

The functions are made as in :mod:`tests.bench.large_function`, one of straight code and one of loops and branches, with samples of many reasons
on every instruction, and an inline chain on each.

Usage: ``python -m tests.bench.sass_document [--instructions N] [--times N]``.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import Positions
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hints import list_hints
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.sass.operand_spans import has_target, scan_operand
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from gpa_lsp.editor.sass.tokens import InstructionEncoder, encode_tokens
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import LoadedProfile, Snapshot, VisibleKernel, measure_kernel
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.model import KernelReport
from tests.bench.large_function import make_profile, repeat_function
from tests.conftest import ROOT

_FOLDER = ROOT / "fixtures" / "cubins" / "sm_90"
_SOURCES = ("huge_body_original.cubin", "branch_divergence_original.cubin")
_LINES = 400
_ROWS_PER_LINE = 3
_URI = "gpa-sass:///bench.00000000.nvsass"


def make_kernel(path: Path, instruction_count: int) -> VisibleKernel:
    """A shown kernel of that size, of the code of a cubin."""
    real = read_cubin(path.read_bytes())
    original = max(real.functions.values(), key=lambda function: function.size_bytes)
    function = repeat_function(real, original, instruction_count)
    cubin = replace(real, functions={function.name: function})
    with patch("gpa_lsp.kernel.join.read_cubin", lambda image, path=None: cubin):
        (kernel,), _ = join_profile(make_samples(make_profile(cubin, function)))
    (report,) = gather_report([AnalysedKernel(kernel=kernel, blame=blame_kernel(kernel))]).kernels
    file = MeasuredFile(
        compiled_path="bench.cu",
        local_path="/bench.cu",
        lines=tuple(f"    value[{line}] += in[{line}] * weight({line});" for line in range(_LINES)),
    )
    measured = measure_kernel(add_lines(report), 0)
    profile = LoadedProfile(path=Path("bench.ncu-rep"), files={"bench.cu": file}, kernels=(measured,))
    return Snapshot().with_profiles([profile]).visible[0]


def make_samples(profile: Profile) -> Profile:
    """The profile with real stall reasons, and other numbers of them on every instruction."""
    (launch,) = profile.launches
    assert launch.samples is not None
    rng = np.random.default_rng(1)
    counts = rng.geometric(0.1, launch.samples.all_samples.shape).astype(np.int64)
    reasons = tuple(STALL_REASONS)[: counts.shape[1]]
    samples = replace(launch.samples, reasons=reasons, all_samples=counts, latency_samples=counts // 2)
    return replace(profile, launches=(replace(launch, samples=samples),))


def add_lines(report: KernelReport) -> KernelReport:
    """The report with another inline chain on every few instructions."""
    columns = report.instructions
    chains = tuple(
        (Frame(file="inlined.h", line=1 + line % 90), Frame(file="bench.cu", line=line)) for line in range(1, _LINES)
    )
    numbers = (np.arange(len(columns)) // _ROWS_PER_LINE * 7 % len(chains)).astype(np.int32)
    return replace(report, instructions=replace(columns, chains=chains, chain_index=numbers))


def measure(name: str, work: Callable[[], object], times: int) -> None:
    """Print the least and the median wall time, and the least time of this process: the machine may have other things to do."""
    wall, own = [], []
    for _ in range(times):
        scan_operand.cache_clear()
        has_target.cache_clear()
        began, began_own = time.perf_counter(), time.process_time()
        work()
        wall.append(1000 * (time.perf_counter() - began))
        own.append(1000 * (time.process_time() - began_own))
    print(
        f"{name:44} min {min(wall):7.1f} ms   median {statistics.median(wall):7.1f} ms   of the process {min(own):7.1f} ms"
    )


def open_document(document: SassDocument) -> SassView:
    """The document as a client has it open."""
    units = PositionCodec()
    places = PlaceFinder(units, lambda path: None)
    positions = Positions(lines=document.lines, units=units)
    return SassView(document=document, positions=positions, settings=Settings(), places=places)


def main() -> None:
    """Print the times of each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=22_000)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    for name in _SOURCES:
        measure_document(make_kernel(_FOLDER / name, options.instructions), options.times)


def measure_document(shown: VisibleKernel, times: int) -> None:
    """Print a row per step for one kernel."""
    columns = shown.kernel.report.instructions
    document = build_document(_URI, shown)
    view = open_document(document)
    data = encode_tokens(document, view.positions.units)
    size = sum(map(len, document.lines))
    print(
        f"{len(columns):,} instructions ({len(set(columns.texts)):,} different), {len(document.sections):,} sections, "
        f"{len(document.lines):,} lines, {size / 1e6:.1f} million characters, {len(data) // 5:,} tokens"
    )
    measure("document", lambda: build_document(_URI, shown), times)
    measure("its text in one piece", lambda: document.text, times)
    measure("semantic tokens", lambda: encode_tokens(document, view.positions.units), times)
    measure("of these, instructions alone", lambda: _encode_instructions(columns.texts), times)
    measure("semantic tokens as JSON", lambda: json.dumps(data), times)
    measure("outline", lambda: list_symbols(view), times)
    measure("folds", lambda: list_folds(document), times)
    measure("hints of all lines", lambda: list_hints(view, 1, len(document.lines)), times)
    measure("hints of a screen", lambda: list_hints(view, 5001, 5060), times)


def _encode_instructions(texts: tuple[str, ...]) -> None:
    encoder = InstructionEncoder()
    for text in dict.fromkeys(texts):
        encoder.encode(text)


if __name__ == "__main__":
    main()
