"""Reports that a page shows: one with everything, one whose every text is markup, and one compared with an earlier one."""

from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Chart,
    ChartKind,
    Column,
    Finding,
    LineMark,
    Missing,
    Movement,
    Series,
    Table,
    Weight,
)
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses, KernelRoofline
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.report.model import KernelReport, Report, RuleNote
from tests.render.advice_examples import make_advice_example, make_advised
from tests.render.charts.roofline_examples import make_machine, make_roofline
from tests.render.examples import KERNEL
from tests.report_builder import build_kernel, build_report

SOURCE_FILE = "/build/src/smooth.cu"

MARKUP = "</script></template><img src=x onerror=\"window.hit='x'\"><script>window.hit='y'</script>`'&amp;{{7*7}}"
"""A text that must never become more than text."""


def make_answers() -> tuple[Answer, ...]:
    """An answer with every word of the vocabulary, one about the roofline, one about occupancy, and one that knows nothing."""
    chart = Chart(
        title="Occupancy over block size",
        kind=ChartKind.STEPS,
        x_label="threads per block",
        y_label="occupancy",
        y_quantity=Quantity.RATIO,
        series=(Series(label="as it is", xs=(32.0, 64.0, 128.0), ys=(0.25, 0.5, 0.75)),),
        current_x=64.0,
    )
    table = Table(
        title="Over block sizes",
        columns=(Column(name="threads"), Column(name="occupancy", quantity=Quantity.RATIO)),
        rows=tuple((f"{32 * size}", size / 16) for size in range(1, 17)),
        current_row=3,
        note="Steps of 32.",
    )
    mark = LineMark(
        measure="excess sectors",
        value=4096,
        quantity=Quantity.COUNT,
        share_ratio=0.5,
        text="4.0 times what it needs",
        file=SOURCE_FILE,
        line=8,
        function=KERNEL,
        pc_offset=0x10,
    )
    movement = Movement(
        kind=OperationKind.FP32,
        level=MemoryLevel.DRAM,
        from_intensity=1.5,
        from_ops_per_s=1.2e12,
        to_intensity=3.0,
        to_ops_per_s=2.4e12,
        label="halve the bytes",
    )
    return (
        Answer(
            analysis="roofline",
            title="Place under the roofs",
            summary="Leans on DRAM.",
            bars=(Bar(label="DRAM bandwidth", ratio=0.8),),
        ),
        Answer(
            analysis="occupancy",
            title="Occupancy",
            summary="32 of 64 warps fit.",
            bars=(Bar(label="theoretical", ratio=0.5), Bar(label="achieved", ratio=0.4, ceiling_ratio=0.5)),
            charts=(chart,),
            tables=(table,),
        ),
        Answer(
            analysis="brand_new",
            title="A question nobody asked before",
            summary="All of `the vocabulary` is here.",
            findings=(
                Finding(text="This holds it up.", weight=Weight.HIGH, remedy="Do less.", share_ratio=0.3),
                Finding(text="This is well.", weight=Weight.GOOD),
            ),
            bars=(Bar(label="part", ratio=0.25, words="25 of 100"),),
            tables=(replace(table, title="Few rows", rows=((None, 0.5), ("two", None)), current_row=None),),
            marks=(mark,),
            missing=(Missing(what="bytes from DRAM", metrics=("dram__bytes.sum",)),),
            movements=(movement,),
        ),
        Answer(
            analysis="silent",
            title="Nothing known",
            summary="Unknown: nothing was collected.",
            is_known=False,
            missing=(Missing(what="all of it", why="nobody counted"),),
        ),
    )


def make_answered() -> KernelReport:
    """The advised kernel, with a roofline and answers."""
    machine = make_machine()
    whole = make_roofline(machine)
    roofline = KernelRoofline(machine=machine, whole=whole, launches=(whole,))
    return replace(make_advised(), analyses=KernelAnalyses(roofline=roofline, answers=make_answers()))


def make_page_example() -> Report:
    """Several kernels, the first with everything, and problems."""
    plain = make_advice_example()
    return build_report(make_answered(), *plain.kernels[1:], problems=plain.problems)


def make_hostile() -> Report:
    """A report in which names, files, sources, remarks, advice and problems are markup."""
    file = f"/src/{MARKUP}.cu"
    kernel = build_kernel(
        "k.cu:1   LDG.E R2, [R4.64]   ; long_scoreboard=90/80\nk.cu:2   FFMA R2, R2, R3, R6   ; wait=20/10",
        name=f"evil<{MARKUP}>(int)",
        mangled_name=MARKUP,
        profile_path=f"/home/somebody/{MARKUP.replace('/', '_')}.ncu-rep",
        rules=[RuleNote(rule=MARKUP, kind="warning", text=MARKUP, speedup_percent=10.0, speedup_is_global=True)],
        sources={"k.cu": f"{MARKUP}\n{MARKUP}\n"},
        blame="1 <- 0 long_scoreboard R2 8c 1i",
        advice=f"""
            loop_unrolling code 1.5x 1.3-1.7
                title: {MARKUP}
                hint: {MARKUP}
                caveat: {MARKUP}
                reason: {MARKUP}
                region line 0
                    here: {MARKUP}
                    0 long_scoreboard # {MARKUP}
            silence fast_math not_matched: {MARKUP}
        """,
    )
    columns = replace(
        kernel.instructions,
        texts=(MARKUP, "\ud800 half a character"),
        chains=tuple(tuple(replace(frame, file=file) for frame in chain) for chain in kernel.instructions.chains),
    )
    lines = tuple(replace(row, file=file) for row in kernel.lines)
    answers = tuple(replace(answer, title=MARKUP, summary=MARKUP) for answer in make_answers())
    machine = make_machine(name=MARKUP)
    whole = make_roofline(machine)
    roofline = KernelRoofline(machine=machine, whole=whole, launches=(whole,))
    launches = tuple(
        replace(launch, nvtx_ranges=(MARKUP,), call_stack=(MARKUP,), failure=None) for launch in kernel.launches
    )
    kernel = replace(
        kernel,
        instructions=columns,
        lines=lines,
        launches=launches,
        embedded_sources={file: f"{MARKUP}\n{MARKUP}\n"},
        device=replace(kernel.device, name=MARKUP),
        analyses=KernelAnalyses(roofline=roofline, answers=answers),
    )
    problem = Problem(
        severity=ProblemSeverity.ERROR, message=MARKUP, path=Path("/home/somebody") / "x.ncu-rep", remedy=MARKUP
    )
    return build_report(kernel, problems=[problem])


def make_before_and_after() -> tuple[Report, Report]:
    """A kernel that became twice as fast after its loads waited less, one that is gone and one that is new."""

    def measure(duration_ns: float, samples: int) -> KernelReport:
        return build_kernel(
            f"k.cu:1   LDG.E R2, [R4.64]   ; long_scoreboard={samples}\nk.cu:2   FFMA R2, R2, R{samples % 7}, R6   ; wait=20",
            name="step(float*)",
            durations_ns=(duration_ns, duration_ns * 1.01, duration_ns * 0.99),
        )

    gone = build_kernel(name="gone", durations_ns=(1000.0,))
    new = build_kernel(name="new", durations_ns=(1000.0,))
    return build_report(measure(2e6, 180), gone), build_report(measure(1e6, 80), new)
