"""Reports with one of everything: instructions, loops and rules, blame, advice, analyses, places; and one in which much is unknown."""

from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.model import Aggregate, PlaceSamples, Sampling
from gpa_lsp.report.changes import ReasonCount, ReasonCounts
from gpa_lsp.report.model import KernelReport, LoopRow, Report, RuleNote
from tests.analyses_samples import ANALYSES
from tests.report_builder import build_kernel, build_report

LISTING = """
    k.cu:4                          LDG.E R2, [R4.64]          ; long_scoreboard=60/50 selected=4
    square@m.h:9 < k.cu:5           @!P0 FMUL R3, R2, R2       ; wait=20/10 math_pipe_throttle=1
    k.cu:5                          FFMA R2, R2, R3, R6        ; wait=3
    -                               EXIT                       ;
    [helper!]
    -                               RET.REL.NODEC R20 0x0      ; short_scoreboard=7/7
    [<outside this module>]
    -                               ?                          ; misc=2
"""
BLAMED = """
    k.cu:4  LDG.E R2, [R4.64]   ; selected=4
    k.cu:4  LDG.E R3, [R6.64]   ; selected=4
    k.cu:5  FFMA R2, R2, R3, R6 ; long_scoreboard=61/50 wait=7/3 selected=4
    -       EXIT                ; drain=9
"""
BLAME = """
    2 <- 0  long_scoreboard=40.75/30  memory_global R2 8c 2i g0
    2 <- 1  long_scoreboard=20.25/20  memory_global/scoreboard 6c 1i g0
    2 <- ?  wait=2/1  no_producer
    2 <- ?  wait=1/1  no_code
    2 <- 1  wait=4/1  issue/issue
    3 <- ?  drain     work_bound
"""
ADVISED = """
    k.cu:4                      LDG.E R2, [R4.64]   ; selected=4
    sq@m.h:2 < kernel@k.cu:5    FMUL R2, R2, R2     ; long_scoreboard=60/50 wait=8/4 selected=8
    -                           EXIT                ; drain=20/20
"""
ADVICE = """
    loop_unrolling code 1.5x 1.3-1.7 <=2 uncapped=2.25
        title: Unroll the loop
        group: memory latency
        hint: Unroll it by four.
        caveat: Needs registers.
        caveat: Larger code.
        reason: Equations 4 and 5
        bound: latency hiding at most halves the time
        region loop 0 1.4x to=5 density=0.75
            here: Unroll this one.
            1 <- 0  long_scoreboard=60/50  memory_global R2 12c 1i shared # behind one scoreboard
            1  wait=8/4
        region line 2 1.2x
            2  drain
    block_increase parallel 1.1x
    silence fast_math not_matched: No slow division here.
    silence warp_balance no_metrics: The profile lacks x.
"""
PLACED = """
    k.cu:4    LDG.E R2, [R4.64]    ; long_scoreboard=60/50 selected=4
    k.cu:5    FFMA R2, R2, R3, R6  ; wait=3
    -         EXIT                 ;
"""
MANGLED = "_Z6kernelIfEvPT_"


def make_report() -> Report:
    """Kernels as every report has had them: 0 is long, 1 empty, 2 blamed, 3 advised and analysed."""
    places = {"file": "k.cu", "first_line": 4, "last_line": 5, "samples": 0, "latency_samples": 0}
    long = build_kernel(
        LISTING,
        name="void kernel<float>(float *)",
        mangled_name=MANGLED,
        durations_ns=(10.5, None, 12.25),
        called_samples={("k.cu", 5): 7.25},
        loops=[LoopRow(function=MANGLED, header_pc_offset=0, last_pc_offset=32, depth=1, **places)],
        rules=[
            RuleNote(rule="SOLBottleneck", kind="warning", text="„µ“", speedup_percent=12.5, speedup_is_global=True)
        ],
        sources={"k.cu": "int a;\nµ\n"},
    )
    empty = build_kernel(name="empty", durations_ns=())
    blamed = build_kernel(BLAMED, blame=BLAME)
    large = Problem(severity=ProblemSeverity.WARNING, message="too large", kernel="kernel", remedy="none")
    blamed = replace(blamed, blame=replace(blamed.blame, problems=(large,)))
    advised = replace(build_kernel(ADVISED, advice=ADVICE), analyses=ANALYSES)
    note = Problem(severity=ProblemSeverity.NOTE, message="m", path=Path("a/b"), place="/x", remedy="r", kernel=MANGLED)
    return build_report(long, empty, blamed, advised, problems=[note])


def make_full_report() -> Report:
    """The report of ``make_report`` and a kernel with samples by the place of its launch."""
    kernel, report = build_kernel(PLACED), make_report()
    samples = kernel.instructions.all_samples
    first = samples[:1] // 3
    rest = np.stack([samples[0] - first[0], samples[1]])
    stacks = (("step at a.py:3", "main at a.py:9"), np.array([0]), first), ((), np.array([0, 1]), rest)
    places = tuple(PlaceSamples(call_stack=calls, rows=rows, all_samples=taken) for calls, rows, taken in stacks)
    return replace(report, kernels=(*report.kernels, replace(kernel, places=places)))


def make_unknown_report() -> Report:
    """A report with facts new in version 2: unknown latency samples, grid and block, and a launch that stands for several."""
    kernel = _forget_latency(build_kernel(LISTING, blame=""))
    anywhere = LaunchConfiguration(
        grid=None, block=None, registers_per_thread=32, shared_static_bytes=None, shared_dynamic_bytes=0
    )
    together = replace(
        kernel.launches[0],
        configuration=anywhere,
        aggregate=Aggregate(launches=None),
        sampling=Sampling(period_cycles=1 << 12, dropped_samples=3),
    )
    return build_report(replace(kernel, configuration=anywhere, launches=(together,), duration_spread_ns=None))


def _forget_latency(kernel: KernelReport) -> KernelReport:
    blame = kernel.blame
    lines = (
        replace(row, inclusive_latency_samples=None, inclusive_by_reason=_forget(row.inclusive_by_reason))
        for row in map(_forget_all, kernel.lines)
    )
    return replace(
        _forget_all(kernel),
        launches=tuple(map(_forget_all, kernel.launches)),
        functions=tuple(map(_forget_all, kernel.functions)),
        lines=tuple(lines),
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
    return {reason: ReasonCount(all_samples=one.all_samples, latency_samples=None) for reason, one in counts.items()}
