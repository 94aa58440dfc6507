"""Hovers in SASS documents."""

import re

import pytest
from lsprotocol.types import Hover, MarkupContent, Position
from msgspec.structs import replace

from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hover import describe_hover, describe_instruction
from gpa_lsp.editor.sass.instruction_hover import describe_latency, find_table, name_resources
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.gpu.arch.lookup import list_architectures
from tests.binary.opcode_table import TABLE
from tests.editor.sass.cursors import put_cursor, read_places
from tests.editor.sass.documents import LOOP, URI, open_document, show_report, write_document, write_report

CALLS = """
    B-:R-:W1:-:S01  LDG.E.128.CONSTANT R12, desc[UR4][R2.64]
    B-:R0:W1:-:S01  @!P3 LDG.E R16, [R2.64]
    B0:R-:W-:-:S01  IMAD.WIDE R2, R9, 0x4, R2
    B1:R-:W-:-:S01  FMUL R4, R12, 3.5
    B-:R-:W-:-:S05  CALL.REL.NOINC `(helper)
    B-:R-:W-:-:S01  FADD R5, R4, R8
    B-:R-:W-:-:S01  MOV R6, c[0x0][0x160]
    B-:R-:W-:-:S01  IADD3 R7, R6, 0x3f800000, RZ
    B-:R-:W-:-:S01  FROB.X R9, R7
    B-:R-:W3:-:S01  MUFU.RCP R10, R9
    B-:R-:W-:-:S05  EXIT
    [helper]
    B-:R-:W-:-:S01  IADD3 R4, R4, 0x1, RZ
    B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
"""
"""Everything that is not in the loop."""


@pytest.fixture(scope="module")
def loop() -> SassView:
    return open_document(write_document(LOOP))


@pytest.fixture(scope="module")
def calls() -> SassView:
    return open_document(write_document(CALLS))


def ask(view: SassView, marked: str) -> Hover | None:
    return describe_hover(view, put_cursor(view, marked))


def hover(view: SassView, marked: str) -> str:
    found = ask(view, marked)
    assert found is not None
    return read_text(found)


def read_text(found: Hover) -> str:
    assert isinstance(found.contents, MarkupContent)
    return found.contents.value


def place(view: SassView, marked: str) -> str:
    found = ask(view, marked)
    assert found is not None and found.range is not None
    return read_places(view, [found.range])[0]


def test_an_opcode_is_explained(loop: SassView) -> None:
    assert hover(loop, "FF^MA").split("  \n") == [
        "**FFMA** · 32-bit floating-point arithmetic · multiplication (FMA). Multiplies two 32-bit floats and adds a third, rounding once."
        " Its result is ready after a fixed number of cycles (wait); a busy pipe delays it (math_pipe_throttle).",
        "**84 % (±8.4)** of `kernel`: 84 of 100 samples, mostly long_scoreboard: waiting for data"
        " from global, local, texture or surface memory, through L1",
        "← stalled on `/*0020*/ LDG`: 80 %, 80 samples · long_scoreboard: data from global memory · R2, 4 cycles later",
        "warps stayed about 31.5 cycles at it each time · others waited about 2.25 cycles for it",
        "reads R0, R2–R3 · writes R0",
        "waits for SB2: set by `/*0020*/ LDG`",
        "result after 4–5 cycles for arithmetic, 5 for memory instructions",
        "for the scheduler: waits SB2 · stall 4 · yield",
        "k.cu:5 `sum += at(x, i);`",
    ]
    assert place(loop, "FF^MA") == "0030 FFMA R0, R2, R3, R0"


def test_a_hover_has_twelve_lines_at_most_and_its_page_the_rest(loop: SassView, calls: SassView) -> None:
    for view in (loop, calls):
        for line in range(1, len(view.document.lines) + 1):
            found = describe_hover(view, Position(line - 1, 10))
            assert found is None or len(read_text(found).splitlines()) <= 12
            assert (describe_instruction(view, line) is None) == (view.document.find_row(line) is None)
    line = next(number for number, text in enumerate(loop.document.lines, 1) if "FFMA" in text)
    page = describe_instruction(loop, line)
    assert page is not None and "| long_scoreboard |      80 |         70 |      80 % |" in page
    assert (
        "**stalled on**\n\n- `/*0020*/ LDG`: 80 %, 80 samples · " in page and "- for the scheduler: waits SB2" in page
    )


