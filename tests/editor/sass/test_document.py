"""The text of SASS documents: what stands where, and that nothing in a profile can break it."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.library import SassDocument, SectionKind
from gpa_lsp.report.model import FunctionRole
from tests.conftest import examples
from tests.editor.sass.documents import (
    LOOP,
    SOURCES,
    URI,
    check_document,
    check_sections,
    find_line,
    show_report,
    write_document,
    write_report,
)
from tests.report_builder import OUTSIDE, build_kernel

BRANCHES = "\n".join(
    f"    B-:R-:W-:-:S0{1 + number % 5}  @P0 BRA {16 * target:#x}"
    for number, target in enumerate((4, 0, 6, 2, 9, 5, 1, 8))
)


def show_code(document: SassDocument) -> str:
    """Text below the header."""
    start = document.sections[0].first_line - 1
    return "\n".join(line.rstrip() for line in document.lines[start:])


def test_a_loop() -> None:
    document = write_document(LOOP)
    check_document(document)
    assert (
        show_code(document)
        == """\
kernel:           // kernel · 8 instructions · 32 registers · 100 % · long_scoreboard
.L_0000:          // 2.0 %
                  // k.cu:3 | int i = threadIdx.x;
/*0000*/  2.0 %   MOV R0, RZ                       //     3
/*0010*/          S2R R3, SR_TID.X                 //     3                   sets SB0 · stall 2

// loop k.cu:4-5 · depth 1 · 98 % · long_scoreboard
.L_0020:          // 98 % · long_scoreboard · back from .L_0020
                  // m.h:7 in k.cu:5 | return x[i]; // größer
/*0020*/  4.0 % │ LDG.E R2, [R4.64]                // m.h:7                   waits SB0 · sets SB2 · stall 4
                  // k.cu:5 | sum += at(x, i);
/*0030*/   84 % │ FFMA R0, R2, R3, R0              //     5  long_scoreboard  waits SB2 · stall 4 · yield
                  // k.cu:4 | while (more)
/*0040*/   10 % │ ISETP.LT.AND P0, PT, R6, R8, PT  //     4  wait             stall 12
/*0050*/        │ @P0 BRA 0x20                     //     4                   ↑ .L_0020 · stall 5
.L_0060:
                  // k.cu:6 | x[i] = sum;
/*0060*/          STG.E [R4.64], R0                //     6                   read sets SB1
                  // k.cu:7 | }
