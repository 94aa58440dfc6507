"""How long questions in SASS documents take: hover, definition, references, highlights, call hierarchy, at random places.

A straight kernel made of real code, one of many diamonds in a loop (the worst flow graph), and the kernels of reports.

Usage: ``python -m tests.bench.sass_queries [--instructions N] [--diamonds N] [--questions N] [REPORT…]``.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.editor.model import Position
from gpa_lsp.editor.sass import chains, hover, jumps
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.operand_spans import list_values
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pipeline import analyse
from tests.bench.large_function import repeat_function
from tests.conftest import ROOT
from tests.editor.sass.documents import URI, open_document, show_report
from tests.rows.written import write_kernel

_SOURCE = ROOT / "fixtures" / "cubins" / "sm_90" / "huge_body_original.cubin"

Question = Callable[[SassView, Position], object]

QUESTIONS: Mapping[str, Question] = {
    "hover": hover.describe_hover,
    "definition": jumps.find_definition,
    "references": lambda view, place: jumps.find_references(view, place, with_declarations=True),
    "highlight": jumps.find_highlights,
    "incoming": lambda view, place: _ask_chain(view, place, is_incoming=True),
    "outgoing": lambda view, place: _ask_chain(view, place, is_incoming=False),
}


def _ask_chain(view: SassView, place: Position, *, is_incoming: bool) -> object:
    row = view.document.find_row(place.line + 1)
    return None if row is None else chains.list_steps(view, row, is_incoming=is_incoming)


def build_straight(instruction_count: int) -> KernelReport:
    """Real code repeated, with a sample on every instruction."""
    cubin = read_cubin(_SOURCE.read_bytes())
    function = max(cubin.functions.values(), key=lambda one: one.size_bytes)
    function = repeat_function(cubin, function, instruction_count)
    instructions = disassemble(replace(cubin, functions={function.name: function}), [function.name])[function.name]
    kernel = write_kernel("NOP  # wait=1\n" * instruction_count, name=function.name)
    code = {"function": function, "instructions": instructions, "control": instructions.control}
    section = replace(kernel.functions[0], graph=build_flow_graph(function, instructions), **code)
    return _gather(replace(kernel, functions=(section,)))


def build_diamonds(count: int) -> KernelReport:
    """Diamonds around one instruction each, in a loop, with values from before it and from other diamonds."""
    arms = "\n".join(
        f"@P{number % 7} BRA l{number}\nIADD3 R{8 + number % 100}, R{8 + number * 7 % 100}, R2, RZ  # - | wait=1\nl{number}:"
        for number in range(count)
    )
    return _gather(
        write_kernel(f"MOV R1, RZ\nMOV R2, RZ\nloop:\n{arms}\n@P0 BRA loop\nSTG.E [R2.64], R1  # - | wait=5\nEXIT")
    )


def _gather(kernel: Kernel) -> KernelReport:
    return gather_report([AnalysedKernel(kernel=kernel, blame=blame_kernel(kernel))]).kernels[0]


def list_places(view: SassView, count: int, seed: int = 1) -> Iterator[Position]:
    """Random instructions, half of them pointed at on an operand."""
    chance = random.Random(seed)
    document = view.document
    texts = document.shown.kernel.report.instructions.texts
    for _ in range(count):
        row = chance.randrange(len(texts))
        values = list_values(texts[row]) if texts[row] else ()
        start = chance.choice(values).start if values and chance.random() < 0.5 else 0
        yield view.positions.find_place(int(document.line_of_row[row]), document.instruction_column + start)


def measure(name: str, report: KernelReport, questions: int) -> None:
    """Ask and print."""
    begin = time.perf_counter()
    view = open_document(build_document(URI, show_report(report, {})))
    built_ms = 1e3 * (time.perf_counter() - begin)
    blocks = 0 if report.code is None else len(report.code.first_row)
    print(f"{name}: {len(report.instructions):,} instructions, {blocks:,} blocks, document {built_ms:.0f} ms")
    places = list(list_places(view, questions))
    for label, ask in QUESTIONS.items():
        begin = time.perf_counter()
        ask(view, places[0])
        first_ms = 1e3 * (time.perf_counter() - begin)
        spent = [_time(ask, view, place) for place in places]
        half, most, worst = np.percentile(np.array(spent) * 1e3, (50, 99, 100))
        print(f"  {label:11} first {first_ms:7.2f}  p50 {half:7.3f}  p99 {most:7.3f}  worst {worst:7.3f} ms")


def _time(ask: Question, view: SassView, place: Position) -> float:
    """Seconds of processor time: other programs on the machine are not the question's."""
    begin = time.thread_time()
    ask(view, place)
    return time.thread_time() - begin


def main() -> None:
    """Measure every kernel asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=22_000)
    parser.add_argument("--diamonds", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("reports", nargs="*", type=Path)
    options: Any = parser.parse_args()
    measure("straight", build_straight(options.instructions), options.questions)
    measure("diamonds", build_diamonds(options.diamonds), options.questions)
    for path in options.reports:
        for kernel in analyse([path]).kernels:
            measure(f"{path.name} {kernel.name[:40]}", kernel, options.questions)


if __name__ == "__main__":
    main()
