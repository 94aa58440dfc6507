"""Latencies in words."""

import pytest

from gpa_lsp.editor.sass.instruction_hover import describe_latency, find_table
from gpa_lsp.gpu.arch.lookup import list_architectures
from tests.binary.opcode_table import TABLE


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
def test_hopper(mnemonic: str, writes: tuple[int, ...], words: str) -> None:
    table = find_table((9, 0))
    assert table is not None and describe_latency(table, mnemonic, writes) == words


def test_every_opcode_can_be_asked_of_every_architecture() -> None:
    for capability in list_architectures():
        table = find_table(capability)
        assert table is not None
        for opcode in TABLE:
            words = describe_latency(table, opcode, (4, 5, 260, 512, 768, 1024))
            assert "None" not in words and "  " not in words


def test_no_table_no_words() -> None:
    assert find_table(None) is None and find_table((99, 9)) is None
