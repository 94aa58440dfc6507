"""Faults of faulty kernels are found at their lines, within a small budget, and no others; impossible launches are refused."""

import dataclasses
import re
from collections import defaultdict
from pathlib import Path

import msgspec.structs
import pytest

from gpa_lsp.execution.emulator.model import Budget, Fault, FaultKind
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.errors import InputError
from tests.emulator.kernels.compiling import read_source
from tests.emulator.kernels.running import Case, read_cases, run
from tests.patience import LIMIT_S

_FOLDER = Path(__file__).parent / "faulty"
_MARK = re.compile(r"// fault: ([a-z ,-]+)$")
_SMALL = Budget(seconds=LIMIT_S, memory_bytes=64 << 20, warp_instructions=50_000)


def _list_cases() -> list[Case]:
    cases = []
    for path in sorted(_FOLDER.glob("*.cu")):
        source = read_source(path)
        description = path.with_suffix(".launch.toml")
        cases += read_cases(description, path, source.flags, max(80, source.least)) if description.exists() else []
    return cases


def _read_marks(path: Path) -> dict[str, set[tuple[str, int]]]:
    """Marks of each kernel: those of its body and of the functions before it."""
    marks: dict[str, set[tuple[str, int]]] = defaultdict(set)
    waiting: set[tuple[str, int]] = set()
    kernel = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if found := re.search(r"__global__ void (\w+)", line):
            kernel = found[1]
        if found := _MARK.search(line):
            waiting |= {(kind, number) for kind in found[1].split(", ")}
        if line == "}" and kernel:
            marks[kernel] |= waiting
            waiting, kernel = set(), ""
    return marks


def _list_places(faults: tuple[Fault, ...]) -> set[tuple[str, int]]:
    chains = [
        (fault.kind, chain) for fault in faults for chain in (fault.chain, fault.other_chain) if chain is not None
    ]
    return {(kind.value, chain[0].line) for kind, chain in chains}


CASES = _list_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_faults_are_found_at_their_lines_and_nowhere_else(case: Case) -> None:
    emulation = run(case, budget=_SMALL)
    assert _list_places(emulation.faults) == _read_marks(case.source)[case.launch.kernel], [
        fault.message for fault in emulation.faults
    ]
    for fault in emulation.faults:
        assert fault.message
        assert fault.count >= 1


def _find(kernel: str) -> Case:
    (case,) = (case for case in CASES if case.launch.kernel == kernel)
    return case


def test_every_faulty_kernel_is_launched() -> None:
    kernels = {
        name
        for path in _FOLDER.glob("*.cu")
        for name in re.findall(r"__global__ void (\w+)", path.read_text(encoding="utf-8"))
    }
    assert {case.launch.kernel for case in CASES} == kernels


def test_an_access_beyond_an_array_names_it_and_spares_the_others() -> None:
    emulation = run(_find("beyond_global"), budget=_SMALL)
    counts = {fault.count for fault in emulation.faults}
    assert counts == {1}
    assert {name for name in ("in", "out") for fault in emulation.faults if f" of {name}, " in fault.message} == {
        "in",
        "out",
    }
    assert all("element 100" in fault.message for fault in emulation.faults)
    assert emulation.arrays["out"].tolist() == (emulation.arrays["in"] + 1).tolist()
    (fault, *_) = emulation.faults
    assert fault.block == 1
    assert fault.thread == (36, 0, 0)


def test_lanes_that_trap_go_no_further_than_their_trap() -> None:
    (fault,) = run(_find("fails_assertion"), budget=_SMALL).faults
    assert fault.kind is FaultKind.TRAP
    assert fault.is_fatal
    assert fault.thread == (5, 0, 0)


def test_results_of_kernels_without_races_are_right() -> None:
    emulation = run(_find("no_race"), budget=_SMALL)
    values = emulation.arrays["in"].reshape(4, 32)
    assert emulation.arrays["out"].tolist() == (values[:, ::-1] + 5).ravel().tolist()


def test_an_unsupported_instruction_is_named() -> None:
    (fault,) = run(_find("unsupported_sparse_product"), budget=_SMALL).faults
    assert fault.kind is FaultKind.UNSUPPORTED
    assert fault.is_fatal
    assert "wgmma.mma_async.sp" in fault.message


def _change(case: Case, **changes: object) -> Case:
    launch: LaunchDescription = msgspec.structs.replace(case.launch, **changes)
    return dataclasses.replace(case, launch=launch)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"block": (2048, 1, 1)}, FaultKind.BAD_LAUNCH),
        ({"block": (32, 1, 128)}, FaultKind.BAD_LAUNCH),
        ({"grid": (1, 70000, 1)}, FaultKind.BAD_LAUNCH),
        ({"grid": (2**40, 1, 1)}, FaultKind.BAD_LAUNCH),
        ({"shared_bytes": 300 << 10}, FaultKind.BAD_LAUNCH),
        ({"grid": (2**31 - 1, 65535, 65535)}, FaultKind.INSTRUCTION_BUDGET),
    ],
)
def test_launches_no_gpu_accepts_or_no_budget_holds_end_with_a_finding(
    changes: dict[str, object], kind: FaultKind
) -> None:
    emulation = run(_change(_find("traps"), **changes), budget=_SMALL)
    assert kind in {fault.kind for fault in emulation.faults}
    assert not emulation.is_complete


def test_a_missing_argument_is_an_error_that_says_which() -> None:
    case = _find("beyond_global")
    with pytest.raises(InputError) as caught:
        run(_change(case, arguments=case.launch.arguments[:2]), budget=_SMALL)
    assert "argument" in str(caught.value) or "parameter" in str(caught.value)


def test_an_array_larger_than_the_budget_is_not_allocated() -> None:
    case = _find("beyond_global")
    large = msgspec.structs.replace(case.launch.arguments[0], count=1 << 40)
    with pytest.raises(InputError, match=r"memory|large|limit|budget|bytes"):
        run(_change(case, arguments=(large, *case.launch.arguments[1:])), budget=_SMALL)


def test_local_memory_beyond_the_budget_ends_with_a_finding() -> None:
    (fault,) = run(_find("needs_memory"), budget=_SMALL).faults
    assert fault.kind is FaultKind.MEMORY_BUDGET
    assert fault.is_fatal


def test_peak_memory_stays_within_the_budget() -> None:
    for kernel in ("traps", "no_race", "endless_recursion", "needs_memory"):
        assert 0 < run(_find(kernel), budget=_SMALL).peak_bytes <= _SMALL.memory_bytes
