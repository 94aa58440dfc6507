"""The words for opcodes that people read."""

from collections import Counter

import pytest
from msgspec.structs import fields

from gpa_lsp.code.binary.opcodes import describe_special_register, describe_words, read_table
from gpa_lsp.gpu.arch.sections import Throughput
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.binary.opcode_table import TABLE


def test_every_opcode_has_a_sentence_and_one_kind() -> None:
    kinds = Counter(opcode for kind in read_table()["kinds"].values() for opcode in kind["opcodes"])
    assert set(kinds) == set(TABLE)
    assert [opcode for opcode, times in kinds.items() if times > 1] == []
    for opcode in TABLE:
        words = describe_words(opcode)
        assert words.sentence.endswith(".") and words.kind, opcode


def test_vocabularies_are_of_known_opcodes_and_words_are_words() -> None:
    for name, vocabulary in read_table()["modifiers"].items():
        assert set(vocabulary["opcodes"]) <= set(TABLE), name
        assert len(vocabulary["opcodes"]) == len(set(vocabulary["opcodes"])), name
        for modifier, words in vocabulary["words"].items():
            assert words and not words.endswith(".") and words.strip() == words, (name, modifier)


def test_kinds_name_stall_reasons_as_the_profiler_does() -> None:
    named = set()
    for name, kind in read_table()["kinds"].items():
        assert not kind["title"].endswith("."), name
        assert not kind["waits"] or kind["waits"].endswith("."), name
        words = kind["waits"].replace("(", " ").replace(")", " ").replace(",", " ").replace(";", " ").split()
        reasons = {word for word in words if "_" in word}
        assert reasons <= set(STALL_REASONS), name
        named |= reasons
    assert {"long_scoreboard", "short_scoreboard", "math_pipe_throttle", "lg_throttle"} <= named


@pytest.mark.parametrize(
    ("mnemonic", "modifiers"),
    [
        ("LDG.E.64.CONSTANT", ["E", "64", "CONSTANT"]),
        ("IMAD.WIDE.U32", ["WIDE", "U32"]),
        ("ISETP.GE.U32.AND.EX", ["GE", "U32", "AND", "EX"]),
        ("HMMA.16816.F32.BF16", ["16816", "F32", "BF16"]),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", ["E", "ADD", "F32", "FTZ", "RN", "STRONG", "GPU"]),
        ("MUFU.RCP64H", ["RCP64H"]),
        ("UTMALDG.2D.MULTICAST", ["2D", "MULTICAST"]),
        ("BAR.SYNC.DEFER_BLOCKING", ["SYNC", "DEFER_BLOCKING"]),
        ("LDG.FROB.E", ["E"]),
    ],
)
def test_modifiers_are_explained_in_their_order(mnemonic: str, modifiers: list[str]) -> None:
    assert [modifier for modifier, _ in describe_words(mnemonic).modifiers] == modifiers


def test_modifiers_mean_what_the_opcode_makes_of_them() -> None:
    def explain(mnemonic: str) -> str:
        return describe_words(mnemonic).modifiers[-1][1]

    assert explain("IMAD.HI") == "the upper half of the product"
    assert explain("LEA.HI") == "the upper half of a 64-bit address"
    assert explain("SHF.R.HI") == "keeps the upper half"
    assert explain("ISETP.AND") == "and another predicate holds"
    assert explain("ATOMG.AND") == "and"


def test_rates_are_figures_of_the_throughput_table() -> None:
    rates = {kind["rate"] for kind in read_table()["kinds"].values() if "rate" in kind}
    assert rates <= {one.name for one in fields(Throughput)} and len(rates) > 8
    assert describe_words("FFMA").rate == "fp32_instructions_per_cycle"
    assert describe_words("BRA").rate is None


def test_special_registers_say_what_they_hold() -> None:
    assert describe_special_register("SR_CTAID.Y") == "index of the block in the grid, y"
    assert (describe_special_register("SR_LANEID"), describe_special_register("SR_FROB.X")) == (
        "number of the thread in its warp",
        "",
    )


def test_unknown_opcodes_have_no_words() -> None:
    words = describe_words("FROB.E.64")
    assert (words.sentence, words.kind, words.pipe, words.waits, words.modifiers) == ("", "", "", "", ())
