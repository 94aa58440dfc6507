"""The reports that renderer and command tests show."""

from pathlib import Path

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.report.model import DeviceReport, KernelReport, LoopRow, Report, RuleNote
from tests.report_builder import OUTSIDE, build_kernel, build_report, parse_rows

SOURCE = """\
__device__ float square(float x) { return x * x; }

__global__ void smooth(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += square(in[i * n + k]);
    out[i] = expf(sum) / n;
}
"""

LISTING = """
    smooth@/build/src/smooth.cu:5                                  S2R R0, SR_TID.X                ; selected=40
    smooth@/build/src/smooth.cu:8                                  LDG.E R2, [R4.64]               ; selected=900 lg_throttle=4100/4000
    _Z6squaref@/build/src/smooth.cu:1 < smooth@/build/src/smooth.cu:8   FFMA R6, R2, R2, R6        ; long_scoreboard=31000/29000 wait=2200/1000
    smooth@/build/src/smooth.cu:7                                  @!P0 BRA 0x10                   ; wait=1500/900 branch_resolving=700/650
    smooth@/build/src/smooth.cu:9                                  MUFU.EX2 R8, R6                 ; short_scoreboard=900/880
    smooth@/build/src/smooth.cu:9                                  CALL.REL.NOINC 0x70             ; wait=60/20
    smooth@/build/src/smooth.cu:10                                 EXIT                            ;
    [$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath!]
    -                                                              MUFU.RCP R3, R2                 ; math_pipe_throttle=5200/4700 wait=800
    -                                                              RET.REL.NODEC R20 0x0           ;
    [<outside this module>]
    -                                                              ?                               ; misc=12
"""

KERNEL = "_Z6smoothPKfPfi"
READABLE = "smooth(float const*, float*, int)"
RTX_3070 = DeviceReport(
    name="NVIDIA GeForce RTX 3070", compute_capability=(8, 6), sm_count=46, sm_clock_hz=1_725_000_000.0
)


def make_smooth() -> KernelReport:
    """A kernel with an inlined function, a loop, a called routine without lines and foreign code, measured twice."""
    rows = parse_rows(LISTING, KERNEL)
    rows[1].control = (2, 1, 0, 7, 0)
    rows[2].control = (4, 0, 7, 7, 0b000001)
    rows[4].control = (15, 1, 2, 1, 0b111111)
    rows[-1].control, rows[-1].text, rows[-1].pc_offset = None, "", 0x7F00_0000_1000
    for row, executions in zip(rows, (4096, 262_144, 262_144, 262_144, 4096, 4096, 4096), strict=False):
        row.executions = executions
    assert rows[-1].function == OUTSIDE
    return build_kernel(
        rows,
        name=READABLE,
        mangled_name=KERNEL,
        durations_ns=(6_190_912.0, 6_203_100.0),
        grid=(512, 1, 1),
        block=(256, 1, 1),
        called_samples={("/build/src/smooth.cu", 9): 6000.0},
        loops=[
            LoopRow(
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
        ],
        rules=[
            RuleNote(rule="CPIStall", kind="ok", text="not shown"),
            RuleNote(
                rule="UncoalescedGlobalAccess",
                kind="optimization",
                text="This kernel has uncoalesced global accesses.",
                speedup_percent=61.5,
                speedup_is_global=True,
            ),
        ],
        sources={"/build/src/smooth.cu": SOURCE},
        device=RTX_3070,
    )


def make_example() -> Report:
    """``smooth``, a kernel without lines, one that failed and one without samples, and problems of every severity."""
    bare = build_kernel(
        "-  LDG.E.128 R4, [R2.64]  ; long_scoreboard=800/790\n-  EXIT  ; selected=10",
        name="void lib::transform_kernel<4, lib::Functor<float, lib::Policy<256>>, lib::Array<char*, 2>>(int, T2, T3)",
        mangled_name="_ZN3lib16transform_kernelE",
        durations_ns=(81_000.0,),
        device=RTX_3070,
        grid=(20, 2, 1),
    )
    failed = build_kernel(
        name="broken_kernel", durations_ns=(None,), grid=(0, 0, 0), block=(0, 0, 0), failure="the profiler gave up"
    )
    idle = build_kernel("k.cu:3  EXIT  ;", name="idle_kernel", durations_ns=(950.4,), device=RTX_3070)
    problems = [
        Problem(
            severity=ProblemSeverity.ERROR,
            message="block header is longer than the file",
            path=Path("cut.ncu-rep"),
            place="offset 0x10",
            remedy="record it again",
        ),
        Problem(
            severity=ProblemSeverity.WARNING,
            message="launch 3 has no numbers: the profiler gave up",
            path=Path("profile.ncu-rep"),
            kernel="broken_kernel",
        ),
        Problem(
            severity=ProblemSeverity.NOTE,
            message="the cubin has no line table, so the samples can be shown on instructions only",
            path=Path("profile.ncu-rep"),
            remedy="compile with -lineinfo",
            kernel="_ZN3lib16transform_kernelE",
        ),
    ]
    return build_report(make_smooth(), bare, idle, failed, problems=problems)
