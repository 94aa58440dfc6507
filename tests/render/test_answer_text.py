"""Answers as text and as Markdown: whatever an analysis says is said in both."""

import pytest
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
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.document import blocks
from gpa_lsp.document.answer_view import MOST_MARKS, MOST_ROWS, build_answer, build_answers
from gpa_lsp.document.layout import join_lines, read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.report_builder import build_kernel

KERNEL = build_kernel(name="saxpy")
PLACES = PlaceNames()


def make_mark(line: int | None, share: float | None = 0.5) -> LineMark:
    return LineMark(
        measure="excess sectors",
        value=4096,
        quantity=Quantity.COUNT,
        share_ratio=share,
        text="4.0 times the sectors it needs",
        file=None if line is None else "saxpy.cu",
        line=line,
        function="_Z5saxpy",
        pc_offset=0x40,
    )


FULL = Answer(
    analysis="memory_access",
    title="Memory access",
    summary="Half of the sectors are wasted.",
    findings=(
        Finding(text="Reads of a are strided.", weight=Weight.HIGH, remedy="Use `a[i]`.", share_ratio=0.412),
        Finding(text="Writes are coalesced.", weight=Weight.GOOD),
    ),
    bars=(Bar(label="L1 hit rate", ratio=0.25, ceiling_ratio=0.75, words="1 of 4"),),
    tables=(
        Table(
            title="By block size",
            columns=(
                Column(name="threads", quantity=Quantity.COUNT),
                Column(name="limit"),
                Column(name="occupancy", quantity=Quantity.RATIO),
            ),
            rows=((128, "registers", 0.5), (256, "blocks", None)),
            current_row=1,
            note="Without shared memory.",
        ),
    ),
    charts=(
        Chart(
            title="Warps",
            kind=ChartKind.STEPS,
            x_label="threads",
            y_label="warps",
            y_quantity=Quantity.WARPS,
            series=(Series(label="", xs=(32, 64), ys=(8, 16)),),
        ),
    ),
    marks=(make_mark(4), make_mark(None, None)),
    missing=(
        Missing(what="bytes from DRAM", metrics=("dram__bytes_read.sum", "dram__bytes_write.sum"), needs_all=True),
    ),
    movements=(
        Movement(
            kind=OperationKind.FP32,
            level=MemoryLevel.DRAM,
            from_intensity=0.5,
            from_ops_per_s=1e12,
            to_intensity=1.0,
            to_ops_per_s=2e12,
            label="lower precision",
        ),
    ),
)


def test_everything_is_in_the_text() -> None:
    assert join_lines(write_terminal([build_answer(FULL, KERNEL, PLACES)])).splitlines() == [
        "Memory access",
        "  Half of the sectors are wasted.",
        "  L1 hit rate  ███      │    25 %  1 of 4",
        "  ! 41 % of the kernel: Reads of a are strided.",
        "    → Use `a[i]`.",
        "  + Writes are coalesced.",
        "  By block size",
        "       threads  limit      occupancy",
        "           128  registers       50 %",
        "    →      256  blocks             –",
        "    Without shared memory.",
        "  lower precision: FP32 over DRAM from 1.00 TFLOP/s at 0.500 FLOP/B → 2.00 TFLOP/s at 1.00 FLOP/B",
        "  place          value  share  what",
        "  saxpy.cu:4     4,096   50 %  excess sectors: 4.0 times the sectors it needs",
        "  _Z5saxpy+0x40  4,096         excess sectors: 4.0 times the sectors it needs",
        "  unknown: bytes from DRAM; add `--metrics dram__bytes_read.sum,dram__bytes_write.sum`",
    ]


