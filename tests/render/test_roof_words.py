"""How close a kernel is to its roofs, in words."""

from gpa_lsp.diagnosis.advice.model import KernelAdvice, UnitUse
from gpa_lsp.document.roof_words import describe_roofs


def make_advice(**ratios: float) -> KernelAdvice:
    ceilings = {"DRAM": 0.85, "L2": 0.85, "L1": 0.97, "SM": 1.0}
    units = tuple(
        UnitUse(name=name, achieved_ratio=ratio, ceiling_ratio=ceilings[name]) for name, ratio in ratios.items()
    )
    return KernelAdvice(advice=(), silences=(), units=units)


def test_the_nearest_roof_comes_first() -> None:
    assert describe_roofs(make_advice(DRAM=0.412, L2=0.2, SM=0.31)) == (
        "DRAM at 41 % of its peak (practical maximum 85 %); the SMs' busiest unit 31 %, L2 20 %"
    )
    assert describe_roofs(make_advice(DRAM=0.3, SM=0.904)) == "the SMs' busiest unit at 90 % of its peak; DRAM 30 %"


def test_near_is_measured_against_what_is_sustained() -> None:
    """DRAM at 80 % of its peak is closer to its roof than L1 at 85 %."""
    assert describe_roofs(make_advice(DRAM=0.80, L1=0.85)).startswith("DRAM at 80 %")


def test_what_is_unknown_is_said_with_the_remedy() -> None:
    assert (
        describe_roofs(make_advice())
        == "how close the kernel is to its ceilings is unknown: collect `--section SpeedOfLight`"
    )
