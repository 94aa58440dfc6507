"""GPUs by name, or by a file that describes one: :func:`find_product`, :func:`find_product_of`, :func:`list_product_names`.

The table ``products.toml`` is part of this package, so what is wrong with it is a :class:`~gpa_lsp.foundation.errors.CatalogueError`.

A GPU that is not for sale is described in a file of TOML, and every place that takes a name takes the file's path::

    # a100-big-l2.toml
    base = "A100 SXM4 40GB"     # a known GPU, whose figures hold where none is given; without it those marked * must be given
    name = "A100 with 80 MiB of L2"    # the file's name where it is not given
    compute_capability = "8.0"  # * of the architecture whose tables hold
    sm_count = 108              # *
    sm_boost_mhz = 1410         # *
    memory_bus_bits = 5120      # *
    memory_gb_per_s = 1555      # * as published
    l2_kib = 81920              # * all of it
    l2_slices = 80
    l1_kib = 192                # of one SM, with its shared memory; that of the architecture where it is not given
    l2_gb_per_s = 4000          # that kernels reach; for another number of SMs or clock the base's grows as they do
    dram_gb_per_s = 1400        # that kernels reach; for another published bandwidth the base's grows with it
    fp32_accumulation = "full"  # or "half": the rate of tensor instructions that accumulate in FP32
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import CatalogueError, InputError, UnknownArchitectureError
from gpa_lsp.foundation.number_expressions import Names
from gpa_lsp.foundation.toml_tables import Table, read_own_table, read_toml
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.arch.sections import parse_compute_capability
from gpa_lsp.gpu.device.model import TRANSFERS_PER_CLOCK, OperationKind
from gpa_lsp.profile.model import Device

PRODUCTS_FILE = Path(__file__).parent / "products.toml"

T = TypeVar("T", int, float)

_MEGA, _GIGA, _TERA = 1e6, 1e9, 1e12
_SUFFIX = ".toml"  # Of the files that describe a GPU
_LONGEST_NAME = 80
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
    described_in: Path | None = None  # the user's file, of a GPU that is not for sale
    base: "Product | None" = None  # that the file starts from
    l1_bytes: int | None = None  # of one SM, with shared memory; None for that of the architecture
    l2_bytes_per_s: float | None = None  # that kernels reach, where the file says it
    dram_bytes_per_s: float | None = None  # that kernels reach, where the file says it


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
    keys = [_list_keys(product) for product in products]
    if sum(map(len, keys)) != len(set().union(*keys)):
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
    A name that ends in ``.toml`` is the path of a file that describes one.

    Raises:
        InputError: none has it, and the message lists near names; or the file describes none, and the message says the line.

    >>> find_product("nvidia geforce rtx3090").sm_count, find_product("A100").name
    (82, 'A100 PCIe 40GB')
    """
    found = list_products_named(name)
    if found:
        return found[0]
    near = ", ".join(_list_near(_simplify(name)))
    raise InputError(f"no known GPU is named {name[:80]!r}", remedy=f"name one of {near}, or a .toml file")


