"""Functions of absolute addresses, with and without a function table."""

import numpy as np
import pytest

from gpa_lsp.foundation.errors import MismatchError
from gpa_lsp.kernel.place import build_address_map
from gpa_lsp.profile.model import LoadedFunction, Module
from tests.rows.builders import make_cubin, make_executions, make_function, make_launch


def locate(address_map, *addresses):
    found = address_map.locate(np.array(addresses, dtype=np.uint64))
    return [address_map.names[index] if index >= 0 else None for index in found.tolist()]


def module_of(*functions):
    return Module(module_id=1, image=b"", compute_capability=(8, 6), functions=tuple(functions))


def test_functions_of_a_table_reach_as_far_as_their_code():
    cubin = make_cubin([make_function("kernel", 8), make_function("callee", 4)])
    module = module_of(LoadedFunction(name="callee", address=0x1000), LoadedFunction(name="kernel", address=0x2000))
    address_map = build_address_map(make_launch("kernel"), module, cubin)
    assert locate(address_map, 0xFFF, 0x1000, 0x103F, 0x1040, 0x2000, 0x207F, 0x2080) == [
        None, "callee", "callee", None, "kernel", "kernel", None,
    ]  # fmt: skip


def test_functions_of_one_name_are_told_apart_by_symbol_index():
    slow = [make_function("slow", 4, symbol_index=5), make_function("slow@9", 4, symbol_index=7)]
    cubin = make_cubin([make_function("kernel", 8), *slow])
    module = module_of(
        LoadedFunction(name="kernel", address=0x1000),
        LoadedFunction(name="slow", address=0x2000, symbol_index=7),
        LoadedFunction(name="slow", address=0x3000, symbol_index=5),
    )
    assert locate(build_address_map(make_launch("kernel"), module, cubin), 0x2000, 0x3000) == ["slow@9", "slow"]


@pytest.mark.parametrize("own_address", [0x1000, 0x5000])
def test_of_two_addresses_of_one_name_the_launchs_own_counts(own_address: int):
    module = module_of(LoadedFunction(name="kernel", address=0x1000), LoadedFunction(name="kernel", address=0x5000))
    launch = make_launch("kernel", function_addresses=(own_address,))
    address_map = build_address_map(launch, module, make_cubin([make_function("kernel", 8)]))
    assert address_map.starts.tolist() == [own_address]


def test_a_single_address_without_table_is_the_kernels():
    cubin = make_cubin([make_function("kernel", 8)])
    launch = make_launch("kernel", function_addresses=(0x4000,))
    assert locate(build_address_map(launch, None, cubin), 0x3FF0, 0x4000, 0x407F, 0x4080) == [
        None,
        "kernel",
        "kernel",
        None,
    ]


def test_several_addresses_without_names_are_told_apart_by_size():
    functions = [make_function("kernel", 64), make_function("callee", 8)]
    cubin = make_cubin(functions, calls=[("kernel", "callee")])
    counted = {0x1000 + 16 * i: 1 for i in range(5)} | {0x2000 + 16 * i: 1 for i in range(60)}
    launch = make_launch("kernel", function_addresses=(0x1000, 0x2000), metrics=make_executions(counted))
    assert locate(build_address_map(launch, None, cubin), 0x1000, 0x2000) == ["callee", "kernel"]


def test_addresses_that_fit_several_functions_stay_nameless():
    functions = [make_function("kernel", 64), make_function("one", 8), make_function("other", 8)]
    cubin = make_cubin(functions, calls=[("kernel", "one"), ("kernel", "other")])
    counted = {0x1000 + 16 * i: 1 for i in range(5)} | {0x2000 + 16 * i: 1 for i in range(60)}
    launch = make_launch("kernel", function_addresses=(0x1000, 0x2000), metrics=make_executions(counted))
    assert locate(build_address_map(launch, None, cubin), 0x1000, 0x2000) == [None, "kernel"]


def test_a_kernel_the_cubin_lacks_is_refused():
    with pytest.raises(MismatchError, match="does not contain it"):
        build_address_map(make_launch("kernel"), None, make_cubin([make_function("other", 8)]))


def test_without_a_cubin_a_function_reaches_to_the_next():
    module = module_of(LoadedFunction(name="a", address=0x1000), LoadedFunction(name="kernel", address=0x2000))
    assert locate(build_address_map(make_launch("kernel"), module, None), 0x1FF0, 0x2000) == ["a", "kernel"]
