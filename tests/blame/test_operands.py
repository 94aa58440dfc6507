"""Which register makes one instruction wait for another."""

import pytest

from gpa_lsp.code.binary.listing import parse_listing
from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.diagnosis.blame.model import Dependency
from gpa_lsp.diagnosis.blame.operands import NO_RESOURCE, RegisterUses

P0 = encode_resource(ResourceKind.PREDICATE, 0)
UR4 = encode_resource(ResourceKind.UNIFORM_REGISTER, 4)


def connect(def_text: str, use_text: str, **by: bool) -> tuple[Dependency, int]:
    return tuple(RegisterUses(parse_listing(f"{def_text}\n{use_text}")).connect(0, 1, **by))  # type: ignore[return-value]


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
    assert connect(def_text, use_text) == (dependency, resource)


def test_operands_are_waited_for_by_who_overwrites_them() -> None:
    store, overwrite = "STG.E.64 [R4.64], R2", "MOV R3, R7"
    assert connect(store, overwrite, by_result=False, by_operands=True) == (Dependency.WRITE_AFTER_READ, 3)
    assert connect(store, overwrite) == (Dependency.SCOREBOARD, NO_RESOURCE)
    assert connect(store, "FADD R8, R2, R3", by_result=False, by_operands=True) == (Dependency.SCOREBOARD, NO_RESOURCE)


def test_a_result_counts_before_operands() -> None:
    load = "LDG.E R2, [R4.64]"
    assert connect(load, "IADD3 R4, R2, R4, RZ", by_operands=True) == (Dependency.READ_AFTER_WRITE, 2)
    assert connect(load, "IADD3 R4, R8, 0x4, RZ", by_operands=True) == (Dependency.WRITE_AFTER_READ, 4)


def test_a_value_counts_before_a_guard() -> None:
    carry = "IADD3 R2, P0, R3, R4, RZ"
    assert connect(carry, "@P0 FADD R6, R2, R6") == (Dependency.READ_AFTER_WRITE, 2)
    assert connect(carry, "@P0 FADD R2, R7, R6") == (Dependency.GUARD, P0)


def test_no_guard_is_no_resource() -> None:
    """The number of "no guard" and that of "no resource" are the same; nothing may be made of it."""
    assert connect("NOP", "NOP", by_operands=True) == (Dependency.SCOREBOARD, NO_RESOURCE)


def test_reads_and_writes_are_those_of_the_listing() -> None:
    listing = parse_listing("@P0 LDG.E.64 R2, [R4.64]\nEXIT")
    uses = RegisterUses(listing)
    assert (tuple(uses.reads(0)), tuple(uses.writes(0))) == (listing.reads.of(0), listing.writes.of(0))
    assert (uses.reads(1), uses.writes(1)) == ([], [])
