"""Classes and pipes of opcodes, and what is said of a kernel's mix."""

import tomllib
from pathlib import Path

import msgspec.structs
import pytest

from gpa_lsp.diagnosis.analyses import mix as mix_classes
from gpa_lsp.diagnosis.analyses import mix as mix_pipes
from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.mix import WorkClass, classify_mnemonic, find_pipe, list_pipes
from gpa_lsp.diagnosis.analyses.questions.instruction_mix import _GROUPS, ANALYSIS
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from tests.binary.opcode_table import TABLE
from tests.rows.written import write_kernel

TABLES = sorted({find_architecture(one).name for one in list_architectures()})
WITHOUT_CLASS = {
    "NOP", "UNDECODED", "IPA", "ALD", "AST", "OUT", "AL2P", "PIXLD", "ISBERD", "ISBEWR", "LDTRAM", "TMEM", "SETCTAID",
}  # fmt: skip
"""Graphics, and what does nothing."""


def ask(text: str, **kernel) -> Answer:
    return ANALYSIS.answer(KernelFacts(write_kernel(text, **kernel), None, None))


def find_said(answer: Answer, words: str):
    return next((one for one in answer.findings if words in one.text), None)


def test_every_opcode_has_a_class():
    assert {name for name in TABLE if classify_mnemonic(name) is WorkClass.OTHER} == WITHOUT_CLASS


def test_entries_name_opcodes_that_there_are():
    named = {entry.partition(".")[0] for entry in mix_classes._read_entries()}
    assert named <= set(TABLE)
    piped = {entry.partition(".")[0] for group in mix_pipes._read_table()["opcodes"] for entry in group["of"]}
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
    groups = mix_pipes._read_table()["opcodes"]
    assert {one for group in groups for one in group.get("architectures", ())} <= set(TABLES)


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


BUSY = """
FADD R1, R1, R2       # k.cu:1 | selected=1 | x=900
FADD R1, R1, R3       # k.cu:1 | selected=1 | x=700
IADD3 R4, R4, R5, RZ  # k.cu:2 | selected=1 | x=400
"""


def test_a_counter_is_believed_before_executions():
    counted = {"sm__cycles_active.avg": 1000.0, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": 80.0}
    answer = ask(BUSY, metrics=counted, sm_count=1)
    assert (
        "Pipe FMA (32-bit floating point, integer products) is at 80 % of its rate while the SMs are active (counted)."
        in [one.text for one in answer.findings if one.weight is Weight.HIGH]
    )
    # 1,600 of 4 · 1,000.
    computed = ask(BUSY, metrics={"sm__cycles_active.avg": 1000.0}, sm_count=1)
    assert "No pipe is busy: the busiest, FMA" in computed.findings[0].text
    assert "40 % of its rate while the SMs are active (computed from executions)" in computed.findings[0].text


def test_sums_without_products_cannot_fuse():
    assert find_said(ask(BUSY), "not fused") is None


def test_routines_of_the_vendor_are_nobodys_to_fuse():
    text = """
    FADD R1, R1, R2    # k.cu:1 | selected=1 | x=10
    [__divide]
    FADD R1, R1, R2    # - | selected=1 | x=500
    FMUL R1, R1, R2    # - | selected=1 | x=500
    """
    assert find_said(ask(text), "not fused") is None
    assert find_said(ask(text.replace("# -", "# k.cu:9")), "not fused") is not None


def test_doubles_are_spoken_of_where_there_are_few_lanes_for_them():
    text = "DADD R2, R2, R4    # k.cu:1 | selected=1 | x=10"
    found = find_said(ask(text, compute_capability=(8, 6)), "64-bit floating point, and an SM")
    assert found is not None
    assert "one such warp instruction every 16 cycles" in found.text
    assert find_said(ask(text, compute_capability=(8, 0)), "64-bit floating point, and an SM") is None


def test_overhead_is_not_spoken_of_beside_tensor_instructions():
    text = """
    {work}                   # k.cu:1 | selected=1 | x=100
    IADD3 R4, R4, R5, RZ     # k.cu:2 | selected=1 | x=900
    """
    assert find_said(ask(text.format(work="FADD R1, R1, R2")), "the other 90 % are integers") is not None
    assert find_said(ask(text.format(work="HMMA.16816.F32 R4, R8, R12, R4")), "the other 90 %") is None


def test_an_architecture_without_a_table_has_classes_and_no_pipes():
    kernel = msgspec.structs.replace(write_kernel(BUSY), architecture=None)
    answer = ANALYSIS.answer(KernelFacts(kernel, None, None))
    assert {bar.label: bar.ratio for bar in answer.bars} == {"FP32": 0.8, "integer and logic": 0.2}
    assert "which pipes execute the instructions" in [one.what for one in answer.missing]
    assert not any(table.title == "Pipes" for table in answer.tables)


def test_what_no_disassembler_could_read_is_not_counted_as_anything():
    kernel = write_kernel(BUSY)
    (function,) = kernel.functions
    bare = msgspec.structs.replace(
        kernel, functions=(msgspec.structs.replace(function, instructions=None, graph=None),)
    )
    answer = ANALYSIS.answer(KernelFacts(bare, None, None))
    assert not answer.is_known
    assert [one.why for one in answer.missing if one.why] == ["the code could not be disassembled"]


def test_executions_that_are_all_zero_are_said_to_be():
    answer = ANALYSIS.answer(KernelFacts(write_kernel("EXIT    # k.cu:1 | selected=1 | x=0"), None, None))
    assert "the profiler counted no execution of any instruction" in [one.why for one in answer.missing]
