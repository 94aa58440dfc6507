"""One of everything the analyses can say, with numbers that go together: 1 FLOP per byte of DRAM, at 53 % of its bandwidth."""

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Chart,
    ChartKind,
    Column,
    Finding,
    LineMark,
    Missing,
    Series,
    Table,
    Weight,
)
from gpa_lsp.diagnosis.analyses.model import (
    KernelAnalyses,
    KernelRoofline,
    OperationCount,
    Point,
    Roof,
    Roofline,
    Traffic,
)
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.gpu.device.model import (
    Bandwidth,
    ClockBasis,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)

MACHINE = Machine(
    name="a GPU",
    compute_capability=(8, 0),
    sm_count=108,
    clocks=Clocks(basis=ClockBasis.MEASURED, sm_hz=1.0e9, l2_hz=None, dram_hz=1.5e9, source="counters"),
    peaks=(
        Peak(
            kind=OperationKind.FP32,
            ops_per_cycle=13824,
            ops_per_s=1.3824e13,
            origin=RoofOrigin.COUNTERS,
            source="sm__sass_…",
        ),
    ),
    bandwidths=(
        Bandwidth(
            level=MemoryLevel.DRAM,
            bytes_per_cycle=1280,
            clock_hz=1.5e9,
            bytes_per_s=1.92e12,
            origin=RoofOrigin.DEVICE,
            source="bus",
            is_certain=False,
        ),
    ),
    issue_per_cycle=432,
    doubts=("one",),
)
ROOFLINE = Roofline(
    launch_index=3,
    duration_s=1e-3,
    operations=(OperationCount(kind=OperationKind.FP32, operations=1e9, source="ffma"),),
    traffic=(Traffic(level=MemoryLevel.DRAM, bytes=1e9, source="dram", transactions=3e7),),
    warp_instructions=5e7,
    roofs=(Roof(name="DRAM bandwidth", kind=None, level=MemoryLevel.DRAM, limit_per_s=1.9e12, achieved_per_s=1e12),),
    points=(
        Point(
            kind=OperationKind.FP32,
            level=MemoryLevel.DRAM,
            intensity=1.0,
            achieved_ops_per_s=1e12,
            attainable_ops_per_s=1.9e12,
            is_memory_side=True,
        ),
    ),
    instruction_points=(),
    dominant=OperationKind.FP32,
    missing=(Missing(what="bytes from L2", metrics=("lts__t_sectors.sum",)),),
)
ANSWER = Answer(
    analysis="occupancy",
    title="Occupancy",
    summary="Half.",
    findings=(Finding(text="one", weight=Weight.HIGH, remedy="two", share_ratio=0.5),),
    bars=(Bar(label="theoretical", ratio=0.5),),
    tables=(
        Table(
            title="t",
            columns=(Column(name="a"), Column(name="b", quantity=Quantity.WARPS)),
            rows=(("x", 3), (None, 1.5)),
            current_row=1,
        ),
    ),
    charts=(
        Chart(
            title="c",
            kind=ChartKind.STEPS,
            x_label="x",
            y_label="y",
            y_quantity=Quantity.RATIO,
            series=(Series(label="s", xs=(1.0, 2.0), ys=(0.5, 1.0)),),
            current_x=1.0,
        ),
    ),
    marks=(
        LineMark(
            measure="excess sectors",
            value=3.0,
            quantity=Quantity.COUNT,
            share_ratio=None,
            text="…",
            file="a.cu",
            line=3,
            function="f",
            pc_offset=16,
        ),
    ),
    missing=(Missing(what="TLB misses", why="no public counter"),),
)
ANALYSES = KernelAnalyses(
    roofline=KernelRoofline(machine=MACHINE, whole=ROOFLINE, launches=(ROOFLINE,), left_out=2), answers=(ANSWER,)
)
