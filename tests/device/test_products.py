"""Products by name."""

import pytest

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.products import (
    Accumulation,
    find_product,
    find_product_of,
    is_same_name,
    list_product_names,
    load_products,
)
from tests.device.builders import make_device

ASKED_FOR = (
    *("V100 SXM2", "V100 PCIe", "T4", "A100 PCIe 40GB", "A100 PCIe 80GB", "A100 SXM4 80GB", "A10", "A40"),
    *("RTX A5000", "RTX A6000", "RTX 2080 Ti", "RTX 3070", "RTX 3080", "RTX 3090", "RTX 4090", "L4", "L40S"),
    *("H100 PCIe", "H100 SXM5", "H200", "GH200 96GB", "B200", "RTX 5090"),
)


def test_the_usual_products_are_there() -> None:
    assert set(ASKED_FOR) <= set(list_product_names())


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("rtx3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("GeForce-RTX-3090", "RTX 3090"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("a100 80gb pcie", "A100 PCIe 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
    ],
)
def test_names_as_people_and_drivers_write_them(name: str, product: str) -> None:
    assert find_product(name).name == product


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("A100 SX", ("A100 SXM4 40GB", "A100 SXM4 80GB")),
        ("H10", ("H100 PCIe", "H100 SXM5")),
        ("RTX 4080", ("RTX 4090", "RTX 3080")),
        ("V10", ("V100 SXM2", "V100 PCIe")),
    ],
)
def test_a_name_that_fits_none_or_several_lists_near_ones(name: str, near: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        find_machine_by_name(name)
    assert name in str(caught.value)
    for other in near:
        assert other in str(caught.value)


@pytest.mark.parametrize("name", ["", "   ", "NVIDIA", "Ж" * 10_000, "\0"])
def test_names_of_nothing_list_what_there_is(name: str) -> None:
    with pytest.raises(InputError, match="V100") as caught:
        find_machine_by_name(name)
    assert "RTX 5090" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_device_names_lead_to_one_product_each() -> None:
    for product in load_products():
        for name in product.device_names:
            device = make_device(name, product.compute_capability, product.sm_count)
            assert find_product_of(device) is product
            assert find_product_of(make_device(name, product.compute_capability, product.sm_count + 2)) is None
            assert find_product_of(make_device(name, (1, 0), product.sm_count)) is None
    assert find_product_of(make_device(None)) is None


def test_clocks_are_in_hertz_and_in_order() -> None:
    for product in load_products():
        assert 1e9 < product.sm_boost_hz < 3e9
        assert product.sm_base_hz is None or 5e8 < product.sm_base_hz < product.sm_boost_hz
        assert product.sm_boost_hz * 0.9 < product.tensor_boost_hz <= product.sm_boost_hz
        assert 5e8 < product.memory_clock_hz < 2e10


def test_boards_of_the_brand_accumulate_at_half_rate() -> None:
    for product in load_products():
        is_geforce = any("GeForce" in name for name in product.device_names)
        assert (product.fp32_accumulation is Accumulation.HALF) is is_geforce


def test_same_names() -> None:
    assert is_same_name("RTX 3090", "NVIDIA GeForce RTX 3090")
    assert is_same_name("A100-PCIE-40GB", "A100 PCIe 40GB")
    assert not is_same_name("A100 PCIe 80GB", "A100 PCIe 40GB")
    assert is_same_name("Some GPU", "some-gpu")


def test_a_board_that_is_not_there_is_near_those_that_begin_alike() -> None:
    with pytest.raises(InputError, match=r"name one of V100 SXM2, V100 PCIe$"):
        find_product("V10")


@pytest.mark.parametrize(("name", "first"), [("A100", "A100 PCIe 40GB"), ("H100", "H100 PCIe"), ("V100", "V100 SXM2")])
def test_of_several_boards_that_begin_with_a_name_the_first_is_taken(name: str, first: str) -> None:
    assert find_product(name).name == first