def list_products_named(name: str) -> tuple[Product, ...]:
    """The products a name can mean: the one that has it, else the boards of which it is the first words, else those with words between them.

    >>> len(list_products_named("A100")), len(list_products_named("A10")), list_products_named("A1")
    (4, 1, ())
    >>> [one.name for one in list_products_named("A100 80GB")]
    ['A100 PCIe 80GB', 'A100 SXM4 80GB']
    """
    if name.lower().endswith(_SUFFIX):
        return (read_product(Path(name)),)
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
    """A note on the board taken for a name that a user gave, where several have the name or a file describes it.

    >>> note_choice("A100")
    ('A100 was taken as the A100 PCIe 40GB; it could be the A100 PCIe 80GB, A100 SXM4 40GB or A100 SXM4 80GB',)
    >>> note_choice(None)
    ()
    """
    if name is None:
        return ()
    product = find_product(name)
    if product.described_in is not None:
        base = "" if product.base is None else f", starting from the {product.base.name}"
        return (f"{product.name} is described in {product.described_in}{base}",)
    taken = product.name
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
    """Whether two names are of one product, or read alike without the vendor's brand words.

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
    return read_own_table(PRODUCTS_FILE)


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


def read_product(path: Path) -> Product:
    """The GPU that a file describes; see the module for its keys.

    Raises:
        InputError: it cannot be read, or describes no GPU; says the line.
    """
    table = read_toml(path)
    table.check_keys(_KEYS, "a GPU")
    base = _read_base(table)
    name = table.read_text("name", path.stem)
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise table.refuse("the name is not a line of at most 80 characters", remedy="shorten it", key="name")
    boost_hz = _read(table, "sm_boost_mhz", None if base is None else base.sm_boost_hz, unit=_MEGA)
    bus_bits = int(_read(table, "memory_bus_bits", None if base is None else base.memory_bus_bits))
    bytes_per_s = _read(table, "memory_gb_per_s", None if base is None else base.memory_bytes_per_s, unit=_GIGA)
    memory_hz = bytes_per_s * 8 / bus_bits / TRANSFERS_PER_CLOCK
    if base is not None and (bus_bits, bytes_per_s) == (base.memory_bus_bits, base.memory_bytes_per_s):
        memory_hz = base.memory_clock_hz
    has_own_clock = base is None or boost_hz != base.sm_boost_hz
    l2_bytes = None if base is None else base.l2_bytes
    if base is None or l2_bytes is not None or "l2_kib" in table.content:
        l2_bytes = round(_read(table, "l2_kib", l2_bytes, unit=1024))
    return Product(
        name=f"{name} (hypothetical)",
        device_names=(),
        compute_capability=_read_capability(table, base),
        fp32_accumulation=Accumulation(
            table.read_choice(
                "fp32_accumulation", tuple(Accumulation), Accumulation.FULL if base is None else base.fp32_accumulation
            )
        ),
        sm_count=round(_read(table, "sm_count", None if base is None else base.sm_count)),
        sm_base_hz=None if base is None or has_own_clock else base.sm_base_hz,
        sm_boost_hz=boost_hz,
        tensor_boost_hz=boost_hz if base is None else base.tensor_boost_hz * boost_hz / base.sm_boost_hz,
        memory_bus_bits=bus_bits,
        memory_clock_hz=memory_hz,
        memory_bytes_per_s=bytes_per_s,
        l2_bytes=l2_bytes,
        l2_slices=_read_optional(table, "l2_slices", None if base is None else base.l2_slices, round),
        peaks={},
        sources=(f"described in {path}",),
        described_in=path,
        base=base,
        l1_bytes=_read_optional(table, "l1_kib", None, lambda kib: round(kib * 1024)),
        l2_bytes_per_s=_read_optional(table, "l2_gb_per_s", None, lambda rate: rate * _GIGA),
        dram_bytes_per_s=_read_optional(table, "dram_gb_per_s", None, lambda rate: rate * _GIGA),
    )


_WHOLE_KEYS = ("sm_count", "memory_bus_bits", "l2_kib", "l2_slices", "l1_kib")
_RATE_KEYS = ("sm_boost_mhz", "memory_gb_per_s", "l2_gb_per_s", "dram_gb_per_s")
_KEYS = frozenset({"base", "name", "compute_capability", "fp32_accumulation", *_WHOLE_KEYS, *_RATE_KEYS})
_MOST = 1e9  # Of any figure in the unit of its key: far beyond what could be built


def _read_base(table: Table) -> Product | None:
    if "base" not in table.content:
        return None
    name = table.read_text("base")
    if name.lower().endswith(_SUFFIX):
        raise table.refuse("base is a file", remedy="start from a GPU that is known by name", key="base")
    try:
        return find_product(name)
    except InputError as error:
        raise table.locate(error, "base") from None


def _read_capability(table: Table, base: Product | None) -> tuple[int, int]:
    if base is not None and "compute_capability" not in table.content:
        return base.compute_capability
    text = table.read_text("compute_capability")
    try:
        capability = parse_compute_capability(text, "")
        find_architecture(capability)
    except (CatalogueError, UnknownArchitectureError):
        known = ", ".join(f"{major}.{minor}" for major, minor in list_architectures())
        message = f"no architecture of compute capability {text[:20]} is known"
        raise table.refuse(message, remedy=f"choose among {known}", key="compute_capability") from None
    return capability


def _read(table: Table, key: str, default: float | None, *, unit: float = 1.0) -> float:
    """A figure in SI units, the base's where it is not given."""
    if key not in table.content and default is not None:
        return default
    if key not in table.content:
        remedy = f'write {key} = NUMBER, or base = "A100 SXM4 40GB" to start from a known GPU'
        raise table.refuse(f"{key!r} is missing", remedy=remedy)
    if key in _WHOLE_KEYS:
        return table.read_integer(key, Names().find, least=1, most=int(_MOST)) * unit
    value = table.read_number(key, Names().find)
    if not 0 < value <= _MOST:
        raise table.refuse(f"{key} is {value}", remedy="give a number above 0", key=key)
    return value * unit


def _read_optional(table: Table, key: str, default: T | None, convert: Callable[[float], T]) -> T | None:
    return convert(_read(table, key, None)) if key in table.content else default
