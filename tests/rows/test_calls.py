"""What called functions cost on the instructions that call them."""

import pytest

from gpa_lsp.kernel.calls import estimate_called_samples
from tests.rows.builders import make_function, make_kernel, make_section, make_sub_function


def test_a_callees_samples_are_shared_by_how_often_each_site_executed():
    callee = make_section(make_function("slow", 4), [30, 0, 10])
    caller = make_function("kernel", 8, call_symbols={16: "slow", 64: "slow"})
    kernel = make_kernel(make_section(caller, [5], calls={1: None, 4: None}, executions={1: 300, 4: 100}), callee)
    called = estimate_called_samples(kernel)
    assert called[1] == pytest.approx(30)
    assert called[4] == pytest.approx(10)
    assert called.sum() == pytest.approx(40)


def test_sites_without_counts_share_evenly():
    callee = make_section(make_function("slow", 4), [40])
    caller = make_function("kernel", 8, call_symbols={16: "slow", 64: "slow"})
    called = estimate_called_samples(make_kernel(make_section(caller, [], calls={1: None, 4: None}), callee))
    assert called[[1, 4]].tolist() == [20, 20]


def test_callees_of_callees_count_at_the_outermost_site_too():
    inner = make_section(make_function("inner", 4), [7])
    outer = make_section(make_function("outer", 4, call_symbols={0: "inner"}), [3], calls={0: None})
    caller = make_function("kernel", 4, call_symbols={32: "outer"})
    called = estimate_called_samples(make_kernel(make_section(caller, [1], calls={2: None}), outer, inner))
    assert called[2] == pytest.approx(10)
    assert called[4] == pytest.approx(7)


def test_local_functions_of_the_same_section_are_callees():
    function = make_function("kernel", 12, sub_functions=(make_sub_function("$kernel$slow", 8, 4),))
    section = make_section(function, [1, 1, 1, 1, 0, 0, 0, 0, 6, 6], calls={2: 8})
    called = estimate_called_samples(make_kernel(section))
    assert called[2] == pytest.approx(12)


def test_recursion_ends_and_counts_nothing_twice():
    function = make_function("kernel", 12, sub_functions=(make_sub_function("$kernel$rec", 8, 4),))
    section = make_section(function, [1, 0, 0, 0, 0, 0, 0, 0, 5, 5], calls={2: 8, 9: 8}, executions={2: 10, 9: 90})
    called = estimate_called_samples(make_kernel(section))
    assert called[2] == pytest.approx(10)
    assert called[9] == 0


def test_a_long_chain_of_calls_needs_no_stack():
    sections = [
        make_section(make_function(f"f{i}", 2, call_symbols={0: f"f{i + 1}"}), [1], calls={0: None})
        for i in range(3000)
    ]
    called = estimate_called_samples(make_kernel(*sections))
    assert called[0] == pytest.approx(2999)
