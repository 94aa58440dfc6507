"""GPUs as the volume model sees them: :class:`VolumeDevice`, :func:`find_device`, :func:`find_paper_device`.

Most comes from :mod:`gpa_lsp.gpu.device.products` and the architecture tables; ``devices.toml`` adds bandwidths that were measured.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.accesses.l2_traffic import L2Cache
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import Sentence, percent, say
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Unknown, parse_compute_capability
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.gpu.device.products import Product, find_product
from gpa_lsp.gpu.device.rates import list_operation_rates

DEVICES_FILE = Path(__file__).parent / "devices.toml"

_MEGA, _GIGA, _KIBI = 1e6, 1e9, 1024
# Of the published bandwidth of DRAM that streaming kernels reach: 790 of 900 GB/s on a V100, 1,400 of 1,555 on an A100
_DRAM_RATIO = 0.89
_L2_RATIO = 0.33  # Of 64 bytes per SM and cycle that kernels reach: see :func:`_estimate_l2`
SM_BYTES_PER_CYCLE = 64  # an SM takes from L2


class VolumeDevice(Struct, frozen=True, kw_only=True):
    """A GPU."""

    name: str  # for people
    compute_capability: tuple[int, int]  # (major, minor)
    sm_count: int  # streaming multiprocessors
    sm_hz: float  # their clock
    l1_bytes: int  # L1 and shared memory of one SM together
    l2_bytes: int  # L2 that the data of one SM can fill: half where L2 has two partitions, each of which keeps copies of what its SMs use
    l2_bytes_per_s: float  # that kernels reach
    dram_bytes_per_s: float  # that kernels reach
    fp64_flops_per_s: float | None  # peak; None when unknown
    fp32_flops_per_s: float | None  # peak; None when unknown
    source: str  # citation
    # lines that L1 looks up in a cycle in which it hands over no data; None where it is taken to do both at once, and in the published model
    l1_tags_per_cycle: int | None = None
    # thread blocks that can begin; None when unknown, and in the published model
    block_starts_per_s: float | None = None
    l2_ways: int | None = None  # of each of L2's sets; None for one set of all, and in the published model
    # that DRAM gives at once; a sector where that is unknown, and in the published model
    dram_fetch_bytes: int = SECTOR_BYTES
    doubts: tuple[Sentence, ...] = ()  # what of this was assumed, one sentence each

    @property
    def l2(self) -> L2Cache:
        """L2 as a cache of sectors."""
        return L2Cache(size_bytes=self.l2_bytes, ways=self.l2_ways)


@cache
def find_device(name: str) -> VolumeDevice:
    """The device of a product's name, in any spelling :func:`gpa_lsp.gpu.device.products.find_product` knows.

    Raises:
        InputError: no product has the name, or nothing says how large its L2 is.

    >>> device = find_device("v100 pcie")
    >>> device.sm_count, device.l1_bytes, device.l2_bytes, device.dram_bytes_per_s / 1e9
    (80, 131072, 6291456, 790.0)
    >>> find_device("A100 SXM4 80GB").l2_bytes >> 20, find_device("RTX 3090").dram_bytes_per_s < 936e9
    (20, True)
    """
    wanted = name.replace(" ", "").lower()
    for entry in _load_document()["devices"]:
        if "sm_count" in entry and wanted.removeprefix("nvidia") == entry["name"].replace(" ", "").lower():
            return _build(entry, _read_board(entry))
    return build_device(find_product(name))


def build_device(product: Product) -> VolumeDevice:
    """A product as a device; a product that a file describes is its base, scaled to the figures of the file.

    Raises:
        InputError: nothing says how large its L2 is.
    """
    base = product.base
    if base is not None and base.compute_capability == product.compute_capability:
        return _vary(build_device(base), product, base)
    entry: dict[str, Any] = dict(_find_entry(product))
    for key, rate in (("l2_gb_per_s", product.l2_bytes_per_s), ("dram_gb_per_s", product.dram_bytes_per_s)):
        entry |= {} if rate is None else {key: rate / _GIGA}
    l2_bytes = _find_l2_bytes(product)
    if l2_bytes is None:
        remedy = f"name another product, or add its l2_kib to {DEVICES_FILE.name}"
        raise InputError(f"the L2 size of the {product.name} is unknown", remedy=remedy)
    board = _Board(
        name=product.name,
        compute_capability=product.compute_capability,
        sm_count=product.sm_count,
        sm_hz=entry.get("sm_clock_mhz", product.sm_boost_hz / _MEGA) * _MEGA,
        l2_bytes=l2_bytes,
        dram_bytes_per_s=product.memory_bytes_per_s,
        source="; ".join(product.sources),
    )
    device = _build(entry, board)
    return device if product.l1_bytes is None else replace(device, l1_bytes=product.l1_bytes)


def _find_entry(product: Product) -> Mapping[str, Any]:
    return next((found for found in _load_document()["devices"] if found["name"] == product.name), {})


def _find_l2_bytes(product: Product) -> int | None:
    entry = _find_entry(product)
    return entry["l2_kib"] * _KIBI if "l2_kib" in entry else product.l2_bytes


def _vary(device: VolumeDevice, product: Product, base: Product) -> VolumeDevice:
    """The device of a base, as a described product has it."""
    clock_ratio = product.sm_boost_hz / base.sm_boost_hz
    sm_ratio = clock_ratio * product.sm_count / base.sm_count
    l2_before = _find_l2_bytes(base)
    l2_ratio = 1.0 if l2_before is None or product.l2_bytes is None else product.l2_bytes / l2_before
    starts = device.block_starts_per_s
    is_scaled = sm_ratio != 1 and product.l2_bytes_per_s is None
    scaled = say("The L2 bandwidth of the {gpu} is taken to grow with its SMs and their clock.", gpu=product.name)
    return replace(
        device,
        name=product.name,
        sm_count=product.sm_count,
        sm_hz=device.sm_hz * clock_ratio,
        l1_bytes=product.l1_bytes or device.l1_bytes,
        l2_bytes=round(device.l2_bytes * l2_ratio),
        l2_bytes_per_s=product.l2_bytes_per_s or device.l2_bytes_per_s * sm_ratio,
        dram_bytes_per_s=product.dram_bytes_per_s
        or device.dram_bytes_per_s * product.memory_bytes_per_s / base.memory_bytes_per_s,
        fp64_flops_per_s=None if device.fp64_flops_per_s is None else device.fp64_flops_per_s * sm_ratio,
        fp32_flops_per_s=None if device.fp32_flops_per_s is None else device.fp32_flops_per_s * sm_ratio,
        block_starts_per_s=None if starts is None else starts * clock_ratio,
        source="; ".join((*product.sources, device.source)),
        doubts=(*device.doubts, scaled) if is_scaled else device.doubts,
    )


class _Board(Struct, frozen=True, kw_only=True):
    """Published figures of a GPU."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    sm_hz: float
    l2_bytes: int
    dram_bytes_per_s: float  # as stated, not as reached
    source: str


