"""Properties of simulated times: no split of the same work becomes slower, and a larger GPU is never slower."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction import simulation
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_launch
from gpa_lsp.execution.simulator.simulate import simulate_kernel
from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.gpu.device.products import find_product
from tests.conftest import examples

SOURCE = Path(__file__).parent / "sources" / "sizes.cu"
# Arguments of each kernel behind those that all have: arrays with their elements for each thread, or values
KERNELS = {
    "scale": "from float 1, to float 1",
    "gather": "from float 1, at index 1, to float 1",
    "strided": "from float 1, to float 1",
    "polynomial": "from float 1, to float 1",
    "roots": "from float 1, to float 1",
    "column": "from float 16, to float 1",
    "table": "from float 1, values float 1, to float 1",
    "fill": "to float 1",
    "neighbours": "from float 1, to float 1",
    "doubles": "from double 1, to double 1",
    "count": "from index 1, bins int 1",
}
VALUES = {"polynomial": 64, "roots": 16, "column": 16, "table": 16, "doubles": 16, "count": 256}
"""The last argument, of kernels that have one behind the number of threads."""
_GPU = "A100 SXM4 40GB"
kernels = st.sampled_from(sorted(KERNELS))
threads = st.sampled_from([1 << 16, 3 << 16, 1 << 18, 5 << 18, 1 << 21])


@cache
def compile_for(capability: tuple[int, int]) -> CompiledUnit:
    try:
        unit = compile_source(SOURCE, compute_capability=capability)
    except MissingToolError as error:
        pytest.skip(str(error))
    assert not unit.has_failed
    return unit


def describe(kernel: str, count: int, grid: tuple[int, int], block: int) -> str:
    """A launch of a kernel with so many threads."""
    arguments = []
    for name, kind, each in (one.split() for one in KERNELS[kernel].split(", ")):
        fill = f', fill = "uniform", low = 0, high = {count - 1}' if kind == "index" else ""
        type_name = "int" if kind == "index" else kind
        arguments.append(f'{{ name = "{name}", type = "{type_name}", count = {count * int(each)}{fill} }}')
    arguments += [f'{{ name = "n{value}", type = "int", value = {value} }}' for value in (count, VALUES.get(kernel))
                  if value is not None]  # fmt: skip
    return (
        f'[[launch]]\nkernel = "{kernel}"\ngrid = {list(grid)}\nblock = {block}\narguments = [{", ".join(arguments)}]\n'
    )


Simulate = Callable[..., float]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    folder = tmp_path_factory.mktemp("sizes")

    def find_cycles(kernel: str, count: int, *, block: int = 256, rows: int = 1, machine: str = _GPU) -> float:
        """Cycles of a launch in blocks of so many threads, in a grid of so many rows, on a GPU by its name or its description."""
        path, gpu = folder / "one.launch.toml", folder / "gpu.toml"
        path.write_text(describe(kernel, count, (count // block // rows, rows), block), encoding="utf-8")
        if "\n" in machine:
            gpu.write_text(machine, encoding="utf-8")
            machine = str(gpu)
        (launch,) = read_launches(path)
        unit = compile_for(find_product(machine).compute_capability)
        found = simulate_launch(unit, launch, path=SOURCE, settings=SimulationSettings(machine=machine))
        assert found.problems == ()
        return found.launches[0].simulated.cycles

    return find_cycles


def describe_gpu(sm_count: int, gb_per_s: float) -> str:
    """A GPU as the A100, but for its SMs and the bandwidth of its DRAM."""
    return f'base = "{_GPU}"\nsm_count = {sm_count}\nmemory_gb_per_s = {round(gb_per_s)}\n'


def find_noise(kernel: str) -> float:
    return 1.12 if kernel == "count" else 1.04  # atomic operations meet as the drawn data has it


@examples(20)
@given(kernel=kernels, count=threads, block=st.sampled_from([1024, 512, 256]), parts=st.sampled_from([2, 4]),
       machine=st.sampled_from([_GPU, "T4"]))  # fmt: skip
def test_no_split_into_smaller_blocks_is_slower(
    simulate: Simulate, *, kernel: str, count: int, block: int, parts: int, machine: str
) -> None:
    """Dealing out more blocks would take longer: in this test it takes no time."""
    least = 256 if machine == "T4" else 128  # an SM holds 16 and 32 blocks
    with pytest.MonkeyPatch.context() as patches:
        changes = {"block_interval_cycles": 0.0}
        patches.setattr(simulation, "simulate_kernel", partial(simulate_kernel, changes=changes))
        whole = simulate(kernel, count, block=block, machine=machine)
        split = simulate(kernel, count, block=max(block // parts, least), machine=machine)
    assert split <= find_noise(kernel) * whole


@examples(6)
@given(kernel=kernels, count=threads, rows=st.sampled_from([2, 4, 32, 256]))
def test_no_split_along_another_axis_of_the_grid_is_slower(
    simulate: Simulate, *, kernel: str, count: int, rows: int
) -> None:
    one, other = simulate(kernel, count), simulate(kernel, count, rows=rows)
    assert one / find_noise(kernel) <= other <= find_noise(kernel) * one


@examples(15)
@given(kernel=kernels, count=threads, sm_count=st.integers(16, 200), more=st.integers(1, 100),
       wider=st.sampled_from([1.0, 1.1, 2.0]))  # fmt: skip
def test_a_larger_gpu_is_not_slower(
    simulate: Simulate, *, kernel: str, count: int, sm_count: int, more: int, wider: float
) -> None:
    rate = 14.4 * sm_count  # GB/s
    small = simulate(kernel, count, machine=describe_gpu(sm_count, rate))
    large = simulate(kernel, count, machine=describe_gpu(sm_count + more, wider * rate))
    assert large <= find_noise(kernel) * small


def test_rims_that_neighbours_read_are_read_once_and_bins_that_blocks_share_are_written_once(
    simulate: Simulate,
) -> None:
    """Small blocks have more rim and more bins for each thread, which L2 holds."""
    assert simulate("neighbours", 1 << 21) <= 1.04 * simulate("neighbours", 1 << 21, block=1024)
    few, many = (simulate("count", 1 << 16, machine=describe_gpu(size, 1555)) for size in (27, 107))
    assert many <= 1.08 * few
