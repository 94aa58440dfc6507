"""Kernels with advice, without it, and of which little is known, for the tests of what ``advise`` shows."""

from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import decide
from gpa_lsp.diagnosis.advice.model import Silence, SilenceStage
from gpa_lsp.diagnosis.analyses.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.blame.model import IssueCounts
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.prose import percent, say
from gpa_lsp.report.model import KernelReport, LoopRow, Report, RuleNote
from tests.render.examples import KERNEL, LISTING, READABLE, RTX_3070, SOURCE, make_example
from tests.report_builder import build_kernel, build_report

BLAME = """
    2 <- 1   long_scoreboard=30000/28500   memory_global R2 8c 1i
    2 <- 5   wait=1200/500                 execution_arithmetic/guard R6 14c 4i
    3 <- 2   wait=1500/900                 issue/issue 4c 1i
    4 <- 2   short_scoreboard=300/290      execution_special/scoreboard 20c 3i g7
    4 <- 1   short_scoreboard=600/590      execution_special R6 28c 4i g7
    2 <- ?   long_scoreboard=1000/500      no_producer
    9 <- ?   misc                          no_code
"""

ADVICE = """
    loop_unrolling code 1.387x 1.342-1.433 <=1.87 uncapped=1.41
        title: Unroll the loop
        group: memory latency
        bound: the loop issues in 13 % of its samples, and hiding cannot gain more than it has to hide behind
        hint: Load several elements before using the first: `#pragma unroll 4` above the loop in line 7, or read float4.
        caveat: Every load in flight needs a register; 32 are in use.
        caveat: The trip count is not known; a loop of fewer than four iterations gains nothing.
        reason: GPA Equations 4 and 5
        reason: 30,000 samples between def and use in one loop
        region loop 1 1.36x line=7 to=8 density=0.97
            here: The load of in[i * n + k] is used by the next instruction.
            2 <- 1  long_scoreboard
            2 <- 5  wait # around the loop
        region line 4 1.01x
            4 <- 1  short_scoreboard
            4 <- 2  short_scoreboard
    code_reordering code 1.21x 1.18-1.24 <=2
        title: Move the load away from its use
        group: memory latency
        hint: Start the load of the next iteration before using this one.
        region loop 1 line=7 to=8
            2 <- 1  long_scoreboard
    coalesced_access code 1.12x
        title: Read neighbouring addresses from neighbouring threads
        region line 1 samples=5200/4700
            1  lg_throttle
    warp_balance code 1.08x
        hint: Give every warp the same work.
        region kernel 0 samples=700/650
    branch_elimination code 1.03x
        region line 3
            3  branch_resolving
    shared_memory code 1.02x
        region line 3
            3  branch_resolving=80/40
    block_increase parallel 1.25x 1.25-1.25 <=1.28
        title: Launch more blocks
        bound: 46 SMs for 36 blocks
        hint: Launch 72 blocks of 128 threads instead of 36 of 256.
        caveat: Shared memory per block halves.
    register_limit binary 1.05x 1.02-1.09
        title: Raise the register limit
        hint: Compile with -maxrregcount=64.
        region function 7
            7  math_pipe_throttle=5200/4700  pipe_throttle
    silence fast_math not_matched: No slow division here.
    silence function_split not_matched: No instruction cache misses.
    silence async_copy no_metrics: The profile lacks smsp__inst_executed; record with --set full.
"""

SILENCES = """
    silence loop_unrolling not_matched: No loop waits for its own loads.
    silence code_reordering not_matched: No loop waits for its own loads.
    silence block_increase gated: There are 40 blocks for 46 SMs, but DRAM runs at 91 % of its peak.
    silence fast_math too_small: Would gain 1.003×, less than is worth a change.
    silence coalesced_access no_metrics: The profile lacks memory_l2_theoretical_sectors_global; record with --set full.
"""

LIMITER = Limiter(
    kind=LimiterKind.UNIT,
    unit="dram",
    busy_ratio=0.71,
    next=Limit(unit="l2", label="L2", busy_ratio=0.4, sustained_ratio=1.0),
    next_factor=1.9,
    confidence=Confidence.LIKELY,
    sentence=say("Limited by DRAM: {busy} of peak (practical maximum {most}).", busy=percent(0.71), most=percent(0.93)),
    limits=(
        Limit(unit="dram", label="DRAM", busy_ratio=0.71, sustained_ratio=0.93, by="reads"),
        Limit(unit="l2", label="L2", busy_ratio=0.4, sustained_ratio=1.0),
    ),
)
"""Of ``smooth``."""