/*0070*/          EXIT                             //     7                   stall 5
"""
    )


def test_the_header_says_which_measurement_it_is() -> None:
    document = write_document(LOOP)
    header = document.lines[: document.sections[0].first_line - 2]
    assert all(line.startswith("//") for line in header)
    assert header[0].startswith("// kernel · 1.00 ms") and "80 % long_scoreboard" in header[0]
    assert header[1].startswith("// stalled on data from global memory (80 %)")
    facts = " ".join(line.removeprefix("//").strip() for line in header)
    assert "100 samples · grid 64 · block 128 · 32 registers per thread · Test GPU · compute capability 8.6" in facts
    assert header[-2].startswith("// profile.ncu-rep · measured 1970-01-0")
    column = document.instruction_column
    assert (header[-1].split()[:3], header[-1][column : column + 11]) == (["//", "addr", "share"], "instruction")


def test_long_headers_are_wrapped() -> None:
    report = replace(write_report(LOOP), name=f"void kernel<{', '.join(['float'] * 60)}>(float*)")
    header = build_document(URI, show_report(report)).lines[:8]
    assert all(len(line) <= 80 for line in header)
    assert sum("float, float" in line for line in header) > 2


def test_every_function_begins_with_its_label() -> None:
    document = write_document("""
        CALL.REL.NOINC `(helper)      # k.cu:3 | wait=5
        EXIT                          # k.cu:4
    [helper]
        IADD3 R4, R4, 0x1, RZ         # m.h:7 | wait=15
        RET.REL.NODEC R20 0x0         # m.h:8
    """)
    check_document(document)
    functions = [section for section in document.sections if section.kind is SectionKind.FUNCTION]
    assert [(section.name, section.detail) for section in functions] == [
        ("kernel", "25 % · wait"),
        ("helper", "75 % · wait"),
    ]
    heading = document.lines[functions[1].first_line - 1]
    assert re.sub(" +", " ", heading) == "helper: // device function · 2 instructions · 32 registers · 75 % · wait"
    assert document.lines[functions[1].first_line - 2] == ""


def test_local_functions_have_labels_of_their_own() -> None:
    document = write_document("""
        CALL.REL.NOINC $kernel$half
        EXIT
    $kernel$half:
        FMUL R4, R4, 0.5
        RET.REL.NODEC R20 0x0
    """)
    check_document(document)
    functions = [section for section in document.sections if section.kind is SectionKind.FUNCTION]
    assert [(section.name, section.first_row) for section in functions] == [("kernel", 0), ("half", 2)]
    assert "// local function" in document.lines[functions[1].first_line - 1]


def test_nested_loops_nest() -> None:
    document = write_document("""
        MOV R0, RZ
    outer:
        MOV R1, RZ
    inner:
        IADD3 R1, R1, 0x1, RZ       # - | wait=9
        @P0 BRA inner
        IADD3 R0, R0, 0x1, RZ       # - | wait=1
        @P1 BRA outer
        EXIT
    """)
    check_document(document)
    loops = [section for section in document.sections if section.kind is SectionKind.LOOP]
    assert [(loop.name, loop.detail) for loop in loops] == [
        ("loop .L_0010", "100 % · wait"), ("loop .L_0020", "90 % · wait"),
    ]  # fmt: skip
    assert loops[0].first_line < loops[1].first_line < loops[1].last_line < loops[0].last_line
    bars = [line[: document.instruction_column].count("│") for line in document.lines if line.startswith("/*")]
    assert bars == [0, 1, 2, 2, 1, 1, 0]


def test_what_a_loop_leaves_behind_the_code_is_not_in_its_section() -> None:
    document = write_document("""
    loop:
        @P0 BRA rare
    back:
        IADD3 R0, R0, 0x1, RZ
        @P1 BRA loop
        MOV R1, RZ
        MOV R2, RZ
        MOV R3, RZ
        MOV R4, RZ
        EXIT
    rare:
        IADD3 R0, R0, 0x2, RZ
        BRA back
    """)
    check_document(document)
    (loop,) = (section for section in document.sections if section.kind is SectionKind.LOOP)
    assert document.row_of_line[loop.last_line - 1] == 2
    assert document.lines[find_line(document, "0x2, RZ") - 1].count("│") == 1


def test_a_short_gap_belongs_to_the_loop() -> None:
    document = write_document("""
    loop:
        IADD3 R0, R0, 0x1, RZ
        @!P0 BRA on
        EXIT
    on:
        IADD3 R0, R0, 0x2, RZ
        @P1 BRA loop
        EXIT
    """)
    check_document(document)
    (loop,) = (section for section in document.sections if section.kind is SectionKind.LOOP)
    assert (loop.first_row, document.row_of_line[loop.last_line - 1]) == (0, 4)


def test_a_loop_entered_in_its_middle_begins_with_its_first_instruction() -> None:
    document = write_document("""
        BRA middle
    top:
        IADD3 R0, R0, 0x1, RZ
    middle:
        ISETP.LT.AND P0, PT, R0, R8, PT
        @P0 BRA top
        EXIT
    """)
    check_document(document)
    heading = document.lines[find_line(document, "// loop") - 1]
    assert heading == "// loop .L_0020 · depth 1 · entered at .L_0020"


def test_code_that_nothing_leads_to_says_so() -> None:
    document = write_document("EXIT\nend:\nBRA end\nNOP")
    assert document.lines[find_line(document, ".L_0010:") - 1].endswith("  // nothing leads here")


def test_lines_are_quoted_once_per_screen() -> None:
    mixed = "\n".join(f"IADD3 R0, R0, {number:#x}, RZ  # k.cu:{3 + number % 2}" for number in range(80))
    document = write_document(mixed)
    quotes = [number for number, line in enumerate(document.lines) if "k.cu:3 |" in line]
    assert len(quotes) == 3
    assert all(line.rsplit("//")[-1].strip() in ("3", "4") for line in document.lines if line.startswith("/*"))


def test_quotes_without_a_source_are_places() -> None:
    document = write_document(LOOP, {"k.cu": None})
    assert document.lines[find_line(document, "m.h:7") - 1].strip() == "// m.h:7 in k.cu:5"


def test_long_chains_and_lines_are_cut() -> None:
    chain = " < ".join(f"a_header_with_quite_a_name_{depth}.h:{depth}" for depth in range(1, 9))
    document = write_document(f"EXIT  # {chain}", {"a_header_with_quite_a_name_1.h": "x" * 900})
    quote = document.lines[find_line(document, "xxx") - 1]
    assert len(quote) <= 145
    assert " in …" in quote and quote.endswith("…")


def test_few_samples_are_a_dot() -> None:
    document = write_document("MOV R0, RZ  # - | wait=1\nMOV R1, RZ  # - | wait=9999\nEXIT")
    shares = [line[: document.instruction_column].split()[1:] for line in document.lines if line.startswith("/*")]
    assert shares == [["·"], [">99.9", "%"], []]


def test_foreign_code_keeps_the_columns() -> None:
    kernel = build_kernel(f"k.cu:1  EXIT  ; wait=9\n[{OUTSIDE}]\n-  ; wait=3")
    columns = kernel.instructions
    moved = replace(columns, pc_offsets=np.array([0, 0x7F00_0000_1230], dtype=np.int64))
    document = build_document(URI, show_report(replace(kernel, instructions=moved)))
    check_document(document)
    line = document.lines[int(document.line_of_row[1]) - 1]
    assert re.sub(" +", " ", line).strip() == "25 % // wait code outside this module, at 0x7f0000001230"
    assert FunctionRole.OUTSIDE_MODULE in {row.role for row in kernel.functions}
    assert any("// outside this module" in line for line in document.lines)


def test_no_instructions() -> None:
    document = build_document(URI, show_report(build_kernel("")))
    check_document(document)
    assert document.lines[-2] == "// no instructions: the profile holds no code of this kernel"
    assert document.sections == ()


def test_a_report_without_code_blame_samples_lines_and_scheduling() -> None:
    report = write_report("MOV R0, RZ\nloop:\n@P0 BRA loop\nEXIT")
    bare = replace(report.instructions, has_control=np.zeros(3, dtype=np.bool_))
    document = build_document(URI, show_report(replace(report, code=None, blame=None, instructions=bare)))
    check_document(document)
    rows = [line for line in document.lines if line.startswith("/*")]
    assert rows == ["/*0000*/   MOV R0, RZ", "/*0010*/ │ @P0 BRA 0x10", "/*0020*/   EXIT"]
    assert [section.kind for section in document.sections] == [SectionKind.FUNCTION]


def test_nothing_in_a_profile_breaks_a_line() -> None:
    evil = "a\nb\x00c\u2028d\ud800e\u202e\tf"
    report = write_report("MOV R0, RZ   # k.cu:1 | wait=3\nEXIT  # k.cu:2")
    columns = report.instructions
    columns = replace(columns, reasons=(evil,), texts=("CALL `(a\u2028b)", "EXIT"))
    functions = tuple(replace(row, name=evil) for row in report.functions)
    broken = replace(report, name=evil, instructions=columns, functions=functions, measured_unix_s=1 << 60)
    document = build_document(URI, show_report(broken, {"k.cu": "x\x0by\u2029z\nq\x1b[31m"}))
    assert not any(re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202e\ud800-\udfff]", line) for line in document.lines)
    assert document.text.encode() and document.text.split("\n") == list(document.lines)
    assert document.lines[int(document.line_of_row[0]) - 1][document.instruction_column :].startswith("CALL `(a�b)")


