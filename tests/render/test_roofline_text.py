"""The roofline in two lines and bars."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import KernelAdvice, UnitUse
from gpa_lsp.diagnosis.analyses.answers import Bar, Missing
from gpa_lsp.diagnosis.analyses.model import BusyUnit, KernelRoofline
from gpa_lsp.document.answer_view import build_bars
from gpa_lsp.document.layout import join_lines, read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.roofline_text import describe_roofline, describe_roofs, list_bars
from gpa_lsp.document.roofline_view import build_rooflines
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.editor.kernel_page import build_roofline
from gpa_lsp.foundation.prose import say
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.render.charts.roofline_examples import make_machine, make_roofline, place_many
from tests.report_builder import build_report

FP32, DRAM, L2 = OperationKind.FP32, MemoryLevel.DRAM, MemoryLevel.L2


def make(**options: object) -> KernelRoofline:
    machine = make_machine()
    line = make_roofline(machine, **options)  # type: ignore[arg-type]
    return KernelRoofline(machine=machine, whole=line, launches=(line,))


def test_two_lines() -> None:
    """0.8 of 1 TB/s, of which 0.85 can be sustained: 0.85 / 0.8 = 1.0625 times the speed is left."""
    assert describe_roofline(make()) == (
        "DRAM bandwidth at 80 % (practical maximum 85 %); FP32 peak 3.8 %",
        "FP32 1.20 TFLOP/s at 1.50 FLOP/B of DRAM; left of the ridge point at 32.0 FLOP/B; headroom 1.06×; "
        "ceilings at the clocks it ran at",
    )


def test_integers_have_their_own_units() -> None:
    lines = " ".join(describe_roofline(make(rates={OperationKind.INT32: 8e12}, traffic={DRAM: 0.1e12})))
    assert "INT32 8.00 TIOP/s at 80.0 IOP/B of DRAM; right of the ridge point at 16.0 IOP/B" in lines
    assert "FLOP" not in lines


def test_no_headroom_above_a_roof() -> None:
    assert "no headroom with the same work" in describe_roofline(make(traffic={DRAM: 1.1e12}))[1]


def test_unknown_says_what_to_collect() -> None:
    missing = Missing(what="bytes of DRAM", metrics=("dram__bytes_read.sum", "dram__bytes_write.sum"), needs_all=True)
    found = make(rates={}, traffic={}, missing=[missing])
    assert describe_roofline(found) == (
        "how close the kernel is to its ceilings is unknown",
        "unknown: bytes of DRAM; add `--metrics dram__bytes_read.sum,dram__bytes_write.sum`",
    )
    assert list(write_markdown(build_roofline(found)))[-1].startswith("unknown:")
    nothing = replace(found, whole=None, launches=(), machine=replace(found.machine, doubts=("No clock is known.",)))
    assert describe_roofline(nothing)[1] == "No clock is known."


def test_an_amount_keeps_its_unit_in_80_columns() -> None:
    bar = Bar(label="floating-point operations", ratio=0.14, words=say("alone 1.08 trillion updates/s"))
    (row,) = join_lines(write_terminal([build_bars([bar])], 80)).splitlines()
    assert row.endswith("  alone 1.08 trillion updates/s")


def test_bars_stand_under_one_another() -> None:
    line = make().whole
    assert line is not None
    assert join_lines(write_terminal([build_bars(list_bars(line))])).splitlines() == [
        "  DRAM bandwidth  █████████▋│    80 %  800 GB/s of 1.00 TB/s",
        "  L2 bandwidth    ████           33 %  1.00 TB/s of 3.00 TB/s",
        "  L1 bandwidth    ██▍            20 %  2.00 TB/s of 10.0 TB/s",
        "  FP32 peak       ▌             3.8 %  1.20 TFLOP/s of 32.0 TFLOP/s",
    ]
    assert all(len(row) <= 56 for row in join_lines(write_terminal([build_bars(list_bars(line))], 56)).splitlines())


def test_the_busiest_unit_stands_first_where_it_is_nearer_than_any_ceiling() -> None:
    busiest = BusyUnit(name="L1 load/store requests", is_memory=True, share_ratio=0.95, ceiling_ratio=0.85)
    line = replace(make().launches[0], busiest=busiest)
    assert [bar.label for bar in list_bars(line, most=2)] == [busiest.name, "DRAM bandwidth"]
    assert [bar.label for bar in list_bars(replace(line, busiest=None), most=1)] == ["DRAM bandwidth"]


def test_markdown_for_a_hover() -> None:
    rows = list(write_markdown(build_roofline(make())))
    assert rows[0].startswith("**Roofline**: DRAM bandwidth at 80 %")
    assert rows[1:5:3] == ["", "```text"] and rows[-1] == "```"
    assert len(rows) == 10


def test_report_fits_a_narrow_terminal() -> None:
    lines = write_terminal(build_rooflines(build_report(*place_many(3)), PlaceNames()), 80, indent=0)
    assert max(len(read_plain(line)) for line in lines) <= 86  # numbers are never cut


def make_advice(**ratios: float) -> KernelAdvice:
    ceilings = {"DRAM": 0.85, "L2": 0.85, "L1": 0.97, "SM": 1.0}
    units = tuple(
        UnitUse(name=name, achieved_ratio=ratio, ceiling_ratio=ceilings[name]) for name, ratio in ratios.items()
    )
    return KernelAdvice(advice=(), silences=(), units=units)


def test_the_nearest_roof_comes_first() -> None:
    assert describe_roofs(make_advice(DRAM=0.412, L2=0.2, SM=0.31)) == (
        "DRAM at 41 % of its peak (practical maximum 85 %); the SMs' busiest unit 31 %, L2 20 %"
    )
    assert describe_roofs(make_advice(DRAM=0.3, SM=0.904)) == "the SMs' busiest unit at 90 % of its peak; DRAM 30 %"


def test_near_is_measured_against_what_is_sustained() -> None:
    """DRAM at 80 % of its peak is closer to its roof than L1 at 85 %."""
    assert describe_roofs(make_advice(DRAM=0.80, L1=0.85)).startswith("DRAM at 80 %")


def test_what_is_unknown_is_said_with_the_remedy() -> None:
    assert (
        describe_roofs(make_advice())
        == "how close the kernel is to its ceilings is unknown: collect `--section SpeedOfLight`"
    )
