"""The table of opcodes: that it is well formed, and that it covers what there is."""

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from gpa_lsp.binary.disassembler import disassemble
from gpa_lsp.binary.model import Flow
from gpa_lsp.binary.opcodes import (
    Access,
    BarrierUse,
    Descriptor,
    MaskUse,
    MemorySpace,
    Pipe,
    Synchronisation,
    describe_mnemonic,
    find_opcode,
    list_opcodes,
    list_pc_target_opcodes,
)
from gpa_lsp.binary.sass import find_unknown_opcodes
from gpa_lsp.binary.widths import expand_widths
from tests.binary.seeds import find_fixture_cubins, read_fixture
from tests.binary.test_corpus_images import every_report, find_images

TABLE: dict[str, dict[str, Any]] = tomllib.loads(files("gpa_lsp.binary").joinpath("opcodes.toml").read_text("utf-8"))
RULE_FIELDS = {
    "pipe": [one.value for one in Pipe],
    "memory": [one.value for one in MemorySpace],
    "access": [one.value for one in Access],
    "flow": [one.name.lower() for one in Flow],
    "synchronises": [one.value for one in Synchronisation],
    "results": [0, 1, 2],
    "predicate_results": [0, 1, 2],
    "descriptor": [one.name.lower() for one in Descriptor],
    "predicate_mask": [one.value for one in MaskUse],
    "barrier": [one.value for one in BarrierUse],
}
every_opcode = pytest.mark.parametrize("name", TABLE)


@every_opcode
def test_an_entry_is_well_formed(name: str) -> None:
    entry = TABLE[name]
    assert set(entry) <= {*RULE_FIELDS, "says", "widths", "rules", "relative"}
    assert entry["says"].endswith(".") and entry["says"][0].isupper() and len(entry["says"]) < 150
    for part in (entry, *entry.get("rules", ())):
        for key, allowed in RULE_FIELDS.items():
            assert part.get(key, allowed[0]) in allowed
        widths = tuple(part.get("widths", ()))
        assert all(one in range(1, 17) for one in expand_widths(widths, (), ["R2"] * 6) if isinstance(one, int))
    for rule in entry.get("rules", ()):
        assert set(rule) <= {*RULE_FIELDS, "with", "widths"}
        assert rule["with"]


@every_opcode
def test_every_rule_can_apply(name: str) -> None:
    """No earlier rule takes the mnemonics a later one is for."""
    for rule in TABLE[name].get("rules", ()):
        described = describe_mnemonic(".".join([name, *rule["with"]]))
        assert described.widths == tuple(rule.get("widths", TABLE[name].get("widths", ()))), rule


@every_opcode
def test_a_jump_or_memory_access_says_all_there_is(name: str) -> None:
    opcode = find_opcode(name)
    assert opcode is not None
    assert opcode.memory is not None or opcode.access is None or name.startswith("UTC")
    if opcode.access in (Access.STORE, Access.REDUCTION, Access.COPY, Access.PREFETCH):
        assert opcode.results == 0
    if opcode.descriptor is not None:
        assert opcode.memory in (MemorySpace.GLOBAL, MemorySpace.GENERIC)


def test_modifiers_decide() -> None:
    assert describe_mnemonic("F2F.F64.F32").widths == (2, 1)
    assert describe_mnemonic("F2F.F32.F64").widths == (1, 2)
    assert describe_mnemonic("HMMA.16816.F32.BF16").widths == (4, 4, 2, 4)
    assert describe_mnemonic("HMMA.SP.16832.F16").widths == (2, 4, 4, 2)
    assert describe_mnemonic("BPT.TRAP").flow == Flow.TRAP
    assert describe_mnemonic("BPT.INT").flow == Flow.NONE
    assert describe_mnemonic("BMOV.32.CLEAR").barrier == BarrierUse.BOTH
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
    assert find_opcode("FROB") is None


def test_the_table_is_large_enough_to_be_whole() -> None:
    assert len(list_opcodes()) > 290


@pytest.mark.oracle
@pytest.mark.parametrize("folder", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_every_opcode_of_the_fixtures_is_known(folder: str) -> None:
    seen = 0
    for path in [one for one in find_fixture_cubins() if one.parent.name == folder][::6]:
        cubin = read_fixture(path)
        for instructions in disassemble(cubin, cubin.functions).values():
            assert find_unknown_opcodes(instructions) == ()
            seen += len(instructions)
    assert seen > 100


@pytest.mark.oracle
@pytest.mark.corpus
@every_report
def test_every_opcode_of_the_corpus_is_known(report: Any) -> None:
    for cubin in find_images(report):
        for instructions in disassemble(cubin, cubin.functions).values():
            assert len(instructions) > 0
            assert find_unknown_opcodes(instructions) == ()
