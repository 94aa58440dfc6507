"""Slow arithmetic that shares no samples, and what each architecture is slow at; what is matched and said is in strength_reduction.md."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.optimizers.fast_math import OPTIMIZER as FAST_MATH
from gpa_lsp.diagnosis.advice.optimizers.strength_reduction import OPTIMIZER
from gpa_lsp.diagnosis.advice.slow_arithmetic import SlowKind, find_slowness
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from tests.advice.blamed_by_hand import write_subject
from tests.rows.listings import DIVISION, DOUBLE, INTEGER_DIVISION, WIDENED


def match(subject: Subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    return found


def test_integer_and_accurate_divisions_share_no_samples_and_are_no_alternatives() -> None:
    subject = write_subject(INTEGER_DIVISION.replace("EXIT", "NOP") + DIVISION, {})
    integers, accurate = match(subject), FAST_MATH.match(subject)
    assert isinstance(accurate, EliminationMatch)
    rows = [
        {
            hotspot.use_row if hotspot.use_row is not None else hotspot.def_row
            for region in found.regions
            for hotspot in region.hotspots
        }
        for found in (integers, accurate)
    ]
    assert all(rows)
    assert rows[0].isdisjoint(rows[1])
    assert OPTIMIZER.group != FAST_MATH.group


def test_a_division_of_doubles_goes_with_the_type_of_its_operands() -> None:
    subject = write_subject(DIVISION.replace("IADD3 R30, R30, 0x1, RZ  ", "DADD R30, R30, 0x1       "), {})
    found, accurate = match(subject), FAST_MATH.match(subject)
    assert isinstance(accurate, EliminationMatch)
    assert found.work["fp64"] == 0.0 < accurate.work["fp64"]
    assert sum(one.samples for one in found.regions) == sum(one.samples for one in accurate.regions)


def test_regions_of_one_kernel_share_no_sample() -> None:
    body = INTEGER_DIVISION.replace("EXIT", "NOP") + WIDENED.replace("loop", "again").replace("EXIT", "NOP")
    subject = write_subject(body + DOUBLE.replace("loop", "third"), {}, compute_capability=(8, 6))
    found = match(subject)
    assert len(found.regions) == 3
    pairs = [(one.def_row, one.use_row) for region in found.regions for one in region.hotspots]
    assert len(pairs) == len(set(pairs))
    assert sum(region.samples for region in found.regions) <= subject.total_samples


@pytest.mark.parametrize("capability", list_architectures())
def test_what_every_architecture_is_slow_at(capability: tuple[int, int]) -> None:
    architecture = find_architecture(capability)
    for mnemonic in ("FFMA", "IADD3", "IMAD.WIDE.U32", "HFMA2", "HMMA.16816.F32", "LDG.E", "FROB"):
        assert find_slowness(architecture, mnemonic) is None
    for mnemonic, kind in (
        ("MUFU.RCP", SlowKind.SPECIAL_FUNCTION),
        ("F2I", SlowKind.CONVERSION),
        ("POPC", SlowKind.BIT_COUNT),
    ):
        slowness = find_slowness(architecture, mnemonic)
        assert slowness.kind is kind
        assert slowness.words
    is_slow = find_slowness(architecture, "DADD") is not None
    assert is_slow == (capability not in ((7, 0), (8, 0), (9, 0), (10, 0), (10, 3)))


@pytest.mark.parametrize(("joins_doubles", "kind"), [(False, SlowKind.CONVERSION), (True, SlowKind.DOUBLE_PRECISION)])
def test_a_conversion_to_doubles_is_one_where_code_alone_is_read(joins_doubles: bool, kind: SlowKind) -> None:
    slowness = find_slowness(find_architecture((8, 6)), "I2F.F64", joins_doubles=joins_doubles)
    assert slowness is not None and slowness.kind is kind
