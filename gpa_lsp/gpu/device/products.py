"""Published products by name: :func:`find_product`, :func:`find_product_of`, :func:`list_product_names`.

The table ``products.toml`` is part of this package, so what is wrong with it is a :class:`~gpa_lsp.foundation.errors.CatalogueError`.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import tomli
from msgspec import Struct

from gpa_lsp.foundation.errors import CatalogueError, InputError
from gpa_lsp.gpu.arch.sections import parse_compute_capability
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Device

PRODUCTS_FILE = Path(__file__).parent / "products.toml"

_MEGA, _GIGA, _TERA = 1e6, 1e9, 1e12
_NEAR_NAMES = 6  # How many names a message lists
_VENDOR_WORDS = re.compile(r"nvidia|geforce|tesla|quadro", re.IGNORECASE)


class Accumulation(StrEnum):
    """The rate of tensor instructions that accumulate in FP32, beside those that accumulate in FP16."""

    FULL = "full"  # The same: boards for workstations and data centres
    HALF = "half"  # Half of it: GeForce boards since Turing


class Product(Struct, frozen=True, kw_only=True):
    """Published figures of one product."""

    name: str  # the shortest clear one
    device_names: tuple[str, ...]  # as the driver reports it
    compute_capability: tuple[int, int]  # (major, minor)
    fp32_accumulation: Accumulation  # the rate of tensor instructions that accumulate in FP32
    sm_count: int  # streaming multiprocessors
    sm_base_hz: float | None  # base clock; None where no source states it
    sm_boost_hz: float  # boost clock
    tensor_boost_hz: float  # the clock published tensor rates hold at
    memory_bus_bits: int  # width of the memory bus
    memory_clock_hz: float  # as device attributes and ``dram__cycles`` count; half of a pin's data rate
    memory_bytes_per_s: float  # published bandwidth
    l2_bytes: int | None  # size of L2; None where no source states it
    l2_slices: int | None  # as device attribute ``l2s_count``; None where no source states it
    peaks: Mapping[OperationKind, float]  # published dense peaks in operations per second; a check, never roofs
    sources: tuple[str, ...]  # full citations


@cache
def load_products() -> tuple[Product, ...]:
    """Every product, in the table's order.

    Raises:
        CatalogueError: the table is malformed.
    """
    document = _load_document()
    try:
        products = tuple(_build_product(entry, document["sources"]) for entry in document["products"])
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogueError(f"{PRODUCTS_FILE.name}: {error!r}") from error
    keys = [_simplify(name) for product in products for name in {product.name, *product.device_names}]
    names = [(_simplify(product.name), *map(_simplify, product.device_names)) for product in products]
    if sum(len(set(group)) for group in names) != len(set(keys)):
        raise CatalogueError(f"{PRODUCTS_FILE.name}: two products have the same name")
    return products


def list_product_names() -> tuple[str, ...]:
    """Names :func:`find_product` knows, in the table's order.

    >>> "RTX 3090" in list_product_names()
    True
    """
    return tuple(product.name for product in load_products())


def find_product(name: str) -> Product:
    """The product of a name; case, spaces, hyphens and the vendor's brand words do not matter. Of several boards that begin with it, the first.

    Raises:
        InputError: none has it; the message lists near names.

    >>> find_product("nvidia geforce rtx3090").sm_count, find_product("A100").name
    (82, 'A100 PCIe 40GB')
    """
    wanted = _simplify(name)
    found = list_products_named(name)
    if found:
        return found[0]
    raise InputError(f"no known GPU is named {name[:80]!r}", remedy=f"name one of {', '.join(_list_near(wanted))}")


def list_products_named(name: str) -> tuple[Product, ...]:
    """The products a name can mean: the one that has it, else the boards of which it is the first words, else those with words between them.

    >>> len(list_products_named("A100")), len(list_products_named("A10")), list_products_named("A1")
    (4, 1, ())
    >>> [one.name for one in list_products_named("A100 80GB")]
    ['A100 PCIe 80GB', 'A100 SXM4 80GB']
    """
    wanted = _simplify(name)
    exact = [product for product in load_products() if wanted and wanted in _list_keys(product)]
    if exact:
        return tuple(exact[:1])
    words = _split_words(name)
    first = tuple(one for one in load_products() if words and _split_words(one.name)[: len(words)] == words)
    return first or tuple(one for one in load_products() if words and _is_within(words, _split_words(one.name)))


def _is_within(words: Sequence[str], others: Sequence[str]) -> bool:
    """The first of some words is the first of others, and the rest stand behind it in the same order.

    >>> _is_within(["a100", "80gb"], ["a100", "pcie", "80gb"]), _is_within(["80gb"], ["a100", "80gb"])
    (True, False)
    """
    left = iter(others)
    return words[:1] == others[:1] and all(word in left for word in words)


def _split_words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", _VENDOR_WORDS.sub("", name).lower())


def note_choice(name: str | None) -> tuple[str, ...]:
    """Which of several boards is taken for a name that a user gave.

    >>> note_choice("A100")
    ('A100 was taken as the A100 PCIe 40GB; it could be the A100 PCIe 80GB, A100 SXM4 40GB or A100 SXM4 80GB',)
    >>> note_choice(None)
    ()
    """
    if name is None:
        return ()
    taken = find_product(name).name
    others = [one.name for one in list_products_named(name) if one.name != taken]
    if not others:
        return ()
    *first, last = others
    listed = f"{', '.join(first)} or {last}" if first else last
    return (f"{name} was taken as the {taken}; it could be the {listed}",)


def find_product_of(device: Device) -> Product | None:
    """The product a device is, by the name the driver reports; None when none has it, or its figures are of another variant."""
    if device.name is None:
        return None
    key = _simplify(device.name)
    found = next((product for product in load_products() if key in map(_simplify, product.device_names)), None)
    if found is None or device.sm_count not in (None, found.sm_count):
        return None
    return found if device.compute_capability in (None, found.compute_capability) else None


def is_same_name(name: str, other: str) -> bool:
    """Two names are of one product, or read alike without the vendor's brand words.

    >>> is_same_name("A100 PCIe 80GB", "NVIDIA A100 80GB PCIe")
    True
    """
    if _simplify(name) == _simplify(other):
        return True
    keys = {_simplify(name), _simplify(other)}
    return any(keys <= _list_keys(product) for product in load_products())


@cache
def list_accumulation_architectures() -> tuple[tuple[int, int], ...]:
    """Compute capabilities on which the rate of FP32 accumulation in tensor cores depends on the board.

    >>> list_accumulation_architectures()
    ((7, 5), (8, 6), (8, 9), (12, 0))
    """
    texts = _load_document()["accumulation"]["architectures"]
    return tuple(parse_compute_capability(text, PRODUCTS_FILE.name) for text in texts)


def _list_near(wanted: str) -> list[str]:
    """Names that begin with the wanted one, else those that are spelled much alike, else all."""
    by_key = {key: product.name for product in load_products() for key in sorted(_list_keys(product))}
    holding = [name for key, name in by_key.items() if wanted and key.startswith(wanted)]
    alike = [by_key[key] for key in get_close_matches(wanted, by_key, n=_NEAR_NAMES, cutoff=0.5)]
    near = list(dict.fromkeys(holding or alike))
    return near[:_NEAR_NAMES] or list(list_product_names())


def _list_keys(product: Product) -> set[str]:
    return {_simplify(name) for name in (product.name, *product.device_names)}


@lru_cache(maxsize=1 << 10)
def _simplify(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _VENDOR_WORDS.sub("", name).lower())


@cache
def _load_document() -> dict[str, Any]:
    try:
        return tomli.loads(PRODUCTS_FILE.read_text(encoding="utf-8"))
    except tomli.TOMLDecodeError as error:
        raise CatalogueError(f"{PRODUCTS_FILE.name}: {error}") from error


def _build_product(entry: dict[str, Any], sources: dict[str, str]) -> Product:
    left = dict(entry)
    boost_mhz = left.pop("sm_boost_mhz")
    base_mhz, l2_kib = left.pop("sm_base_mhz", None), left.pop("l2_kib", None)
    product = Product(
        name=left.pop("name"),
        device_names=tuple(left.pop("device_names")),
        compute_capability=parse_compute_capability(left.pop("compute_capability"), PRODUCTS_FILE.name),
        fp32_accumulation=Accumulation(left.pop("fp32_accumulation")),
        sm_count=left.pop("sm_count"),
        sm_base_hz=None if base_mhz is None else base_mhz * _MEGA,
        sm_boost_hz=boost_mhz * _MEGA,
        tensor_boost_hz=left.pop("tensor_boost_mhz", boost_mhz) * _MEGA,
        memory_bus_bits=left.pop("memory_bus_bits"),
        memory_clock_hz=left.pop("memory_clock_mhz") * _MEGA,
        memory_bytes_per_s=left.pop("memory_gb_per_s") * _GIGA,
        l2_bytes=None if l2_kib is None else l2_kib * 1024,
        l2_slices=left.pop("l2_slices", None),
        peaks={OperationKind(kind): tera * _TERA for kind, tera in left.pop("peaks_tera").items()},
        sources=tuple(sources[key] for key in left.pop("source")),
    )
    if left:
        raise ValueError(f"{product.name} has unknown keys: {', '.join(left)}")
    return product
