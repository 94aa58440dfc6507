"""Every real report of the corpus through the whole flow, against independently counted totals."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.profile.model import Launch
from gpa_lsp.report.model import FunctionRole, Report
from tests.real_reports import CORPUS, REPORTS, analyse_report, read_launches

pytestmark = pytest.mark.corpus

SATURATED = {"a100_selfjoin_saturated_2020.3.ncu-rep"}
WITH_FAILED_LAUNCH = {"rtx3090_mergesort_2023.1.ncu-rep"}


@cache
def read_expected() -> dict:
    assert CORPUS is not None
    return json.loads((CORPUS / "expected_samples.json").read_text())


def launches_of(report: Report) -> dict[int, tuple]:
    return {launch.index: (kernel, launch) for kernel in report.kernels for launch in kernel.launches}


@pytest.mark.parametrize("name", REPORTS)
def test_samples_per_launch_and_reason_are_those_counted_independently(name):
    launches = launches_of(analyse_report(name))
    expected = read_expected()[name]
    assert sorted(launches) == list(range(len(expected)))
    for index, counted in enumerate(expected):
        kernel, launch = launches[index]
        assert kernel.mangled_name == counted["mangled"]
        assert list(launch.configuration.grid) == counted["grid"]
        assert list(launch.configuration.block) == counted["block"]
        every = {reason: count.all_samples for reason, count in launch.by_reason.items()}
        latency = {reason: count.latency_samples for reason, count in launch.by_reason.items() if count.latency_samples}
        assert every == {reason: samples for reason, samples in counted["all"].items() if samples}
        assert latency == {reason: samples for reason, samples in counted["not_issued"].items() if samples}


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_dropped_between_launches_functions_lines_and_instructions(name):
    for kernel in analyse_report(name).kernels:
        launched = sum(launch.total_samples for launch in kernel.launches)
        assert kernel.total_samples == launched
        assert sum(row.samples for row in kernel.functions) == launched
        assert sum(row.samples for row in kernel.lines) == launched
        assert int(kernel.instructions.all_samples.sum()) == launched
        for reason, count in kernel.by_reason.items():
            on_lines = sum(row.by_reason[reason].all_samples for row in kernel.lines if reason in row.by_reason)
            assert on_lines == count.all_samples, reason


@pytest.mark.parametrize("name", REPORTS)
def test_every_sampled_instruction_of_a_function_with_lines_has_a_line_and_a_chain(name):
    for kernel in analyse_report(name).kernels:
        lined = {
            row.mangled_name for row in kernel.functions if row.has_lines and row.role is not FunctionRole.SUB_FUNCTION
        }
        columns = kernel.instructions
        for index, function in enumerate(columns.functions):
            if function in lined:
                sampled = (columns.function_index == index) & (columns.all_samples.sum(axis=1) > 0)
                assert (columns.chain_index[sampled] >= 0).all()
        assert all(chain for chain in columns.chains)


@pytest.mark.parametrize("name", REPORTS)
def test_every_instruction_of_the_module_is_disassembled_and_has_its_control_code(name):
    for kernel in analyse_report(name).kernels:
        columns = kernel.instructions
        in_module = columns.function_index != (
            columns.functions.index("<outside this module>") if "<outside this module>" in columns.functions else -1
        )
        assert columns.has_control[in_module].all()
        in_loops = int(columns.all_samples[columns.loop_depths > 0].sum())
        assert in_loops == sum(loop.samples for loop in kernel.loops if loop.depth == 1)
        assert all(text for text, known in zip(columns.texts, in_module, strict=True) if known)


@pytest.mark.parametrize("name", REPORTS)
def test_only_the_known_doubts_are_reported(name):
    report = analyse_report(name)
    doubts = {
        problem.message.split(":")[0] for problem in report.problems if problem.severity is not ProblemSeverity.NOTE
    }
    expected = set()
    if name in SATURATED:
        expected.add("the sampling buffer overflowed, so the samples cover only the first part of the kernel's run")
    if name in WITH_FAILED_LAUNCH:
        expected.add("launch 9 has no numbers")
    assert doubts == expected


def test_called_routines_without_lines_are_credited_to_the_line_that_calls_them():
    name = "v100_miniweather_baseline_2022.2.ncu-rep"
    kernel = next(kernel for kernel in analyse_report(name).kernels if "x_279" in kernel.mangled_name)
    routines = {row.mangled_name: row.samples for row in kernel.functions if row.role is FunctionRole.DEVICE_FUNCTION}
    division, power = routines["__cuda_sm20_div_f64_slowpath_v2"], routines["__internal_accurate_pow"]
    assert division + power == 118_134
    called = {row.line: row.called_samples for row in kernel.lines if row.file is not None and row.called_samples}
    assert sum(called.values()) == pytest.approx(118_134, rel=1e-9)
    assert called[298] == pytest.approx(power, rel=1e-9)
    executions = {288: 12_943_091, 295: 1_104_085, 296: 1_066_239}
    for line, times in executions.items():
        assert called[line] == pytest.approx(division * times / sum(executions.values()), rel=1e-9)


def test_the_triton_kernel_has_its_lines_in_python():
    name = "gh200_triton_silu_2025.1.ncu-rep"
    kernel = next(kernel for kernel in analyse_report(name).kernels if kernel.mangled_name == "silu_kernel_non_strided")
    assert {Path(row.file).suffix for row in kernel.lines if row.file} == {".py"}


def read_marker_shares(launch: Launch) -> dict[int, float]:
    """Offset in the kernel → percent of all samples, as the profiler's own rules print it."""
    pattern = re.compile(r"responsible for ([\d.]+)% of all warp stalls")
    found = {}
    for rule in launch.rules:
        for marker in rule.markers:
            match = pattern.search(marker.text)
            if match and marker.address is not None:
                found[marker.address - launch.function_addresses[0]] = float(match[1])
    return found


@pytest.mark.parametrize(
    ("name", "kernel_name", "lines"),
    [
        ("gh200_triton_silu_2025.1.ncu-rep", "silu_kernel_non_strided", {47, 157}),
        ("rtx5090_matmul_2026.2.ncu-rep", "_Z12matmul_naivePKfS0_Pfiii", {16}),
    ],
)
def test_shares_and_lines_are_those_of_the_profilers_own_markers(name, kernel_name, lines):
    (launch,) = (found for found in read_launches(name) if found.mangled_name == kernel_name)
    kernel = next(found for found in analyse_report(name).kernels if found.mangled_name == kernel_name)
    columns = kernel.instructions
    marked = read_marker_shares(launch)
    assert len(marked) >= 2
    seen = set()
    for offset, percent in marked.items():
        row = columns.pc_offsets.tolist().index(offset)
        share = 100 * columns.all_samples[row].sum() / kernel.total_samples
        assert share == pytest.approx(percent, abs=0.0501)
        seen.add(columns.chains[columns.chain_index[row]][0].line)
    assert seen == lines
