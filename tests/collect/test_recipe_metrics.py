"""Nsight Compute is asked for everything the package reads, by sections that bring it and names that every GPU has."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import gpa_lsp
from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.collect.recipe import (
    CollectedSection,
    Recipe,
    build_command,
    escape_expression,
    read_metrics,
    read_roofline_sections,
    read_sections,
)
from gpa_lsp.profile.read import read_profile
from tests.collect.asked_metrics import find_texts, list_watched, read_unasked, watch_collected, watch_kernel
from tests.collect.section_definitions import SectionedReport, read_sectioned_reports

APP = ["./app", "--size", "1024"]


def pairs(command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return pairwise(command)


def options(command: tuple[str, ...], name: str) -> list[str]:
    return [value for option, value in pairs(command) if option == name]


def test_the_usual_command() -> None:
    command = build_command(Recipe(output=Path("out.ncu-rep")), APP)
    assert command[0] == "ncu"
    assert command[-3:] == tuple(APP)
    assert options(command, "--section") == [section.name for section in read_sections()]
    assert options(command, "--metrics") == [",".join(read_metrics())]
    assert options(command, "--kernel-id") == [":::1|2|3"]
    assert options(command, "--export") == ["out.ncu-rep"]
    assert options(command, "--import-source") == ["yes"]
    assert options(command, "--target-processes") == ["all"]
    assert options(command, "--clock-control") == ["none"]
    assert options(command, "--cache-control") == ["all"]
    assert options(command, "--replay-mode") == ["kernel"]
    assert "--force-overwrite" in command
    assert not any("sampling" in word for word in command)


def test_kernels_by_name() -> None:
    command = build_command(Recipe(kernel="ns::saxpy<float>(int*)", launches=1, skipped_launches=5), APP)
    assert options(command, "--kernel-name") == [r"regex:ns::saxpy<float>\(int\*\)"]
    assert options(command, "--kernel-name-base") == ["demangled"]
    assert options(command, "--launch-count") == ["1"]
    assert options(command, "--launch-skip") == ["5"]
    assert "--kernel-id" not in command
    mangled = build_command(Recipe(kernel="_Z5saxpyPf", launches=0), APP)
    assert options(mangled, "--kernel-name-base") == ["mangled"]
    assert "--launch-count" not in mangled


def test_every_option() -> None:
    recipe = Recipe(
        is_full=True,
        has_rooflines=True,
        sections=("Nvlink", "Nvlink"),
        metrics=("sm__cycles_active.max", "my__metric.sum"),
        has_metrics=False,
        launches=0,
        replay_mode="app-range",
        clock_control="base",
        cache_control="none",
        sampling_interval=2,
        sampling_buffer_bytes=1 << 28,
        source_folders=("/src", "../lib"),
        nvtx_ranges=("hot/",),
        starts_enabled=False,
        options=("--graph-profiling", "graph"),
    )
    command = build_command(recipe, APP, ncu="/opt/ncu")
    assert command[:3] == ("/opt/ncu", "--set", "full")
    assert options(command, "--section") == [*(section.name for section in read_roofline_sections()), "Nvlink"]
    assert options(command, "--metrics") == ["sm__cycles_active.max,my__metric.sum"]
    assert options(command, "--replay-mode") == ["app-range"]
    assert options(command, "--clock-control") == ["base"]
    assert options(command, "--cache-control") == ["none"]
    assert options(command, "--warp-sampling-interval") == ["2"]
    assert options(command, "--warp-sampling-buffer-size") == ["268435456"]
    assert options(command, "--source-folders") == ["/src,../lib"]
    assert options(command, "--nvtx-include") == ["hot/"]
    assert options(command, "--profile-from-start") == ["off"]
    assert options(command, "--graph-profiling") == ["graph"]
    assert "--nvtx" in command
    assert not {"--kernel-id", "--launch-count", "--export"} & set(command)
    older = build_command(recipe, APP, sampling_prefix="sampling")
    assert options(older, "--sampling-interval") == ["2"]


@pytest.mark.parametrize("text", ["a.b", "f<int>(float*, int [3])", "x|y", "^$", "{1}", "a\\b", "operator()+"])
def test_names_are_matched_as_they_are(text: str) -> None:
    assert re.fullmatch(escape_expression(text), text)


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
    "launch__cluster_dim_": "an axis follows",
    "l1tex__t_requests_": "a kind of access follows",
    "l1tex__t_sector_": "a kind of access follows, and the hit rate",
    "l1tex__t_sectors_": "a kind of access follows",
    "l1tex__t_sectors_pipe_": "a kind of access follows",
    "sm__ops_path_tensor": "types of operands follow",
    "smsp__average_warps_issue_stalled_": "a warp state follows, whichever the launch has",
}
"""Texts of the package that are no metrics, and the beginnings of some."""

FAMILIES = ("launch__cluster_dim_", "smsp__average_warps_issue_stalled_")
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
    return {text for text in find_texts() if METRIC.fullmatch(text)}


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
    asked, written, texts = find_asked(), find_written(), set(find_texts())
    claimed = {name for section in list_sections() for name in section.metrics} | set(read_metrics())
    claimed |= set(read_unasked())
    idle = {
        name
        for name in claimed
        if not list_forms(name) & (asked | written)
        and name.split(".")[0] not in written
        and not any(one.split(".")[0] == name for one in asked)
        and not name.startswith(FAMILIES)
        and name.removeprefix("device__attribute_") not in texts  # attributes are read by their name without it
    }
    assert idle == set()
    assert set(BEGINNINGS) - written == set()
    assert all(any(name.startswith(beginning) for name in asked | claimed) for beginning in BEGINNINGS)


def test_a_metric_stands_in_one_place() -> None:
    places = [name for section in list_sections() for name in section.metrics]
    places += [*read_metrics(), *read_unasked()]
    assert sorted(places) == sorted(set(places))


def test_only_names_of_units_that_every_gpu_has_are_asked_for() -> None:
    """Metrics outside sections hold for all GPUs: those on a system's own memory have no DRAM counters."""
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
    """Option --full leaves out nothing that is collected without it."""
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
    """Metrics read only from other people's reports are in no default section of the recipe's versions."""
    names = {section.name for section in read_sections()}
    for report in (report for report in reports if report.version >= LATER):
        for name in read_unasked():
            assert not report.find_sections(name) & names, (report.path.name, name)


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
    """All metrics the recipe accounts for."""
    sections = (*read_sections(), *read_roofline_sections())
    return {name for section in sections for name in section.metrics} | {*read_metrics(), *read_unasked()}


def test_sections_of_remedies_exist() -> None:
    named = {missing.section for missing in find_remedies()} - {""}
    assert len(named) > 6
    assert named <= SECTIONS


def test_sections_that_stand_in_the_code_exist() -> None:
    """Includes remedies that no kernel of a test leads to: arguments ``section`` and constants named after them."""
    written = set(_list_written_sections())
    assert len(written) > 6
    assert written <= SECTIONS


def test_sections_that_are_asked_for_exist() -> None:
    asked = {section.name for section in (*read_sections(), *read_roofline_sections())}
    assert asked <= SECTIONS


def test_metrics_of_remedies_are_known_to_the_recipe() -> None:
    """Compares counters: any form of one can be asked for."""
    counters = {name.split(".")[0] for name in list_known()}
    named = {name for missing in find_remedies() for name in missing.metrics}
    assert len(named) > 30
    assert {name for name in named if name.split(".")[0] not in counters} == set()


def test_a_remedy_s_section_brings_its_metrics() -> None:
    """One of them is enough where several would do, or what they are computed from."""
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
    """Answers lack no metric."""
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
    """Answers lack no metric, except the load of single SMs before 2024.1, which the recipe asks for by name."""
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