def test_links_open_the_rest(loop: SassView) -> None:
    rows = hover(replace(loop, has_links=True), "FFMA R0, ^R2").split("  \n")
    assert re.findall(r"\[(.*?)\]\(command:(\w+\.\w+)\?", rows[-1]) == [
        ("table", "gpaLsp.showLine"),
        ("page", "gpaLsp.showPage"),
        ("history", "gpaLsp.showHistory"),
    ]
    assert len(rows) <= 12 and rows[-2].startswith("k.cu:5") and defuse(rows[-1]) == rows[-1]


def test_stalls_have_their_causes_or_victims(loop: SassView) -> None:
    victims = hover(loop, "L^DG")
    assert "→ stalls `/*0030*/ FFMA`: 80 %, 80 samples · " in victims and "← stalled" not in victims
    assert "others waited about" in victims and "cycles for it" in victims
    assert victims.endswith("m.h:7 `return x[i]; // größer` in k.cu:5 `sum += at(x, i);`")


def test_partners_behind_scoreboards_are_named(loop: SassView, calls: SassView) -> None:
    assert "waits for SB2: set by `/*0020*/ LDG`" in hover(loop, "FF^MA")
    text = hover(loop, "L^DG")
    assert "waits for SB0: set by `/*0010*/ S2R`" in text
    assert "SB2 (its result): awaited by `/*0030*/ FFMA`" in text
    guarded = hover(calls, "@!P3 LD^G")
    assert "SB1 (its result): awaited by `/*0030*/ FMUL`, together with `/*0000*/ LDG`" in guarded
    assert "SB0 (its operands): awaited by `/*0020*/ IMAD`" in guarded
    assert "SB3 (its result): no instruction depends on it" in hover(calls, "MU^FU")


def test_modifiers_guards_and_what_the_text_hides(calls: SassView) -> None:
    text = hover(calls, "LD^G.E.128.CONSTANT")
    assert "`.E` 64-bit address · `.128` 128 bits per thread · `.CONSTANT` read-only while the kernel runs" in text
    assert "reads R2–R3, UR4–UR5 · writes R12–R15" in text
    assert "if P3 is false" in hover(calls, "@!P3 LD^G")
    assert "result behind a scoreboard: 33 cycles from L1, 215 from L2, 530 from DRAM, unloaded" in text


def test_operands_tell_where_they_come_from_and_go_to(loop: SassView, calls: SassView) -> None:
    assert hover(loop, "FFMA R0, ^R2").startswith("**R2** was written by `/*0020*/ LDG`  \n**FFMA**")
    assert place(loop, "FFMA R0, ^R2") == "0030 R2"
    both = hover(loop, "R3, ^R0\n".strip())
    assert both.startswith("**R0** was written by `/*0000*/ MOV`, `/*0030*/ FFMA`  \n")
    assert hover(loop, "LDG.E ^R2").startswith("**R2** is read by `/*0030*/ FFMA`  \n")
    assert hover(loop, "[R^4.64]").startswith("**R4–R5** holds what it held before the function, or nothing  \n")
    called = hover(calls, "FADD R5, ^R4")
    assert called.startswith(
        "**R4** was written by `/*0030*/ FMUL` (unless the function called at `/*0040*/ CALL` changes it)"
    )
    assert hover(calls, "LDG.E.128.CONSTANT R^12").startswith(
        "**R12–R15** is read by `/*0030*/ FMUL`, and perhaps by the function called at `/*0040*/ CALL`  \n"
    )
    assert hover(calls, "IADD3 ^R4").startswith("**R4** may be read where the function returns to  \n")


@pytest.mark.parametrize(
    ("marked", "start"),
    [
        ("BRA ^0x20", "goes to `/*0020*/ LDG`  \n"),
        ("S2R R3, ^SR", "**SR_TID.X**: index of the thread in its block, x  \n"),
    ],
)
def test_other_operands_of_the_loop(loop: SassView, marked: str, start: str) -> None:
    assert hover(loop, marked).startswith(start)


@pytest.mark.parametrize(
    ("marked", "start"),
    [
        ("MOV R6, c[^0x0]", "**c\\[0x0\\]\\[0x160\\]**: constant bank 0: sizes of grid"),
        ("R6, ^0x3f8", "0x3f800000 = 1065353216, or 1.0 as a 32-bit float  \n"),
        ("0x3f800000, ^RZ", "**RZ** is always zero  \n"),
        ("R12, ^3.5", "**FMUL**"),
        ("CALL.REL.NOINC ^`", "goes to `/*0000*/ IADD3`  \n"),
    ],
)
def test_other_operands(calls: SassView, marked: str, start: str) -> None:
    assert hover(calls, marked).startswith(start)


