"""Kinds of causes that instructions are, and the registers that make one wait for another."""

import pytest

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD, find_category
from gpa_lsp.diagnosis.blame.edges import NO_RESOURCE, connect
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.binary.opcode_table import TABLE
from tests.blame.written_views import view_text

RESULTS = [
    ("LDG.E.64", LONG_SCOREBOARD, BlameCategory.MEMORY_GLOBAL),
    ("LD.E", LONG_SCOREBOARD, BlameCategory.MEMORY_GLOBAL),
    ("ATOMG.E.ADD", LONG_SCOREBOARD, BlameCategory.MEMORY_GLOBAL),
    ("LDGSTS.E.128", LONG_SCOREBOARD, BlameCategory.MEMORY_GLOBAL),
    ("LDGDEPBAR", LONG_SCOREBOARD, BlameCategory.MEMORY_GLOBAL),
    ("LDL", LONG_SCOREBOARD, BlameCategory.MEMORY_LOCAL),
    ("TEX.SCR.B.LL", LONG_SCOREBOARD, BlameCategory.MEMORY_TEXTURE),
    ("SULD.D.1D", LONG_SCOREBOARD, BlameCategory.MEMORY_TEXTURE),
    ("LDC", LONG_SCOREBOARD, BlameCategory.MEMORY_CONSTANT),
    ("LDC", SHORT_SCOREBOARD, BlameCategory.EXECUTION_CONSTANT),
    ("ULDC.64", "wait", BlameCategory.EXECUTION_CONSTANT),
    ("LDS.64", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SHARED),
    ("LDSM.16.M88.4", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SHARED),
    ("ATOMS.ADD", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SHARED),
    ("MUFU.RCP", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("I2F", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("POPC", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("FCHK", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("DFMA", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("DFMA", "wait", BlameCategory.EXECUTION_ARITHMETIC),
    ("HMMA.16816.F32", "wait", BlameCategory.EXECUTION_ARITHMETIC),
    ("SHFL.BFLY", SHORT_SCOREBOARD, BlameCategory.EXECUTION_WARP),
    ("MATCH.ANY", SHORT_SCOREBOARD, BlameCategory.EXECUTION_WARP),
    ("REDUX.SUM", SHORT_SCOREBOARD, BlameCategory.EXECUTION_WARP),
    ("VOTE.ALL", "wait", BlameCategory.EXECUTION_WARP),
    ("MOVM.16.MT88", SHORT_SCOREBOARD, BlameCategory.EXECUTION_WARP),
    ("S2R", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SYSTEM),
    ("CS2R", "wait", BlameCategory.EXECUTION_SYSTEM),
    ("ISETP.LT.AND", "wait", BlameCategory.EXECUTION_ARITHMETIC),
    ("IMAD.WIDE", "wait", BlameCategory.EXECUTION_ARITHMETIC),
    ("SYNCS.PHASECHK.TRANS64", SHORT_SCOREBOARD, BlameCategory.SYNCHRONISATION),
    ("MEMBAR.SC.GPU", LONG_SCOREBOARD, BlameCategory.SYNCHRONISATION),
    ("UTCHMMA", SHORT_SCOREBOARD, BlameCategory.EXECUTION_SPECIAL),
    ("FROB.X", "wait", BlameCategory.EXECUTION_ARITHMETIC),
]


@pytest.mark.parametrize(("mnemonic", "reason", "category"), RESULTS)
def test_results(mnemonic: str, reason: str, category: BlameCategory) -> None:
    opcode = describe_mnemonic(mnemonic)
    for dependency in (
        Dependency.READ_AFTER_WRITE,
        Dependency.WRITE_AFTER_WRITE,
        Dependency.SCOREBOARD,
        Dependency.CALL,
    ):
        assert find_category(opcode, dependency, reason) == category


@pytest.mark.parametrize("mnemonic", ["LDG.E", "STG.E", "STS", "F2I"])
def test_operands_still_to_be_read(mnemonic: str) -> None:
    opcode = describe_mnemonic(mnemonic)
    assert find_category(opcode, Dependency.WRITE_AFTER_READ, SHORT_SCOREBOARD) == BlameCategory.WRITE_AFTER_READ
    unnamed = find_category(opcode, Dependency.SCOREBOARD, SHORT_SCOREBOARD, waits_for_operands=True)
    assert unnamed == BlameCategory.WRITE_AFTER_READ


@pytest.mark.parametrize("mnemonic", ["STG.E", "STL", "STS", "RED.E.ADD"])
def test_what_has_no_result_is_waited_for_to_read(mnemonic: str) -> None:
    found = find_category(describe_mnemonic(mnemonic), Dependency.SCOREBOARD, LONG_SCOREBOARD)
    assert found == BlameCategory.WRITE_AFTER_READ


@pytest.mark.parametrize(
    ("mnemonic", "dependency", "reason", "category"),
    [
        ("IADD3", Dependency.ISSUE, "wait", BlameCategory.ISSUE),
        ("IADD3", Dependency.ITSELF, "wait", BlameCategory.ISSUE),
        ("LDG.E", Dependency.ITSELF, "lg_throttle", BlameCategory.MEMORY_THROTTLE),
        ("LDG.E", Dependency.ITSELF, "selected", BlameCategory.ISSUED),
        ("LDG.E", Dependency.ITSELF, "flux_capacitor", BlameCategory.MISC),
        ("BAR.SYNC", Dependency.SYNCHRONISATION, "barrier", BlameCategory.SYNCHRONISATION),
        ("WARPGROUP.DEPBAR", Dependency.ITSELF, "gmma", BlameCategory.SYNCHRONISATION),
        ("STG.E", Dependency.SYNCHRONISATION, "drain", BlameCategory.DRAIN),
        ("BAR.SYNC", Dependency.SYNCHRONISATION, "flux_capacitor", BlameCategory.SYNCHRONISATION),
        ("BRA", Dependency.CONTROL, "branch_resolving", BlameCategory.BRANCH),
        ("BRX", Dependency.CONTROL, "branch_resolving", BlameCategory.INDIRECT),
        ("BSYNC", Dependency.CONTROL, "misc", BlameCategory.MISC),
        ("BRA", Dependency.CONTROL, "flux_capacitor", BlameCategory.BRANCH),
    ],
)
def test_reasons_and_dependencies_that_say_it_themselves(
    mnemonic: str, dependency: Dependency, reason: str, category: BlameCategory
) -> None:
    assert find_category(describe_mnemonic(mnemonic), dependency, reason) == category


@pytest.mark.parametrize("reason", sorted(set(STALL_REASONS) - {LONG_SCOREBOARD, SHORT_SCOREBOARD, "misc"}))
def test_every_known_reason_has_a_category_of_its_own(reason: str) -> None:
    assert find_category(describe_mnemonic("NOP"), Dependency.ITSELF, reason) != BlameCategory.MISC


@pytest.mark.parametrize("dependency", list(Dependency))
def test_every_opcode_has_a_category(dependency: Dependency) -> None:
    for name in TABLE:
        for reason in STALL_REASONS:
            assert find_category(describe_mnemonic(name), dependency, reason) in BlameCategory


P0 = encode_resource(ResourceKind.PREDICATE, 0)
UR4 = encode_resource(ResourceKind.UNIFORM_REGISTER, 4)


def connect_texts(def_text: str, use_text: str, **by: bool) -> tuple[Dependency, int]:
    return tuple(connect(view_text(f"{def_text}\n{use_text}"), 0, 1, **by))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("def_text", "use_text", "dependency", "resource"),
    [
        ("LDG.E R2, [R4.64]", "FADD R3, R2, R3", Dependency.READ_AFTER_WRITE, 2),
        ("LDG.E.128 R8, [R4.64]", "STG.E.128 [R6.64], R8", Dependency.READ_AFTER_WRITE, 8),
        ("LDG.E.64 R2, [R4.64]", "LDG.E R8, [R2.64]", Dependency.READ_AFTER_WRITE, 2),
        ("LDG.E.64 R2, [R4.64]", "FADD R9, R3, R9", Dependency.READ_AFTER_WRITE, 3),
        ("S2UR UR4, SR_CTAID.X", "IADD3 R0, R0, UR4, RZ", Dependency.READ_AFTER_WRITE, UR4),
        ("ISETP.LT.AND P0, PT, R0, R6, PT", "@P0 BRA 0x10", Dependency.GUARD, P0),
        ("ISETP.LT.AND P0, PT, R0, R6, PT", "@!P0 FADD R3, R2, R3", Dependency.GUARD, P0),
        ("ISETP.LT.AND P0, PT, R0, R6, PT", "SEL R3, R2, R3, P0", Dependency.READ_AFTER_WRITE, P0),
        ("LDG.E R2, [R4.64]", "MOV R2, R7", Dependency.WRITE_AFTER_WRITE, 2),
        ("LDG.E R2, [R4.64]", "BRA 0x10", Dependency.SCOREBOARD, NO_RESOURCE),
        ("STG.E [R4.64], R2", "FADD R3, R2, R3", Dependency.SCOREBOARD, NO_RESOURCE),
    ],
)
def test_a_result_is_waited_for(def_text: str, use_text: str, dependency: Dependency, resource: int) -> None:
    assert connect_texts(def_text, use_text) == (dependency, resource)


def test_operands_are_waited_for_by_who_overwrites_them() -> None:
    store, overwrite = "STG.E.64 [R4.64], R2", "MOV R3, R7"
    assert connect_texts(store, overwrite, by_result=False, by_operands=True) == (Dependency.WRITE_AFTER_READ, 3)
    assert connect_texts(store, overwrite) == (Dependency.SCOREBOARD, NO_RESOURCE)
    assert connect_texts(store, "FADD R8, R2, R3", by_result=False, by_operands=True) == (
        Dependency.SCOREBOARD,
        NO_RESOURCE,
    )


def test_a_result_counts_before_operands() -> None:
    load = "LDG.E R2, [R4.64]"
    assert connect_texts(load, "IADD3 R4, R2, R4, RZ", by_operands=True) == (Dependency.READ_AFTER_WRITE, 2)
    assert connect_texts(load, "IADD3 R4, R8, 0x4, RZ", by_operands=True) == (Dependency.WRITE_AFTER_READ, 4)


def test_a_value_counts_before_a_guard() -> None:
    carry = "IADD3 R2, P0, R3, R4, RZ"
    assert connect_texts(carry, "@P0 FADD R6, R2, R6") == (Dependency.READ_AFTER_WRITE, 2)
    assert connect_texts(carry, "@P0 FADD R2, R7, R6") == (Dependency.GUARD, P0)


def test_no_guard_is_no_resource() -> None:
    """The number of "no guard" and that of "no resource" are the same; nothing may be made of it."""
    assert connect_texts("NOP", "NOP", by_operands=True) == (Dependency.SCOREBOARD, NO_RESOURCE)
