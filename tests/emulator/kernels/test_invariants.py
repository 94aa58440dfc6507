"""Results that must not depend on how a launch is emulated, and numbers of an emulation that must agree."""

from importlib import import_module

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Sampling, SamplingKind, TraceSettings
from tests.emulator.kernels.compiling import SOURCES, read_source
from tests.emulator.kernels.running import BUDGET, Case, list_differences, load_module, read_cases
from tests.patience import LIMIT_S

for _family in (
    "reductions",
    "sorting",
    "stencils",
    "matrices",
    "warps",
    "control",
    "integers",
    "memory",
    "clusters",
):
    import_module(f"tests.emulator.kernels.references.{_family}")

_CHOSEN = (
    "reduce_tree",
    "reduce_shuffle",
    "scan_warp",
    "sort_bitonic",
    "hotspot",
    "histogram",
    "transpose",
    "atomics_integer",
    "warp_votes",
    "nested_ifs",
    "switch_table",
    "recursive_calls",
    "local_arrays",
    "dynamic_shared",
    "clusters",
)


def _list_cases() -> list[Case]:
    paths = [SOURCES / f"{name}.cu" for name in _CHOSEN]
    return [
        case
        for path in paths
        for case in read_cases(
            path.with_suffix(".launch.toml"), path, read_source(path).flags, max(80, read_source(path).least)
        )
    ]


CASES = _list_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_do_not_depend_on_checks_traces_and_the_size_of_batches(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    traced = emulate(module, case.launch, budget=BUDGET, trace=TraceSettings(), check_races=False)
    assert list_differences(case, traced) == []
    small = emulate(module, case.launch, budget=Budget(seconds=LIMIT_S, memory_bytes=5 << 19))
    assert small.is_complete
    assert small.peak_bytes <= 5 << 19
    assert list_differences(case, small) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_traces_and_counts_tell_of_the_same_executions(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    emulation = emulate(module, case.launch, budget=BUDGET, trace=TraceSettings(entries=True))
    trace = emulation.trace
    assert trace is not None
    assert trace.is_complete
    accesses, branches = trace.accesses, trace.branches
    size = len(emulation.instructions)
    # However an instruction was reached, it is one.
    static = np.array([one.index if one.same_as is None else one.same_as for one in trace.instructions])
    accessing, branching = static[accesses.instruction], static[branches.instruction]
    lanes = np.bincount(accessing, weights=_count_bits(accesses.lane_mask), minlength=size)
    warps = np.bincount(accessing, minlength=size)
    is_access = np.array([one.kind is not None and one.space is not Space.PARAM for one in emulation.instructions])
    assert is_access.any()
    assert lanes[is_access].tolist() == emulation.counts.lane_executions[is_access].tolist()
    # A warp whose guard is false in every lane executes the instruction and touches nothing.
    assert (warps[is_access] <= emulation.counts.warp_executions[is_access]).all()
    assert not lanes[~is_access].any()
    assert len(accesses.addresses) == int(lanes.sum())
    assert not (branches.taken_mask & ~branches.active_mask).any()
    is_branch = np.array([one.text.startswith("bra") for one in emulation.instructions])
    is_traced = np.isin(np.arange(size), branching) & is_branch
    taken = np.bincount(branching, weights=_count_bits(branches.taken_mask), minlength=size)
    executed = np.bincount(branching, minlength=size)
    assert taken[is_traced].tolist() == emulation.counts.lane_executions[is_traced].tolist()
    assert executed[is_traced].tolist() == emulation.counts.warp_executions[is_traced].tolist()
    assert trace.traced_blocks.tolist() == emulation.executed_blocks.tolist()
    assert emulation.warp_instructions == int(emulation.counts.warp_executions.sum())


def _count_bits(
    masks: "np.ndarray[tuple[int, ...], np.dtype[np.uint32]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.unpackbits(masks.astype("<u4").view(np.uint8).reshape(-1, 4), axis=1).sum(axis=1, dtype=np.int64)


def test_addresses_of_global_accesses_lie_in_their_arrays() -> None:
    (case,) = (case for case in CASES if case.launch.kernel == "transpose_naive")
    trace = emulate(load_module(case.source, 80), case.launch, budget=BUDGET, trace=TraceSettings()).trace
    assert trace is not None
    arrays = {buffer.name: buffer for buffer in trace.buffers}
    width, height = 40, 30
    stores = trace.accesses.addresses[np.repeat(_is_kind(trace, 1), _count_bits(trace.accesses.lane_mask))]
    elements = (stores - arrays["out"].base) // 4
    assert sorted(elements.tolist()) == list(range(width * height))


def _is_kind(trace: object, kind: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    kinds = np.array([-1 if one.kind is None else int(one.kind) for one in trace.instructions])  # type: ignore[attr-defined]
    return kinds[trace.accesses.instruction] == kind  # type: ignore[attr-defined]


def test_sampled_blocks_are_executed_and_others_are_not() -> None:
    (case,) = (case for case in CASES if case.launch.kernel == "sort_bitonic" and case.launch.title)
    module = load_module(case.source, 80)
    sampled = emulate(module, case.launch, budget=BUDGET, sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=(3, 259)))
    whole = emulate(module, case.launch, budget=BUDGET)
    assert sampled.executed_blocks.tolist() == [3, 259]
    keys, all_keys = (one.arrays["keys"].reshape(-1, 128) for one in (sampled, whole))
    is_same = (keys == all_keys).all(axis=1)
    assert np.flatnonzero(is_same).tolist() == [3, 259]