@examples(30)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.booleans(), st.integers(0, 30)), min_size=1, max_size=16),
    st.integers(0, 3),
)
def test_any_code_makes_a_sound_document(rows: list[tuple[int, bool, int]], lines: int) -> None:
    text = "\n".join(
        f"{'@P0 ' * guarded}BRA {16 * (target % len(rows)):#x}  # k.cu:{1 + samples % (lines + 1)} | wait={samples}"
        if target < 8
        else f"IADD3 R0, R0, {target:#x}, RZ  # -"
        for target, guarded, samples in rows
    )
    check_document(write_document(text, SOURCES))


def test_a_deep_nest_of_loops() -> None:
    depth = 1000
    heads = "\n".join(f"l{number}:\nIADD3 R{number % 99}, R0, 0x1, RZ" for number in range(depth))
    backs = "\n".join(f"@P0 BRA l{number}" for number in reversed(range(depth)))
    document = write_document(f"{heads}\n{backs}\nEXIT")
    loops = [section for section in document.sections if section.kind is SectionKind.LOOP]
    assert len(loops) == depth
    assert loops[-1].last_line < loops[0].last_line
    check_sections(document)


@pytest.mark.parametrize("text", [BRANCHES])
def test_branches_name_their_blocks(text: str) -> None:
    document = write_document(f"{text}\nEXIT\nEXIT")
    check_document(document)
    labels = {section.name for section in document.sections if section.kind is SectionKind.BLOCK}
    targets = {name for line in document.lines for name in re.findall(r"[↑↓] (\.L_\w+)", line)}
    assert targets and targets <= labels
