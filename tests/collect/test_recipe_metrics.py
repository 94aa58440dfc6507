"""Nsight Compute is asked for everything the package reads, by sections that bring it and names that every GPU has."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.collect.recipe import (
    CollectedSection,
    read_metrics,
    read_roofline_sections,
    read_sections,
)
from gpa_lsp.profile.read import read_profile
from tests.collect.asked_metrics import find_texts, list_watched, read_unasked, watch_kernel
from tests.collect.section_definitions import SectionedReport, read_sectioned_reports

METRIC = re.compile(
    r"(?:breakdown:)?(?:[a-z0-9]+__\w+(?:\.\w+)*|memory_l[12]_\w+|inst_executed|thread_inst_executed(?:_true)?)"
)

FORMS = (
    ("sum", "sum.per_second", "sum.per_cycle_elapsed"),
    ("avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"),
)
"""Forms of a counter of which one is enough: whoever reads one of them tries the others (totals of a launch, uses of units)."""

BEGINNINGS = {
    "device__attribute_": "attributes of the device are read by their names without it",
    "l1tex__t_requests_": "a kind of access follows",
    "l1tex__t_sector_": "a kind of access follows, and the hit rate",
    "l1tex__t_sectors_": "a kind of access follows",
    "l1tex__t_sectors_pipe_": "a kind of access follows",
    "sm__ops_path_tensor": "types of operands follow",
    "smsp__average_warps_issue_stalled_": "a warp state follows, whichever the launch has",
    "smsp__thread_inst_executed": "a part of a name",
}
"""Texts of the package that are no metrics, and the beginnings of some."""

FAMILIES = ("smsp__average_warps_issue_stalled_",)
"""Beginnings by which a launch's metrics are looked through."""

LATER = (2021, 2)
"""The recipe is written for this version and later ones."""


def list_sections() -> tuple[CollectedSection, ...]:
    return (*read_sections(), *read_roofline_sections())


def list_forms(name: str) -> set[str]:
    """A name and the names of its counter's other forms."""
    counter, _, form = name.partition(".")
    return {name, *(f"{counter}.{other}" for forms in FORMS if form in forms for other in forms)}


def find_unaccounted(names: Iterable[str]) -> set[str]:
    """Names that nothing asks for in any form, and of which nothing is said."""
    accounted = {name for section in list_sections() for name in section.metrics} | set(read_metrics())
    unasked = set(read_unasked())
    return {
        name for name in names if not list_forms(name) & (accounted | unasked) and name.split(".")[0] not in unasked
    }


def find_asked() -> set[str]:
    return {name for watched in list_watched() for name in watched.asked}


def find_written() -> set[str]:
    """Names, counters and beginnings of names that stand in the package."""
    return {text for text in find_texts(outside="collect") if METRIC.fullmatch(text)}


def test_everything_that_is_asked_of_a_launch_is_collected() -> None:
    asked = find_asked()
    assert len(asked) > 300
    assert find_unaccounted(asked) == set(), "say in recipe.toml which section brings it, or ask for it as a metric"


def test_everything_that_is_written_is_collected() -> None:
    accounted = {name for section in list_sections() for name in section.metrics}
    accounted |= {*read_metrics(), *read_unasked()}
    counters = {name.split(".")[0] for name in accounted}
    unaccounted = {
        text for text in find_unaccounted(find_written() - set(BEGINNINGS)) if "." in text or text not in counters
    }
    assert unaccounted == set(), "say in recipe.toml which section brings it, or ask for it as a metric"


def test_a_new_name_would_be_found() -> None:
    new = {"sm__cycles_active.avg.per_second", "sm__new", "lts__t_sectors_op_red.sum", "memory_l3_sectors"}
    assert find_unaccounted(new) == new
    assert find_unaccounted({"lts__t_sectors_srcunit_tex.sum.per_second", "l1tex__t_bytes.sum"}) == set()


