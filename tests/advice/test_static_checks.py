"""Every static check on the fixtures: it finds what the original has, on its line, and nothing in the improved twin."""

from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.cubin import read_compiled_limits
from gpa_lsp.diagnosis.advice.find_statics import (
    MOST_FINDINGS,
    KernelFindings,
    find_static_findings,
    list_static_checks,
)
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFinding
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.kernel.join import list_unmeasured_kernels

FIXTURES = Path(__file__).parents[2] / "fixtures"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")

EXPECTED = {
    ("double_constant", "double-constants"): [12],
    ("integer_division", "integer-divisions"): [14],
    ("local_array", "local-arrays"): [7],
    ("math_functions", "accurate-arithmetic"): [11, 12, 13],
    ("narrow_loads", "narrow-accesses"): [14, 19],
    ("low_occupancy", "low-occupancy"): [6],
}
"""(fixture, check) → the lines of the original it is found on, on every architecture."""


def read_fixture_source(file: str) -> str | None:
    path = FIXTURES / file.rpartition("/fixtures/")[2]
    return path.read_text() if path.is_file() else None


@cache
def examine(architecture: str, fixture: str, variant: str, *, with_source: bool = True) -> KernelFindings:
    (cubin,) = find_cubins(FIXTURES / "cubins" / architecture / f"{fixture}_{variant}.cubin")
    (kernel,) = list_unmeasured_kernels(cubin)[0]
    found = find_static_findings(
        kernel, limits=read_compiled_limits(cubin), read_source=read_fixture_source if with_source else None
    )
    assert [one for one in found.problems if one.severity is not ProblemSeverity.NOTE] == []
    return found


def select(found: KernelFindings, check: str) -> list[StaticFinding]:
    return sorted((one for one in found.findings if one.check == check), key=lambda one: one.line or 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("fixture", "check"), EXPECTED)
def test_the_original_has_it_and_the_twin_does_not(architecture: str, fixture: str, check: str) -> None:
    findings = select(examine(architecture, fixture, "original"), check)
    assert [one.line for one in findings] == EXPECTED[fixture, check]
    for finding in findings:
        assert finding.file is not None and finding.file.endswith(f"{fixture}/original.cu")
        assert finding.certainty is Certainty.CERTAIN
        assert finding.message.endswith(".") and finding.remedy.endswith(".")
    assert select(examine(architecture, fixture, "improved"), check) == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_spills_name_the_variable_on_the_line_that_computes_it(architecture: str) -> None:
    findings = select(examine(architecture, "register_spill", "original"), "spills")
    by_line = {one.line: one for one in findings}
    assert {15, 21} <= by_line.keys()  # where the values are loaded, and where each round computes them
    for line in (15, 21):
        assert "`state[k]` does not fit into registers" in by_line[line].message
        assert "`__launch_bounds__(1024)`" in by_line[line].remedy
        assert by_line[line].loop_depth == 1
    stores = {one.pc_offset for finding in findings for one in finding.instructions if "STL" in one.text}
    assert stores
    assert all("LDL" in one.text or "STL" in one.text for finding in findings for one in finding.instructions)
    assert select(examine(architecture, "register_spill", "improved"), "spills") == []
    assert select(examine(architecture, "local_array", "original"), "spills") == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_spilled_bytes_are_those_of_the_frame(architecture: str) -> None:
    """The fixture's frame holds spills and nothing else; an array's frame holds none."""
    spilling = examine(architecture, "register_spill", "original").statics
    assert spilling.local_bytes is not None
    assert 0 < spilling.spill_bytes <= spilling.local_bytes < spilling.spill_bytes + 16  # frames are padded
    array = examine(architecture, "local_array", "original").statics
    assert (array.local_bytes, array.spill_bytes) == (64, 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_array_is_named_where_it_is_declared(architecture: str) -> None:
    (finding,) = select(examine(architecture, "local_array", "original"), "local-arrays")
    assert finding.message.startswith("`counts` is in local memory (")
    assert finding.message.endswith("because its index is unknown at compile time.")
    assert finding.chain is None


def test_words_fall_back_without_the_source() -> None:
    """Messages name nothing that was not read from a source; the line is then that of the access."""
    (array,) = select(examine("sm_80", "local_array", "original", with_source=False), "local-arrays")
    assert array.message.startswith("An array indexed here is in local memory")
    assert array.line is not None and array.line > 7
    (literal,) = select(examine("sm_80", "double_constant", "original", with_source=False), "double-constants")
    assert (literal.line, literal.certainty) == (12, Certainty.LIKELY)
    assert "0.7" not in literal.remedy


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_division_says_what_it_is_and_what_it_costs(architecture: str) -> None:
    (finding,) = select(examine(architecture, "integer_division", "original"), "integer-divisions")
    assert "line 14 and line 15" in finding.message
    assert "The divisor does not change" in finding.remedy
    assert finding.loop_depth == 1
    assert finding.weight >= 10 * 20


def test_narrow_accesses_say_the_width_that_would_do() -> None:
    loads, stores = select(examine("sm_90", "narrow_loads", "original"), "narrow-accesses")
    assert "4 loads of 4 bytes" in loads.message and "one of 16 bytes" in loads.message
    assert "4 stores of 4 bytes" in stores.message
    assert [one.text.split()[0] for one in loads.instructions] == ["LDG.E.CONSTANT"] * 4 or all(
        "LDG" in one.text for one in loads.instructions
    )


def test_findings_are_the_same_each_time_and_ordered_by_weight() -> None:
    found = examine("sm_80", "math_functions", "original")
    assert found == examine.__wrapped__("sm_80", "math_functions", "original")
    weights = [one.weight for one in found.findings]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize(
    "fixture", ["recursion", "indirect_call", "jump_table", "huge_body", "texture_fetch", "async_copy", "inline_chain"]
)
def test_no_check_fails_on_unusual_code(fixture: str) -> None:
    found = examine("sm_90", fixture, "original")
    assert len(found.findings) <= MOST_FINDINGS
    assert found.statics.registers is not None and found.statics.by_block
    assert all(one.weight >= 0 and one.kernel == found.statics.mangled_name for one in found.findings)


def test_nothing_is_said_without_code() -> None:
    (cubin,) = find_cubins(FIXTURES / "cubins" / "sm_80" / "register_spill_original.cubin")
    (kernel,) = list_unmeasured_kernels(cubin, with_text=False)[0]
    found = find_static_findings(kernel, limits=read_compiled_limits(cubin))
    assert found.problems == ()
    assert [one.check for one in found.findings] == []
    assert found.statics.registers == 64


def test_the_catalogue_names_checks_by_their_modules() -> None:
    checks = list_static_checks()
    assert len(checks) >= 9
    for module, check in checks.items():
        assert isinstance(check, StaticCheck)
        assert check.name == module.replace("_", "-")


def test_a_check_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpa_lsp.diagnosis.advice import find_statics

    def fail(facts: object) -> list[StaticFinding]:
        raise KeyError("broken")

    checks = {**list_static_checks(), "broken": StaticCheck(name="broken", title="Broken", find=fail)}
    monkeypatch.setattr(find_statics, "list_static_checks", lambda: checks)
    (cubin,) = find_cubins(FIXTURES / "cubins" / "sm_80" / "integer_division_original.cubin")
    (kernel,) = list_unmeasured_kernels(cubin)[0]
    found = find_static_findings(kernel, read_source=read_fixture_source)
    told = [one.message for one in found.problems if one.severity is not ProblemSeverity.NOTE]
    assert ["the static check broken failed" in message for message in told] == [True]
    assert [one.check for one in found.findings] == ["integer-divisions"]
