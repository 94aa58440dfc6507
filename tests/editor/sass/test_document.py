"""The text of SASS documents: what stands where, and that nothing in a profile can break it."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.library import SectionKind
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


def test_long_headers_are_wrapped() -> None:
    report = replace(write_report(LOOP), name=f"void kernel<{', '.join(['float'] * 60)}>(float*)")
    header = build_document(URI, show_report(report)).lines[:8]
    assert all(len(line) <= 80 for line in header)
    assert sum("float, float" in line for line in header) > 2


def test_lines_are_quoted_once_per_screen() -> None:
    mixed = "\n".join(f"IADD3 R0, R0, {number:#x}, RZ  # k.cu:{3 + number % 2}" for number in range(80))
    document = write_document(mixed)
    quotes = [number for number, line in enumerate(document.lines) if "k.cu:3 |" in line]
    assert len(quotes) == 3
    assert all(line.rsplit("//")[-1].strip() in ("3", "4") for line in document.lines if line.startswith("/*"))


def test_long_chains_and_lines_are_cut() -> None:
    chain = " < ".join(f"a_header_with_quite_a_name_{depth}.h:{depth}" for depth in range(1, 9))
    document = write_document(f"EXIT  # {chain}", {"a_header_with_quite_a_name_1.h": "x" * 900})
    quote = document.lines[find_line(document, "xxx") - 1]
    assert len(quote) <= 145
    assert " in …" in quote and quote.endswith("…")


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
