"""Families of edits: their heads are whole, and one is simulated before and after."""

from pathlib import Path

import pytest

from gpa_lsp import api
from gpa_lsp.diagnosis.advice.advise import list_optimizers
from tests.bench.edits import Edit, Family, read_families, simulate_edits, simulate_version

FAMILIES = read_families()


def test_there_are_edits_enough() -> None:
    assert len(FAMILIES) >= 30
    assert sum(len(version.before) for family in FAMILIES for version in family.versions) >= 50


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_head_says_what_the_source_holds(family: Family) -> None:
    assert f"{family.kernel}(" in family.source.partition("*/")[2]
    assert {remedy for version in family.versions for remedy in version.edit} <= list_optimizers().keys()
    assert family.versions[0].before == ()
    for index, version in enumerate(family.versions[1:], 1):
        assert version.before
        assert all(0 <= before < index for before in version.before)
    launches = {(version.block, version.grid) for version in family.versions}
    assert "VERSION" in family.source.partition("*/")[2] or len(launches) == len(family.versions)


def test_an_edit_is_simulated_and_its_remedy_advised(tmp_path: Path) -> None:
    [family] = read_families("column_reads")
    edits = list(simulate_edits(family, family.sizes[0], "A100 PCIe 40GB", tmp_path))
    [edit] = [edit for edit in edits if isinstance(edit, Edit) and edit.achieved > 3]
    assert "shared_bank_conflicts" in [one.optimizer for one in edit.list_advice()]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gpa-profile.json")}
    assert len(before) == len(edits) + 1
    again = list(simulate_edits(family, family.sizes[0], "A100 PCIe 40GB", tmp_path))
    assert [getattr(one, "achieved", None) for one in again] == [getattr(one, "achieved", None) for one in edits]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_few_warps_that_queue_for_l2_do_not_make_it_what_the_launch_waits_for(tmp_path: Path) -> None:
    """Most of them queue for the schedulers and the FMA pipe, whose work goes with exact powers."""
    [family] = read_families("powers")
    profile = simulate_version(family, 0, family.sizes[1], "T4", tmp_path)
    [kernel] = api.load(profile).kernels
    assert kernel.advice is not None
    [found] = [one for one in kernel.advice.advice if one.optimizer == "fast_math"]
    assert found.speedup.estimate > 2
