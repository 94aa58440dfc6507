"""The trace lengths of Table IV, on kernels that do what Rodinia's do, beside those that the hybrid paper prints."""

from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.hybrid.executed_trace import trace_executed
from gpa_lsp.execution.hybrid.walk import KernelTrace
from gpa_lsp.execution.launches.launch import Argument, ArrayArgument, Generator, LaunchDescription, ScalarArgument
from tests.emulator.kernels.running import load_module
from tests.hybrid.test_walk import make_traced, walk

_SOURCE = Path(__file__).with_name("rodinia.cu")
_THREADS = 256


def _array(name: str, kind: ScalarType = ScalarType.F32, count: int = 1 << 14, **fills: object) -> ArrayArgument:
    return ArrayArgument(name=name, type=kind, count=count, **fills)  # type: ignore[arg-type]


def _number(name: str, value: int | float, kind: ScalarType = ScalarType.S32) -> ScalarArgument:
    return ScalarArgument(name=name, type=kind, value=value)


def _bytes(name: str, value: int = 0) -> ArrayArgument:
    return _array(name, ScalarType.S8, _THREADS, generator=Generator.CONSTANT, value=value)


def _describe(kernel: str, *arguments: Argument, is_square: bool = False) -> LaunchDescription:
    block, grid = ((16, 16, 1), (1, 4, 1)) if is_square else ((_THREADS, 1, 1), (1, 1, 1))
    return LaunchDescription(kernel=kernel, block=block, grid=grid, arguments=arguments)


def _describe_search(edges_of_each: int) -> LaunchDescription:
    """A graph whose nodes have as many edges each, all of them to be visited."""
    nodes = tuple(number for one in range(_THREADS) for number in (one * edges_of_each, edges_of_each))
    return _describe(
        "BFS_1",
        _array("nodes", ScalarType.S32, 2 * _THREADS, generator=Generator.VALUES, values=nodes),
        _array("edges", ScalarType.S32, edges_of_each * _THREADS, generator=Generator.UNIFORM, high=float(_THREADS)),
        _bytes("mask", 1),
        _bytes("updating"),
        _bytes("visited"),
        _array("cost", ScalarType.S32, _THREADS),
        _number("count", _THREADS),
    )


_PLACE = (_number("latitude", 30.0, ScalarType.F32), _number("longitude", 90.0, ScalarType.F32))
_KERNELS = {
    "nearestNeighbor": (_array("places"), _array("distances"), _number("count", _THREADS), *_PLACE),
    "BFS_2": (*map(_bytes, ("mask", "updating", "visited", "over")), _number("count", _THREADS)),
    "bpnn_layerforward": (_array("input"), _array("weights"), _array("sums"), _number("in", 64), _number("hid", 16)),
    "bpnn_adjust_weights": (
        _array("delta"), _number("hid", 16), _array("values"), _number("in", 64), _array("weights"), _array("old"),
    ),
}  # fmt: skip


def _search(launch: LaunchDescription) -> KernelTrace:
    module = load_module(_SOURCE, 80)
    return walk(module, module.functions[launch.kernel], launch)


@pytest.mark.parametrize(
    ("kernel", "own", "published"),
    [
        ("nearestNeighbor", 9, 9),
        ("BFS_2", 6, 7),
        ("bpnn_layerforward", 72, 74),
        ("bpnn_adjust_weights", 38, 41),  # of the warps of the first block; those of the others, 22
    ],
)
def test_trace_lengths(kernel: str, own: int, published: int) -> None:
    trace = _search(_describe(kernel, *_KERNELS[kernel], is_square=kernel.startswith("bpnn")))
    longest = int(trace.lengths.max())
    assert longest == own
    assert 0.85 <= longest / published <= 1


def _execute(edges_of_each: int) -> KernelTrace:
    launch = _describe_search(edges_of_each)
    module = load_module(_SOURCE, 80)
    function = module.functions["BFS_1"]
    return trace_executed(module, function, launch, make_traced(module, function, launch), Budget())


def test_the_trace_of_a_search_grows_with_the_edges_of_a_node() -> None:
    """BFS_1, whose bound is in the data (Section III-B4): the published 79 are those of nodes with seven edges."""
    lengths = [int(_execute(edges).lengths.max()) for edges in (1, 2, 7, 8)]
    assert np.diff(lengths).tolist() == [10, 50, 10]
    assert min(abs(one - 79) for one in lengths) <= 5
    (loop,) = _execute(7).loops
    assert (loop.least, loop.most) == (7, 7)
