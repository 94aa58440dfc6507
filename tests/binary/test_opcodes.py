"""The table of opcodes: that it is well formed, and that it covers what there is."""

from typing import Any, get_args

import pytest

from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import (
    Access,
    BarrierUse,
    Descriptor,
    MaskUse,
    MemorySpace,
    Pipe,
    Synchronisation,
    describe_mnemonic,
    list_pc_target_opcodes,
)
from gpa_lsp.code.binary.uses import expand_widths
from tests.binary.opcode_table import TABLE, find_unknown_opcodes
from tests.binary.seeds import find_fixture_cubins, read_fixture
from tests.binary.test_corpus_images import every_report, find_images
from tests.binary.together import disassemble_fixtures

RULE_FIELDS = {
    "pipe": [one.value for one in Pipe],
    "memory": [one.value for one in MemorySpace],
    "access": [one.value for one in Access],
    "flow": [one.name.lower() for one in Flow],
    "synchronises": [one.value for one in Synchronisation],
    "results": [0, 1, 2],
    "predicate_results": [0, 1, 2],
    "descriptor": get_args(Descriptor),
    "predicate_mask": get_args(MaskUse),
    "barrier": get_args(BarrierUse),
}


def test_entries_are_well_formed() -> None:
    for name, entry in TABLE.items():
        assert set(entry) <= {*RULE_FIELDS, "says", "widths", "rules", "relative"}, name
        says = entry["says"]
        assert says.endswith(".") and says[0].isupper() and len(says) < 150, name
        for part in (entry, *entry.get("rules", ())):
            for key, allowed in RULE_FIELDS.items():
                assert part.get(key, allowed[0]) in allowed, (name, key)
            widths = expand_widths(tuple(part.get("widths", ())), (), ["R2"] * 6)
            assert all(one in range(1, 17) for one in widths if isinstance(one, int)), name
        for rule in entry.get("rules", ()):
            assert set(rule) <= {*RULE_FIELDS, "with", "widths"}, name
            assert rule["with"], name


def test_every_rule_can_apply() -> None:
    """Earlier rules leave later ones the mnemonics that these are for."""
    rules = [(name, rule) for name, entry in TABLE.items() for rule in entry.get("rules", ())]
    for name, rule in rules:
        described = describe_mnemonic(".".join([name, *rule["with"]]))
        assert described.widths == tuple(rule.get("widths", TABLE[name].get("widths", ()))), (name, rule)


def test_jumps_and_memory_accesses_say_all_there_is() -> None:
    for name in TABLE:
        opcode = describe_mnemonic(name)
        assert opcode.is_known, name
        assert opcode.memory is not None or opcode.access is None or name.startswith("UTC"), name
        if opcode.access in (Access.STORE, Access.REDUCTION, Access.COPY, Access.PREFETCH):
            assert opcode.results == 0, name
        if opcode.descriptor is not None:
            assert opcode.memory in (MemorySpace.GLOBAL, MemorySpace.GENERIC), name


def test_modifiers_decide() -> None:
    assert describe_mnemonic("F2F.F64.F32").widths == (2, 1)
    assert describe_mnemonic("F2F.F32.F64").widths == (1, 2)
    assert describe_mnemonic("HMMA.16816.F32.BF16").widths == (4, 4, 2, 4)
    assert describe_mnemonic("HMMA.SP.16832.F16").widths == (2, 4, 4, 2)
    assert describe_mnemonic("BPT.TRAP").flow == Flow.TRAP
    assert describe_mnemonic("BPT.INT").flow == Flow.NONE
    assert describe_mnemonic("BMOV.32.CLEAR").barrier == "both"
    assert describe_mnemonic("CALL.REL.NOINC").has_pc_target
    assert not describe_mnemonic("CALL.ABS.NOINC").has_pc_target
    assert "WARPSYNC" in list_pc_target_opcodes()
    assert not describe_mnemonic("WARPSYNC.ALL").has_pc_target


def test_what_waits_for_more_than_its_operands() -> None:
    assert describe_mnemonic("BAR.SYNC.DEFER_BLOCKING").synchronises == Synchronisation.BLOCK
    assert describe_mnemonic("BAR.RED.POPC").synchronises == Synchronisation.BLOCK
    assert describe_mnemonic("BAR.ARV").synchronises is None
    assert describe_mnemonic("UCGABAR_WAIT").synchronises == Synchronisation.BLOCK
    assert describe_mnemonic("MEMBAR.SC.GPU").synchronises == Synchronisation.FENCE
    assert describe_mnemonic("WARPGROUP.ARRIVE").synchronises == Synchronisation.WARPGROUP
    assert describe_mnemonic("WARPSYNC").synchronises == Synchronisation.WARP
    assert describe_mnemonic("NANOSLEEP").synchronises == Synchronisation.SLEEP
    assert describe_mnemonic("DEPBAR.LE").synchronises is None


def test_an_opcode_that_is_not_in_the_table() -> None:
    opcode = describe_mnemonic("FROB.E.64")
    assert (opcode.name, opcode.is_known, opcode.results, opcode.description) == ("FROB", False, 1, "")


def test_the_table_is_large_enough_to_be_whole() -> None:
    assert len(TABLE) > 290


@pytest.mark.oracle
def test_every_opcode_of_the_fixtures_is_known() -> None:
    for path in find_fixture_cubins():
        functions = disassemble_fixtures()[read_fixture(path).sha256]
        assert any(map(len, functions.values())), path
        assert {find_unknown_opcodes(instructions) for instructions in functions.values()} == {()}, path


@pytest.mark.oracle
@pytest.mark.corpus
@every_report
def test_every_opcode_of_the_corpus_is_known(report: Any) -> None:
    for cubin in find_images(report):
        for instructions in disassemble(cubin, cubin.functions).values():
            assert len(instructions) > 0
            assert find_unknown_opcodes(instructions) == ()