RULES = (
    RuleNote(rule="CPIStall", kind="ok", text="not shown"),
    RuleNote(rule="HighPipeUtilization", kind="info", text="not an estimate"),
    RuleNote(
        rule="UncoalescedGlobalAccess",
        kind="optimization",
        text="This kernel has uncoalesced global accesses resulting in a total of 7,340,032 excessive sectors.",
        speedup_percent=61.5,
        speedup_is_global=True,
    ),
    RuleNote(
        rule="CPIStall",
        kind="optimization",
        text="On average, each warp spends 12.1 cycles being stalled waiting for a scoreboard dependency.",
        speedup_percent=38.25,
        speedup_is_global=False,
    ),
    RuleNote(rule="Impossible", kind="optimization", text="All of it.", speedup_percent=100.0, speedup_is_global=True),
)


def make_advised() -> KernelReport:
    """``smooth`` with blame, every kind of advice, silences and the profiler's estimates."""
    loop = LoopRow(
        function=KERNEL,
        header_pc_offset=0x10,
        last_pc_offset=0x30,
        depth=1,
        file="/build/src/smooth.cu",
        first_line=7,
        last_line=8,
        samples=0,
        latency_samples=0,
    )
    kernel = build_kernel(
        LISTING,
        name=READABLE,
        mangled_name=KERNEL,
        durations_ns=(6_190_912.0, 6_203_100.0),
        grid=(36, 1, 1),
        loops=[loop],
        rules=RULES,
        sources={"/build/src/smooth.cu": SOURCE},
        device=RTX_3070,
        blame=BLAME,
        advice=ADVICE,
    )
    assert kernel.advice is not None
    refused = Silence(
        optimizer="store_drain",
        stage=SilenceStage.GATED,
        message=say("DRAM, at 71 %, becomes the next limit; this does not relieve it"),
        contradicted_by="limiter",
    )
    advice = replace(kernel.advice, silences=(*kernel.advice.silences, refused))
    return limit(replace(kernel, advice=advice), LIMITER)


def limit(kernel: KernelReport, limiter: Limiter) -> KernelReport:
    """A kernel that something limits, with what follows for its advice."""
    assert kernel.advice is not None
    return replace(kernel, limiter=limiter, advice=decide(kernel.advice, limiter))


def make_silent() -> KernelReport:
    """A kernel that was looked at and has nothing to gain."""
    return build_kernel(
        "copy.cu:3  LDG.E R2, [R4.64]  ; selected=40\ncopy.cu:4  STG.E [R6.64], R2  ; long_scoreboard=400/380",
        name="copy(float*, float*)",
        mangled_name="_Z4copyPfS_",
        durations_ns=(81_000.0,),
        device=RTX_3070,
        blame="1 <- 0 long_scoreboard R2 8c 1i",
        advice=SILENCES,
    )


def make_vague() -> KernelReport:
    """A kernel without lines, time, device, and most of what blame can know."""
    kernel = build_kernel(
        """
        -   LDG.E.128 R4, [R2.64]   ; long_scoreboard=10/9
        -   FADD R4, R4, R5         ; long_scoreboard=790/700 wait=20
        -   ?                       ;
        """,
        name="void lib::transform_kernel<4, lib::Functor<float, lib::Policy<256>>, lib::Array<char*, 2>>(int, T2, T3)",
        mangled_name="_ZN3lib16transform_kernelE",
        durations_ns=(None,),
        blame="1 <- 0 long_scoreboard memory_global/scoreboard\n1 <- ? wait work_bound",
        advice="""
            code_reordering code 1.5x 1.1-1.9
                region function 0
                    1 <- 0 long_scoreboard shared
            mystery code 1.2x <=inf
        """,
    )
    assert kernel.blame is not None
    blame = replace(
        kernel.blame,
        coverage=replace(
            kernel.blame.coverage, before_ratio=None, after_ratio=None, group_ratio=None, explained_ratio=None
        ),
        wait_check=None,
        issue_counts=IssueCounts(
            counts=kernel.blame.issue_counts.counts, is_exact=True, why="", chi_square_per_row=1.25
        ),
    )
    return replace(kernel, blame=blame, device=replace(kernel.device, name=None))


def make_advice_example() -> Report:
    """All of them, kernels nobody asked about, and problems."""
    unasked = make_example()
    kernels = (make_advised(), make_silent(), make_vague(), *unasked.kernels[1:])
    problem = Problem(
        severity=ProblemSeverity.ERROR,
        message="block header is longer than the file",
        path=Path("cut.ncu-rep"),
        place="offset 0x10",
        remedy="record it again",
    )
    return build_report(*kernels, problems=[problem])