def _read_board(entry: dict[str, Any]) -> _Board:
    return _Board(
        name=entry["name"],
        compute_capability=parse_compute_capability(entry["compute_capability"], DEVICES_FILE.name),
        sm_count=entry["sm_count"],
        sm_hz=entry["sm_clock_mhz"] * _MEGA,
        l2_bytes=entry["l2_kib"] * _KIBI,
        dram_bytes_per_s=entry["dram_gb_per_s"] * _GIGA,
        source=_load_document()["sources"][entry["source"]],
    )


def _build(entry: dict[str, Any], board: _Board) -> VolumeDevice:
    architecture = find_architecture(board.compute_capability)
    l2_bytes, l2_doubts = _share_l2(board, architecture)
    doubts = list(l2_doubts)
    l2_rate, dram_rate = entry.get("l2_gb_per_s"), entry.get("dram_gb_per_s")
    if l2_rate is None:
        doubts.append(
            say(
                "The L2 bandwidth of the {gpu} was not measured; it is estimated from its SMs and their clock.",
                gpu=board.name,
            )
        )
    if dram_rate is None:
        doubts.append(
            say(
                "Kernels are assumed to reach {share} of the published bandwidth of the {gpu}.",
                share=percent(_DRAM_RATIO),
                gpu=board.name,
            )
        )
    rates = list_operation_rates(architecture)
    starts = architecture.throughput.block_starts_per_cycle.value
    fetch = architecture.caches.dram_fetch_bytes
    peaks = {kind: rate.per_cycle * board.sm_count * board.sm_hz for kind, rate in rates.items()}
    return VolumeDevice(
        name=board.name,
        compute_capability=board.compute_capability,
        sm_count=board.sm_count,
        sm_hz=board.sm_hz,
        l1_bytes=architecture.caches.unified_data_cache_bytes.value,
        l2_bytes=l2_bytes,
        l2_bytes_per_s=_estimate_l2(board.sm_count, board.sm_hz) if l2_rate is None else l2_rate * _GIGA,
        dram_bytes_per_s=board.dram_bytes_per_s * _DRAM_RATIO if dram_rate is None else dram_rate * _GIGA,
        fp64_flops_per_s=peaks.get(OperationKind.FP64),
        fp32_flops_per_s=peaks.get(OperationKind.FP32),
        l1_tags_per_cycle=architecture.caches.l1_tags_per_cycle.value,
        block_starts_per_s=None if starts is None else starts * board.sm_hz,
        l2_ways=architecture.caches.l2_ways.value,
        dram_fetch_bytes=SECTOR_BYTES if isinstance(fetch, Unknown) else fetch.value,
        source=_load_document()["sources"][entry["source"]] if "source" in entry else board.source,
        doubts=tuple(doubts),
    )


