"""What analyses say would tell what they do not know can be asked of Nsight Compute, and the recipe asks for it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpa_lsp
from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.collect.recipe import read_metrics, read_roofline_sections, read_sections
from gpa_lsp.profile.read import read_profile
from tests.collect.asked_metrics import list_watched, read_unasked, watch_collected, watch_kernel
from tests.collect.section_definitions import SectionedReport, read_sectioned_reports

SECTIONS = {
    "ComputeWorkloadAnalysis",
    "InstructionStats",
    "LaunchStats",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart",
    "MemoryWorkloadAnalysis_Tables",
    "Occupancy",
    "SchedulerStats",
    "SourceCounters",
    "SpeedOfLight",
    "SpeedOfLight_HierarchicalDoubleRooflineChart",
    "SpeedOfLight_HierarchicalHalfRooflineChart",
    "SpeedOfLight_HierarchicalSingleRooflineChart",
    "SpeedOfLight_HierarchicalTensorRooflineChart",
    "SpeedOfLight_RooflineChart",
    "WarpStateStats",
}
"""Sections of every version since 2021.2, by the definitions inside published reports of 2020.3 to 2026.2; the hierarchical ones by those of 2025.1
and 2026.2. WorkloadDistribution and PmSampling (in reports since 2024.1), NumaAffinity (2023.1) and Tile (2026.2) are not among them: a remedy has to
hold for whichever version measured."""

MADE_OF = {
    ("MemoryWorkloadAnalysis_Tables", "l1tex__t_sectors.sum"): "sectors by kind of access",
    ("SpeedOfLight", "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"): "active and elapsed cycles of the SMs",
}
"""Section and metric that it does not bring → what it brings, of which the same is reckoned."""

SEEN = ((7, 0), (8, 0), (8, 6), (9, 0), (12, 0))
"""Compute capabilities of the reports; of others the recipe can only guess."""

VERSIONS = ((2021, 2), (2022, 1), (2022, 4), (2023, 1), (2024, 1), (2025, 1), (2026, 2))


def list_remedies(analyses: KernelAnalyses) -> Iterator[Missing]:
    return (missing for answer in analyses.answers for missing in answer.missing)


def find_remedies() -> set[Missing]:
    return {missing for watched in list_watched() for missing in list_remedies(watched.analyses)}


def list_known() -> set[str]:
    """Everything the recipe accounts for."""
    sections = (*read_sections(), *read_roofline_sections())
    return {name for section in sections for name in section.metrics} | {*read_metrics(), *read_unasked()}


def test_sections_of_remedies_exist() -> None:
    named = {missing.section for missing in find_remedies()} - {""}
    assert len(named) > 6
    assert named <= SECTIONS


def test_sections_that_stand_in_the_code_exist() -> None:
    """Also those of remedies that no kernel of a test comes by: arguments ``section`` and constants named after them."""
    written = set(_list_written_sections())
    assert len(written) > 6
    assert written <= SECTIONS


def test_sections_that_are_asked_for_exist() -> None:
    asked = {section.name for section in (*read_sections(), *read_roofline_sections())}
    assert asked <= SECTIONS


def test_metrics_of_remedies_are_known_to_the_recipe() -> None:
    """By their counters: any form of one can be asked for."""
    counters = {name.split(".")[0] for name in list_known()}
    named = {name for missing in find_remedies() for name in missing.metrics}
    assert len(named) > 30
    assert {name for name in named if name.split(".")[0] not in counters} == set()


def test_a_remedy_s_section_brings_its_metrics() -> None:
    """Or one of them, where one is enough; or what they are made of."""
    brought = {section.name: section.metrics for section in (*read_sections(), *read_roofline_sections())}
    for missing in find_remedies():
        if not missing.section or not missing.metrics:
            continue
        counters = {name.split(".")[0] for name in brought[missing.section]}
        found = [name.split(".")[0] in counters or (missing.section, name) in MADE_OF for name in missing.metrics]
        assert all(found) if missing.needs_all else any(found), missing


@pytest.mark.parametrize("capability", SEEN)
def test_no_remedy_asks_for_a_name_that_the_gpu_lacks(capability: tuple[int, int]) -> None:
    """Nsight Compute would give up."""
    lacked = {
        name
        for section in (*read_sections(), *read_roofline_sections())
        for name in section.metrics.difference(section.reads)
        if not any(
            one.holds(version, capability) for one in section.sometimes if name in one.metrics for version in VERSIONS
        )
    }
    assert lacked
    for watched in list_watched():
        for missing in list_remedies(watched.analyses) if watched.capability == capability else ():
            assert lacked.isdisjoint(missing.metrics), missing


@pytest.mark.parametrize("has_rooflines", [False, True])
@pytest.mark.parametrize("capability", SEEN)
def test_what_the_recipe_brings_is_enough(capability: tuple[int, int], has_rooflines: bool) -> None:
    """Nothing is unknown for want of a metric."""
    watched = watch_collected(capability, has_rooflines=has_rooflines)
    remedies = list_remedies(watched.analyses)
    assert [missing for missing in remedies if missing.metrics or missing.section] == []


def _list_written_sections() -> Iterator[str]:
    root = Path(gpa_lsp.__file__).parent / "diagnosis" / "analyses"
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "section" and isinstance(node.value, ast.Constant):
                yield from [node.value.value] if node.value.value else []
            elif isinstance(node, ast.Assign) and "SECTION" in ast.unparse(node.targets[0]):
                values = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
                yield from (value for value in values if isinstance(value, str))


@pytest.fixture(scope="module")
def reports(corpus: Path) -> list[SectionedReport]:
    return read_sectioned_reports(corpus / "ncu")


@pytest.mark.corpus
def test_the_sections_are_those_of_real_reports(reports: list[SectionedReport]) -> None:
    assert {name for report in reports for name in report.definitions} >= SECTIONS
    recent = [report for report in reports if report.version >= (2021, 2) and len(report.definitions) > 5]
    everywhere = set.intersection(*(set(report.definitions) for report in recent))
    assert {name for name in SECTIONS if "Hierarchical" not in name} <= everywhere


@pytest.mark.corpus
def test_metrics_of_remedies_are_in_real_reports(reports: list[SectionedReport]) -> None:
    counters = {name.split(".")[0] for report in reports for name in report.launch.metrics}
    named = {name.split(".")[0] for missing in find_remedies() for name in missing.metrics}
    assert named <= counters


@pytest.mark.corpus
def test_the_full_set_is_enough(reports: list[SectionedReport]) -> None:
    """Nothing is unknown for want of a metric, but for the load of single SMs before 2024.1, which the recipe asks for by name."""
    checked = 0
    for report in reports:
        if report.version < VERSIONS[0] or not report.definitions.keys() >= {
            section.name for section in read_sections()
        }:
            continue
        expected = {("sm__cycles_active.max", "sm__cycles_active.min")} if report.version < (2024, 1) else set()
        for kernel in join_profile(read_profile(report.path))[0]:
            remedies = list_remedies(watch_kernel(kernel).analyses)
            assert {one.metrics for one in remedies if one.metrics or one.section} == expected, report.path.name
            checked += 1
    assert checked > 10
