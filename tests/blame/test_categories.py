"""What kind of cause an instruction is."""

import pytest

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD, find_category
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.binary.opcode_table import TABLE

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
