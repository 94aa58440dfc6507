"""The emulator against truth: every kernel gives what numpy says, integers to the bit and floats within the rounding that PTX prescribes."""

import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.execution.launches.launch import list_arrays
from tests.emulator.kernels.compiling import SOURCES, read_source
from tests.emulator.kernels.running import Case, list_differences, read_cases, run

for _family in (
    "reductions",
    "sorting",
    "stencils",
    "matrices",
    "warps",
    "control",
    "integers",
    "functions",
    "memory",
    "modern",
    "clusters",
    "warp_groups",
):
    import_module(f"tests.emulator.kernels.references.{_family}")

_FIXTURES = Path(__file__).parents[3] / "fixtures" / "kernels"
_FIXTURE_LAUNCHES = Path(__file__).parent / "fixtures"

_EVERYWHERE = {
    "reduce_shuffle",
    "sort_bitonic",
    "hotspot",
    "matmul_tiled",
    "atomics_loops",
    "warp_votes",
    "nested_ifs",
    "divisions",
}
"""Sources that are compiled for every architecture; the others for compute capability 8.0 alone."""

_UNOPTIMISED = {
    "cooperative_tiles",
    "divisions",
    "early_returns",
    "histogram",
    "local_arrays",
    "loop_exits",
    "recursive_calls",
    "sort_radix",
    "struct_parameters",
    "struct_returns",
    "switch_table",
    "vector_accesses",
    "warp_votes",
}
"""Sources that are compiled with ``-G`` as well."""


def _list_own_cases() -> list[Case]:
    cases = []
    for path in sorted(SOURCES.glob("*.cu")):
        source = read_source(path)
        architectures = (75, 80, 90, 120) if path.stem in _EVERYWHERE else (max(80, source.least),)
        cases += read_cases(path.with_suffix(".launch.toml"), path, source.flags, *architectures)
    return cases


def _list_unoptimised_cases() -> list[Case]:
    """Every variable in local memory, every access through generic addresses: other PTX for the same results."""
    paths = [SOURCES / f"{name}.cu" for name in sorted(_UNOPTIMISED)]
    flags = [(*read_source(path).flags, "-G") for path in paths]
    return [
        case
        for path, own in zip(paths, flags, strict=True)
        for case in read_cases(path.with_suffix(".launch.toml"), path, own, 80)
    ]


def _list_fixture_cases() -> list[Case]:
    cases = []
    for description in sorted(_FIXTURE_LAUNCHES.glob("*.launch.toml")):
        folder = _FIXTURES / description.name.removesuffix(".launch.toml")
        flags = ("-fmad=false", *(("--jump-table-density=50",) if folder.name == "jump_table" else ()))
        for title in ("original", "improved"):
            cases += [
                case
                for case in read_cases(description, folder / f"{title}.cu", flags, 80)
                if case.launch.title == title
            ]
    return cases


OWN = _list_own_cases()
UNOPTIMISED = _list_unoptimised_cases()
FIXTURES = _list_fixture_cases()


@pytest.mark.parametrize("case", [*OWN, *UNOPTIMISED], ids=str)
def test_kernels_give_what_their_references_say(case: Case) -> None:
    emulation = run(case)
    assert [f"{fault.kind}: {fault.message}" for fault in emulation.faults] == []
    assert emulation.is_complete
    assert list_differences(case, emulation) == []


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in _FIXTURES.glob("*/improved.cu")), ids=lambda one: one.name
)
def test_improved_twins_of_fixtures_give_what_the_originals_give(folder: Path) -> None:
    """Features that they use have kernels of their own above."""
    cases = [case for case in FIXTURES if case.source.parent == folder]
    original, improved = map(run, cases)
    assert original.faults == improved.faults == () and original.is_complete and improved.is_complete
    tolerance = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))["tolerance_ratio"]
    for array in list_arrays(cases[0].launch):
        right, found = (one.arrays[array.name].astype(np.float64) for one in (original, improved))
        assert np.abs(found - right).max() <= tolerance * np.abs(right).max(), array.name
        assert right.any(), array.name


def test_every_fixture_has_its_launches() -> None:
    twins = {f"{path.parent.name}/{path.stem}" for path in _FIXTURES.glob("*/*.cu")}
    assert {f"{case.source.parent.name}/{case.source.stem}" for case in FIXTURES} == twins


def test_lists_built_by_exchange_hold_every_thread_once() -> None:
    (case,) = (case for case in OWN if case.launch.kernel == "atomics_returned")
    results = run(case).arrays
    values = results["in"]
    for head in range(8):
        found = []
        at = int(results["heads"][head])
        while at != -1:
            found.append(at)
            at = int(results["next"][at])
        assert sorted(found) == np.flatnonzero(values & 7 == head).tolist()
    for key in range(4):
        winners = np.flatnonzero((values & 3 == key) & (results["winners"] == 1))
        assert winners.tolist() == [results["heads"][8 + key]]


def test_what_kernels_print_is_kept() -> None:
    (case,) = (case for case in OWN if case.launch.kernel == "printing")
    emulation = run(case)
    assert emulation.printed == f"thread 3 of block 0: sum {int(emulation.arrays['out'][3]) * 0.5:.3f} abcdef0123\n"
