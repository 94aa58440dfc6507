"""Reports with as many kernels and instructions as are asked for; nothing in them repeats so well that it would pack better than real ones."""

import random

from msgspec.structs import replace

from gpa_lsp.report.model import KernelReport, LoopRow, Report
from tests.render.html_report.page_examples import make_answered
from tests.report_builder import build_kernel, build_report

_OPCODES = (
    "LDG.E.64",
    "FFMA",
    "IMAD.WIDE",
    "ISETP.GE.AND",
    "LDS.128",
    "STG.E",
    "MUFU.RCP",
    "DFMA",
    "HMMA.16816.F32",
    "SHFL.BFLY",
)
_REASONS = (
    "long_scoreboard",
    "wait",
    "short_scoreboard",
    "math_pipe_throttle",
    "not_selected",
    "selected",
    "lg_throttle",
)
_DISTINCT = 10
"""Kernels that are built; the others differ from them by name and time."""


def make_large_report(kernels: int, instructions: int) -> Report:
    """A report of many kernels, the longest first.

    Args:
        kernels: how many.
        instructions: of each.
    """
    built = [make_large_kernel(number, instructions) for number in range(min(kernels, _DISTINCT))]
    named = [
        replace(
            built[number % _DISTINCT], name=f"void solver::step_{number}<float>(float*)", mangled_name=f"step{number}"
        )
        for number in range(kernels)
    ]
    return build_report(*named)


def make_large_kernel(number: int, instructions: int) -> KernelReport:
    """A kernel with samples on a third of its instructions, lines in three files, a loop, blame, advice and answers."""
    chance = random.Random(number)
    listing = [_write_instruction(chance, row, instructions) for row in range(instructions)]
    sampled = [row for row in range(2, instructions) if ";" in listing[row] and "long_scoreboard" in listing[row]]
    blame = "\n".join(f"{row} <- {row - chance.randint(1, 2)} long_scoreboard R{row % 200} 8c 1i" for row in sampled)
    advice = (
        f"""
        loop_unrolling code 1.4x 1.3-1.5 <=2
            title: Unroll the loop
            hint: Load several elements before using the first.
            caveat: Every load in flight needs a register.
            reason: Equations 4 and 5
            region loop 0 to=40
                {sampled[0]} <- {sampled[0] - 1} long_scoreboard
        silence fast_math not_matched: No slow division here.
    """
        if sampled
        else ""
    )
    kernel = build_kernel(
        "\n".join(listing),
        name=f"solver_{number}",
        durations_ns=(1e6 / (number + 1),),
        loops=[_make_loop(f"solver_{number}", instructions)],
        sources={f"/src/part{part}.cu": _write_source(chance) for part in range(3)},
        blame=blame,
        advice=advice,
    )
    return replace(kernel, analyses=make_answered().analyses)


def _write_instruction(chance: random.Random, row: int, instructions: int) -> str:
    registers = [chance.randint(0, 250) for _ in range(4)]
    line = 1 + row * 180 // instructions
    place = f"/src/part{row * 3 // instructions}.cu:{line}"
    if row % 4 == 0:
        place = f"/src/part2.cu:{line + 5} < {place}"
    text = f"{chance.choice(_OPCODES)} R{registers[0]}, R{registers[1]}, R{registers[2]}, 0x{registers[3]:x}"
    if row % 3:
        return f"{place}   {text}"
    samples = " ".join(f"{reason}={chance.randint(1, 900)}" for reason in chance.sample(_REASONS, 3))
    return f"{place}   {text}   ; {samples}"


def _write_source(chance: random.Random) -> str:
    lines = [
        f"    float value_{chance.randint(0, 999)} = in[{chance.randint(0, 99)} * n + threadIdx.x];" for _ in range(200)
    ]
    return "\n".join(lines)


def _make_loop(function: str, instructions: int) -> LoopRow:
    return LoopRow(
        function=function,
        header_pc_offset=0,
        last_pc_offset=16 * (instructions // 2),
        depth=1,
        file="/src/part0.cu",
        first_line=1,
        last_line=40,
        samples=0,
        latency_samples=0,
    )