def test_unknown_opcodes_are_said_to_be_unknown(calls: SassView) -> None:
    text = hover(calls, "FR^OB")
    assert text.startswith("**FROB**. This version does not know this opcode; what it reads and writes is a guess.")
    assert "reads R7 · writes R9" in text


def test_lines_without_an_instruction_say_nothing(loop: SassView) -> None:
    assert ask(loop, "// lo^op") is None and ask(loop, "^// kernel") is None


def test_counters_are_shown_where_they_were_collected() -> None:
    view = open_document(
        write_document("""
        LDG.E R2, [R4.64]   # - | selected=4 | x=100 thread_executions=1600 thread_executions_true=800 global_sectors=3200 global_sectors_ideal=400
        LDS R3, [R4]        # - | selected=4 | x=100 thread_executions=3200 shared_wavefronts=200 shared_wavefronts_ideal=200
        EXIT                # - | selected=4
        """)
    )
    load = hover(view, "L^DG")
    assert "executed 100 times · 16 of 32 threads active · 8 with the guard · 32 sectors each (4 would do)" in load
    assert "executed 100 times · 32 of 32 threads active · 2 wavefronts each" in hover(view, "L^DS")
    assert "executed" not in hover(view, "EX^IT")


def test_reports_without_blame_code_device_or_text_have_less_to_say() -> None:
    report = write_report(LOOP)
    poor = replace(report, blame=None, code=None, device=replace(report.device, compute_capability=None))
    text = hover(open_document(build_document(URI, show_report(poor))), "FFMA R0, ^R2")
    assert text.startswith("**FFMA**") and "84 of 100 samples" in text
    assert "reads" not in text and "cycles for arithmetic" not in text and "set by" not in text
    odd = replace(report, device=replace(report.device, compute_capability=(99, 0)))
    assert "cycles for arithmetic" not in hover(open_document(build_document(URI, show_report(odd))), "FF^MA")


def test_code_that_could_not_be_disassembled_is_said_to_be_so() -> None:
    report = write_report(LOOP)
    columns = replace(report.instructions, texts=("",) * len(report.instructions))
    view = open_document(build_document(URI, show_report(replace(report, instructions=columns, code=None))))
    row = int(view.document.line_of_row[3]) - 1
    found = describe_hover(view, Position(row, 4))
    assert found is not None
    assert "there is no disassembly of this code" in read_text(found)
    assert "84 of 100 samples" in read_text(found)


def test_registers_are_named_in_stretches() -> None:
    assert name_resources([]) == ""
    assert name_resources([0, 1, 3, 255 + 1, 512]) == "R0–R1, R3, UR0, P0"


@pytest.mark.parametrize(
    ("mnemonic", "writes", "words"),
    [
        ("IADD3", (4,), "result after 4–5 cycles for arithmetic, 5 for memory instructions; the unit takes one every 2 cycles"),
        ("ISETP.GE.AND", (512,), "predicate after 4–5 cycles for arithmetic, 13 for a guard; the unit takes one every 2 cycles"),
        ("UIADD3", (260,), "uniform result after 4 cycles for uniform arithmetic, 6 for arithmetic, 9 for memory instructions"),
        ("LDG.E", (4,), "result behind a scoreboard: 34 cycles from L1, 265 from L2, 563 from DRAM, unloaded; the unit takes one every 4 cycles"),
        ("LDS", (4,), "result behind a scoreboard: 29 cycles from shared memory, unloaded; the unit takes one every 4 cycles"),
        ("MUFU.RCP", (4,), "result behind a scoreboard: 14 cycles at best; the unit takes one every 8 cycles"),
        ("STG.E", (), "the unit takes one every 4 cycles"),
        ("FFMA", (4,), "result after 4–5 cycles for arithmetic, 5 for memory instructions"),
        ("EXIT", (), ""),
        ("FROB", (4,), ""),
    ],
)  # fmt: skip
def test_latencies_of_hopper(mnemonic: str, writes: tuple[int, ...], words: str) -> None:
    table = find_table((9, 0))
    assert table is not None and describe_latency(table, mnemonic, writes) == words


def test_every_opcode_can_be_asked_of_every_architecture() -> None:
    for capability in list_architectures():
        table = find_table(capability)
        assert table is not None
        for opcode in TABLE:
            words = describe_latency(table, opcode, (4, 5, 260, 512, 768, 1024))
            assert "None" not in words and "  " not in words


def test_without_a_table_nothing_is_said_of_latencies() -> None:
    assert find_table(None) is None and find_table((99, 9)) is None