def test_nothing_is_said_to_be_read_that_is_not() -> None:
    asked, written = find_asked(), find_written()
    claimed = {name for section in list_sections() for name in section.metrics} | set(read_metrics())
    claimed |= set(read_unasked())
    idle = {
        name
        for name in claimed
        if not list_forms(name) & (asked | written)
        and name.split(".")[0] not in written
        and not any(one.split(".")[0] == name for one in asked)
        and not name.startswith(FAMILIES)
    }
    assert idle == set()
    assert set(BEGINNINGS) - written == set()
    assert all(any(name.startswith(beginning) for name in asked | claimed) for beginning in BEGINNINGS)


def test_a_metric_stands_in_one_place() -> None:
    places = [name for section in list_sections() for name in section.metrics]
    places += [*read_metrics(), *read_unasked()]
    assert sorted(places) == sorted(set(places))


def test_only_names_of_units_that_every_gpu_has_are_asked_for() -> None:
    """Beside the sections, which know the GPU, a name stands for all GPUs: those on a system's own memory have no DRAM counters."""
    units = {name.split("__")[0] for name in read_metrics()}
    assert units <= {"sm", "smsp", "l1tex", "lts"}
    varying = {name for section in list_sections() for one in section.sometimes for name in one.metrics}
    assert varying.isdisjoint(read_metrics())


@pytest.fixture(scope="module")
def reports(corpus: Path) -> list[SectionedReport]:
    found = read_sectioned_reports(corpus / "ncu")
    assert len(found) > 10
    return found


@pytest.mark.corpus
def test_everything_that_is_asked_of_real_launches_is_collected(corpus: Path) -> None:
    asked: set[str] = set()
    for path in sorted((corpus / "ncu").glob("*.ncu-rep")):
        kernels, _ = join_profile(read_profile(path))
        for kernel in kernels:
            asked |= watch_kernel(kernel).asked
    assert len(asked) > 300
    assert find_unaccounted(asked) == set()


@pytest.mark.corpus
def test_sections_bring_what_the_recipe_says(reports: list[SectionedReport]) -> None:
    """A report with the section has the metrics, in the versions and on the GPUs the recipe says, and only there."""
    checked = 0
    for report in (report for report in reports if report.version >= LATER):
        for section in (section for section in list_sections() if section.name in report.definitions):
            missing = {name for name in section.reads if not report.has(name)}
            assert not missing, (report.path.name, section.name)
            for name in section.metrics.difference(section.reads):
                entries = [one for one in section.sometimes if name in one.metrics]
                is_expected = any(one.holds(report.version, report.capability) for one in entries)
                assert report.has(name) == is_expected, (report.path.name, section.name, name)
            checked += len(section.metrics)
    assert checked > 2000


@pytest.mark.corpus
def test_no_other_section_brings_it_alone(reports: list[SectionedReport]) -> None:
    """A metric that sections name is named by the section the recipe says, in some report; where none names it, no report without it has it."""
    for section in list_sections():
        for name in sorted(section.metrics):
            having = [report for report in reports if report.has(name)]
            naming = [report.find_sections(name) for report in having]
            is_named = any(section.name in found for found in naming)
            is_built_in = all(section.name in report.definitions for report in having)
            assert is_named or is_built_in, (section.name, name)


@pytest.mark.corpus
def test_the_full_set_has_every_section(reports: list[SectionedReport]) -> None:
    """So that --full leaves out nothing that is collected without it."""
    found = [
        (section.name, "full" in report.find_sets(section.name))
        for report in reports
        for section in list_sections()
        if section.name in report.definitions
    ]
    assert len(found) > 100
    assert {name for name, is_full in found if not is_full} == set()


@pytest.mark.corpus
def test_the_counters_asked_for_by_name_are_of_real_reports(reports: list[SectionedReport]) -> None:
    counters = {name.split(".")[0] for report in reports for name in report.launch.metrics}
    defined = b"".join(definition for report in reports for definition in report.definitions.values())
    unheard = {name for name in read_metrics() if name.split(".")[0] not in counters}
    assert {name for name in unheard if name.split(".")[0].encode() not in defined} == set()


@pytest.mark.corpus
def test_no_section_has_what_is_not_asked_for(reports: list[SectionedReport]) -> None:
    """What is left to other people's reports is in no default section of a version the recipe is written for."""
    names = {section.name for section in read_sections()}
    for report in (report for report in reports if report.version >= LATER):
        for name in read_unasked():
            assert not report.find_sections(name) & names, (report.path.name, name)
