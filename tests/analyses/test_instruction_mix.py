"""Classes and pipes of opcodes, and what is said of a kernel's mix."""

import tomllib
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.analyses import mix as mix_classes
from gpa_lsp.diagnosis.analyses import mix as mix_pipes
from gpa_lsp.diagnosis.analyses.mix import WorkClass, classify_mnemonic, find_pipe, list_pipes
from gpa_lsp.diagnosis.analyses.questions.instruction_mix import _GROUPS
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from tests.binary.opcode_table import TABLE

TABLES = sorted({find_architecture(one).name for one in list_architectures()})
WITHOUT_CLASS = {
    "NOP", "UNDECODED", "IPA", "ALD", "AST", "OUT", "AL2P", "PIXLD", "ISBERD", "ISBEWR", "LDTRAM", "TMEM", "SETCTAID",
}  # fmt: skip
"""Graphics, and what does nothing."""


def test_every_opcode_has_a_class():
    assert {name for name in TABLE if classify_mnemonic(name) is WorkClass.OTHER} == WITHOUT_CLASS


def test_entries_name_opcodes_that_there_are():
    named = {entry.partition(".")[0] for entry in mix_classes._read_entries()}
    assert named <= set(TABLE)
    piped = {entry.partition(".")[0] for group in mix_pipes._read_table().opcodes for entry in group.of}
    assert piped <= set(TABLE)


def test_no_entry_is_in_two_classes():
    lists = list(tomllib.loads(Path(mix_classes.__file__).with_name("work_classes.toml").read_text()).values())
    entries = [entry for one in lists for entry in one]
    assert len(entries) == len(set(entries))


def test_every_class_is_in_one_column_of_the_table_by_line():
    grouped = [one for _, members in _GROUPS for one in members]
    assert sorted(grouped) == sorted(WorkClass)


@pytest.mark.parametrize("architecture", TABLES)
def test_every_opcode_has_a_pipe_on_every_architecture(architecture):
    names = {pipe.name for pipe in list_pipes()}
    assert {find_pipe(name, architecture) for name in TABLE} <= names


def test_pipes_speak_of_architectures_that_there_are():
    for pipe in list_pipes():
        assert set(pipe.rates) <= set(TABLES)
        assert set(pipe.assumed) <= set(pipe.rates)
    groups = mix_pipes._read_table().opcodes
    assert {one for group in groups for one in group.architectures} <= set(TABLES)


@pytest.mark.parametrize("capability", list_architectures())
def test_rates_agree_with_the_architecture_tables(capability):
    architecture = find_architecture(capability)
    rates = {pipe.name: pipe.find_rate(architecture) for pipe in list_pipes()}
    partitions = architecture.sm.sub_partitions_per_sm.value
    throughput = architecture.throughput
    assert rates["fma"] == throughput.fp32_instructions_per_cycle.value * partitions
    assert rates["alu"] == throughput.int32_add_instructions_per_cycle.value * partitions
    assert rates["xu"] == throughput.mufu_instructions_per_cycle.value * partitions


@pytest.mark.parametrize(
    ("capability", "rate"), [((7, 0), 1), ((8, 6), 1 / 16), ((9, 0), 2), ((10, 0), 2), ((10, 3), None)]
)
def test_doubles_have_a_rate_where_it_is_known(capability, rate):
    (pipe,) = (one for one in list_pipes() if one.name == "fp64")
    assert pipe.find_rate(find_architecture(capability)) == rate


@pytest.mark.parametrize(
    ("mnemonic", "architecture", "pipe"),
    [
        ("IADD3", "sm_80", "alu"),
        ("IMAD.WIDE.U32", "sm_80", "fma"),
        ("VIADD", "sm_90", "fma"),
        ("HFMA2.MMA", "sm_90", "tensor"),
        ("HFMA2", "sm_80", "fp16"),
        ("HFMA2", "sm_120", "fma"),
        ("I2F.F64", "sm_86", "fp64"),
        ("I2F.F64", "sm_80", "xu"),
        ("I2F.RP", "sm_86", "xu"),
        ("BRA", "sm_86", "branch"),
        ("BRA", "sm_70", "cbu"),
        ("BSYNC", "sm_90", "cbu"),
        ("ULDC", "sm_86", "uniform"),
        ("ULDC", "sm_90", "none"),
        ("CS2R", "sm_86", "none"),
        ("CS2R", "sm_90", "alu"),
        ("LDGDEPBAR", "sm_80", "lsu"),
        ("SHFL.BFLY", "sm_80", "lsu"),
        ("BAR.SYNC", "sm_80", "adu"),
        ("FCHK", "sm_90", "xu"),
        ("DSETP.GT.AND", "sm_70", "fp64"),
        ("FROB", "sm_80", "none"),
    ],
)
def test_pipes(mnemonic, architecture, pipe):
    assert find_pipe(mnemonic, architecture) == pipe
