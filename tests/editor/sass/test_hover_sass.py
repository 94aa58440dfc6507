"""Hovers in SASS documents, beyond ``scenes/sass_questions.md``: latencies of all architectures, and poor reports."""

import pytest
from lsprotocol.types import Hover, MarkupContent, Position
from msgspec.structs import replace

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hover import describe_hover, describe_latency, find_table, name_resources
from gpa_lsp.gpu.arch.lookup import list_architectures
from gpa_lsp.report.model import KernelReport
from tests.binary.opcode_table import TABLE
from tests.editor.sass.cursors import put_cursor
from tests.editor.sass.documents import LOOP, URI, open_document, show_report, write_report


def read_text(found: Hover) -> str:
    assert isinstance(found.contents, MarkupContent)
    return found.contents.value


def hover(report: KernelReport, marked: str) -> str:
    view = open_document(build_document(URI, show_report(report)))
    found = describe_hover(view, put_cursor(view, marked))
    assert found is not None
    return read_text(found)


@pytest.mark.parametrize("capability", [None, (99, 0)])
def test_without_a_known_architecture_there_are_no_latencies(capability: tuple[int, int] | None) -> None:
    report = write_report(LOOP)
    unknown = replace(report, device=replace(report.device, compute_capability=capability))
    assert "cycles for arithmetic" in hover(report, "FF^MA")
    assert "cycles for arithmetic" not in hover(unknown, "FF^MA")


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