def _estimate_l2(sm_count: int, sm_hz: float) -> float:
    """Bytes per second that L2 hands to all SMs: about a third of 64 bytes per SM and cycle.

    A V100 reaches 0.33 of it, an A100 0.41, a GH200 0.50, an A40 0.21, an L40 0.27: the factor is the one in the middle.
    """
    return _L2_RATIO * SM_BYTES_PER_CYCLE * sm_count * sm_hz


def _share_l2(board: _Board, architecture: Architecture) -> tuple[int, tuple[Sentence, ...]]:
    """L2 that one SM's data can fill: its own partition, since each partition keeps copies of what its SMs use."""
    partitions = architecture.caches.l2_partitions
    if isinstance(partitions, Unknown):
        return board.l2_bytes, (
            say("Whether the L2 of the {gpu} is partitioned is unknown; it is modelled as one.", gpu=board.name),
        )
    return board.l2_bytes // partitions.value, ()


@cache
def find_paper_device(name: str) -> VolumeDevice:
    """The V100 or the A100 with the numbers of the published model.

    Raises:
        InputError: another one was asked for.

    >>> find_paper_device("A100").l2_bytes >> 20
    20
    """
    document = _load_document()
    entry = next((found for found in document["paper"] if found["name"].lower() == name.lower()), None)
    if entry is None:
        known = ", ".join(found["name"] for found in document["paper"])
        raise InputError(f"the published model has no device {name[:80]!r}", remedy=f"name one of {known}")
    capability = parse_compute_capability(entry["compute_capability"], DEVICES_FILE.name)
    return VolumeDevice(
        name=entry["name"],
        compute_capability=capability,
        sm_count=entry["sm_count"],
        sm_hz=entry["sm_clock_mhz"] * _MEGA,
        l1_bytes=entry["l1_kib"] * _KIBI,
        l2_bytes=entry["l2_kib"] * _KIBI,
        l2_bytes_per_s=entry["l2_gb_per_s"] * _GIGA,
        dram_bytes_per_s=entry["dram_gb_per_s"] * _GIGA,
        fp64_flops_per_s=None,
        fp32_flops_per_s=None,
        source=document["sources"][entry["source"]],
    )


def build_paper_device(product: Product) -> VolumeDevice:
    """A V100, an A100, or what a file makes of one, with the numbers of the published model.

    Raises:
        InputError: it is another one.
    """
    base = product.base
    if base is not None and base.compute_capability == product.compute_capability:
        return _vary(build_paper_device(base), product, base)
    return find_paper_device("V100" if product.compute_capability == (7, 0) else product.name.split()[0])


@cache
def _load_document() -> dict[str, Any]:
    return read_own_table(DEVICES_FILE)