def test_everything_is_in_the_markdown() -> None:
    rows = list(write_markdown([build_answer(FULL, KERNEL, PLACES)]))
    assert rows[:3] == ["## Memory access", "", "Half of the sectors are wasted."]
    for row in (
        "L1 hit rate  ███      │    25 %  1 of 4",
        "- 41 % of the kernel: **Reads of a are strided.**",
        "  - Use `a[i]`.",
        "| threads | limit      | occupancy |",
        "| ------: | :--------- | --------: |",
        "| **256** | **blocks** |     **–** |",
        "| `saxpy.cu:4`    | 4,096 | **50 %** | excess sectors: 4.0 times the sectors it needs |",
        "- unknown: bytes from DRAM; add `--metrics dram__bytes_read.sum,dram__bytes_write.sum`",
    ):
        assert row in rows, row


def test_answers_in_their_order() -> None:
    other = Answer(analysis="b", title="Second", summary="Nothing is known.", is_known=False)
    kernel = replace(KERNEL, analyses=KernelAnalyses(roofline=None, answers=(FULL, other)))
    text = join_lines(write_terminal(build_answers(kernel, PLACES)))
    assert text.index("Memory access") < text.index("Second") < text.index("Nothing is known.")
    rows = list(write_markdown(build_answers(kernel, PLACES)))
    assert [row for row in rows if row.startswith("##")] == ["## Memory access", "## Second"]
    assert list(write_terminal(build_answers(KERNEL, PLACES))) == []
    assert list(write_markdown(build_answers(KERNEL, PLACES))) == []


def test_long_tables_are_counted_and_keep_the_kernels_row() -> None:
    table = Table(
        title="t",
        columns=(Column(name="n", quantity=Quantity.COUNT),),
        rows=tuple((n,) for n in range(100)),
        current_row=60,
    )
    for row, first in ((60, 55), (99, 90), (3, 0)):
        shown = blocks.Table(columns=(), rows=[()] * 100, current_row=row)
        assert list(shown.choose_rows(10)) == list(range(first, first + 10))
    answer = Answer(
        analysis="a", title="A", summary="", tables=(table,), marks=tuple(make_mark(n) for n in range(1, 31))
    )
    text = join_lines(write_terminal([build_answer(answer, KERNEL, PLACES)]))
    assert f"and {100 - MOST_ROWS} more" in text
    assert f"and {30 - MOST_MARKS} more" in text
    assert "→" in text
    assert "And 88 more." in list(write_markdown([build_answer(answer, KERNEL, PLACES)]))


def test_narrow_terminals_break_lines() -> None:
    lines = [read_plain(line) for line in write_terminal([build_answer(FULL, KERNEL, PLACES)], 60)]
    assert any(line.startswith("      ") or line.startswith("    GFLOP") for line in lines)
    assert max(len(line) for line in lines if "--metrics" not in line) <= 60


@pytest.mark.parametrize("hostile", ["a|b`c*d_[e](f)<g>", "```\n# heading\n<script>", "\x1b[2J"])
def test_hostile_text_stays_text_in_markdown(hostile: str) -> None:
    answer = Answer(
        analysis="a",
        title=hostile,
        summary=hostile,
        bars=(Bar(label=hostile, ratio=0.5, words=hostile),),
        tables=(Table(title=hostile, columns=(Column(name=hostile),), rows=((hostile,),), note=hostile),),
        missing=(Missing(what=hostile, why=hostile),),
    )
    rows = list(write_markdown([build_answer(answer, KERNEL, PLACES)]))
    assert rows.count("```text") == 1
    assert sum(row.startswith("```") for row in rows) == 2
    assert not any(row.startswith(("# ", "<script")) for row in rows)
    assert not any("\n" in row for row in rows)


def test_brief_answers_leave_the_evidence_out() -> None:
    text = join_lines(write_terminal([build_answer(FULL, KERNEL, PLACES, brief=True)]))
    assert "Reads of a are strided." in text
    assert "unknown: bytes from DRAM" in text
    for words in ("By block size", "saxpy.cu:4", "lower precision", "Warps"):
        assert words not in text
        assert words not in "\n".join(write_markdown([build_answer(FULL, KERNEL, PLACES, brief=True)]))
