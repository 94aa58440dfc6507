"""Costs of the steps from code to an answer on one large function, their growth with it, and costs on real reports.

The function repeats the code of the largest fixture kernel (jumps are relative, so every copy is sound code), with samples of every reason on every
instruction. Seconds are processor time of this process, the least of several runs; nvdisasm's own time on the same bytes stands first.

Usage: ``python -m tests.bench.large_function [--sizes N ...] [--times N] [--reports GLOB]``; reports are those of the corpus (GPA_LSP_CORPUS).
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.model import Cubin, Function
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.document.html_report.page import render_html_report
from gpa_lsp.editor.sass import hover, jumps
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hints import list_hints
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from gpa_lsp.editor.sass.tokens import encode_tokens
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.scatter import index_routines
from gpa_lsp.profile.model import Metric
from gpa_lsp.profile.read import read_profile
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from tests.conftest import ROOT, find_corpus
from tests.editor.sass.documents import URI, open_document, show_report
from tests.rows.builders import make_launch

_SOURCE = ROOT / "fixtures" / "cubins" / "sm_90" / "huge_body_original.cubin"
_QUESTIONS = 200  # asked of a document, at random places

Step = tuple[str, Callable[[], object]]


def repeat_function(cubin: Cubin, function: Function, instruction_count: int) -> Function:
    """The function with its code repeated up to a number of instructions."""
    copies = -(-instruction_count * 16 // function.size_bytes)
    image = (function.code * copies)[: instruction_count * 16]
    return replace(function, image=image, code_start=0, size_bytes=len(image), sub_functions=(), call_symbols={})


def make_kernel(cubin: Cubin, function: Function) -> Kernel:
    """A joined kernel of a function, with samples of every reason and executions on each instruction."""
    instructions = disassemble(cubin, [function.name])[function.name]
    count = len(instructions)
    every = np.random.default_rng(1).integers(1, 40, size=(count, len(STALL_REASONS)))
    section = FunctionSamples(
        name=function.name,
        function=function,
        instructions=instructions,
        graph=build_flow_graph(function, instructions, None),
        control=instructions.control,
        lines=None,
        chain_index=np.full(count, -1, dtype=np.int32),
        routine_index=index_routines(function, instructions.pc_offsets),
        pc_offsets=instructions.pc_offsets,
        all_samples=every,
        latency_samples=every // 2,
        executions=np.full(count, 1000, dtype=np.int64),
    )
    duration = Metric(name="gpu__time_duration.sum", value=1e6)
    launch = make_launch(function.name, grid=(4096, 1, 1), block=(256, 1, 1), metrics={duration.name: duration})
    return Kernel(
        mangled_name=function.name,
        name=function.name,
        profile_path=None,
        module=None,
        cubin=cubin,
        device=launch.device,
        architecture=find_architecture((9, 0)),
        launches=(launch,),
        reasons=tuple(sorted(STALL_REASONS)),
        functions=(section,),
    )


def list_code_steps(size: int, folder: Path) -> Iterator[Step]:
    """Steps from bytes to a joined kernel, and those that work on its code."""
    real = read_cubin(_SOURCE.read_bytes(), path=_SOURCE)
    original = max(real.functions.values(), key=lambda function: function.size_bytes)
    function = repeat_function(real, original, size)
    cubin = replace(real, functions={function.name: function})
    code = folder / "code.bin"
    code.write_bytes(function.code)
    command = [find_tool("nvdisasm") or sys.exit("nvdisasm is not installed"), "-b", f"SM{cubin.sm}", code]

    def decode_cold() -> None:
        os.environ["GPA_LSP_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
        disassemble(cubin, [function.name])

    yield "nvdisasm alone", lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    yield "decode, empty cache", decode_cold
    yield "decode, seen before", lambda: disassemble(cubin, [function.name])
    instructions = disassemble(cubin, [function.name])[function.name]
    yield "structure", lambda: build_flow_graph(function, instructions, None)
    yield from list_kernel_steps(make_kernel(cubin, function))


def list_kernel_steps(kernel: Kernel) -> Iterator[Step]:
    """Steps from a joined kernel to advice, page, and a document with what an editor asks of it."""
    blame = blame_kernel(kernel)
    yield "blame", lambda: blame_kernel(kernel)
    yield "blame, as published", lambda: blame_kernel(kernel, "paper")
    yield "analyses", lambda: analyse_kernel(Subject(kernel, blame, place_kernel(kernel)))
    yield "advice", lambda: advise_kernel(Subject(kernel, blame))
    report = gather_report([AnalysedKernel(kernel=kernel, blame=blame)])
    yield "page", lambda: render_html_report(report)
    shown = show_report(report.kernels[0], {})
    document = build_document(URI, shown)
    view = open_document(document)
    yield "document", lambda: build_document(URI, shown)
    yield "semantic tokens", lambda: encode_tokens(document, view.positions.units)
    yield "outline and folds", lambda: (list_symbols(view), list_folds(document))
    yield "hints of all lines", lambda: list_hints(view, 1, len(document.lines))
    rows = np.random.default_rng(2).integers(0, len(document.line_of_row), _QUESTIONS).tolist()
    places = [view.positions.find_place(int(document.line_of_row[row]), document.instruction_column) for row in rows]
    for name, ask in (
        ("hover", hover.describe_hover),
        ("definition", jumps.find_definition),
        ("references", lambda view, place: jumps.find_references(view, place, with_declarations=True)),
        ("highlights", jumps.find_highlights),
    ):
        yield f"{_QUESTIONS} of {name}", lambda ask=ask: [ask(view, place) for place in places]  # type: ignore[misc]
    yield f"{_QUESTIONS} of calls", lambda: [jumps.list_steps(view, row, is_incoming=True) for row in rows]


def time_least(work: Callable[[], object], times: int) -> float:
    """CPU seconds of the quickest run, children included."""
    spent = []
    for _ in range(times):
        begin = _read_cpu_s()
        work()
        spent.append(_read_cpu_s() - begin)
    return min(spent)


def _read_cpu_s() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print a row per step and size, how it grows, and the same steps on real reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 22_000, 100_000])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--reports", help="of the corpus, e.g. ncu/v100_*")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            for name, work in list_code_steps(size, Path(folder)):
                seconds.setdefault(name, []).append(time_least(work, options.times))
    print(f"{'CPU s':24}" + "".join(f"{size:>11,}" for size in options.sizes) + "  grows with the power")
    for name, found in seconds.items():
        power = np.polyfit(np.log(options.sizes), np.log(np.maximum(found, 1e-6)), 1)[0] if len(found) > 1 else 1.0
        print(f"{name:24}" + "".join(f"{one:11.4f}" for one in found) + f"{power:8.2f}")
    corpus = find_corpus() if options.reports else None
    for path in sorted(corpus.glob(options.reports)) if corpus is not None else ():
        for kernel in join_profile(read_profile(path))[0]:
            if kernel.total_samples:
                steps = [(name, time_least(work, options.times)) for name, work in list_kernel_steps(kernel)]
                print(f"{path.stem} {kernel.name[:40]}: " + ", ".join(f"{name} {one:.4f}" for name, one in steps))


if __name__ == "__main__":
    main()
