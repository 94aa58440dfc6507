"""The GPU a trace is thought to run on, from the tables: :func:`build_trace_context`."""

from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count, format_count_of
from gpa_lsp.foundation.prose import Sentence, say, size
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, count_shared_per_block, find_occupancy
from gpa_lsp.gpu.device.products import Product, load_products


def build_trace_context(
    compute_capability: tuple[int, int],
    *,
    block_threads: tuple[int, int, int],
    registers_per_thread: int | None = None,
    shared_bytes: int = 0,
    product: Product | None = None,
) -> TraceContext:
    """The context of a launch.

    Args:
        registers_per_thread: as compiled; None when unknown, and registers then limit nothing.
        product: whose SMs and L2 are meant; None for the first known one of this capability, which the assumptions name.

    Raises:
        UnknownArchitectureError: there is no table of this capability.
        InputError: no block of this kind fits, or the product is of another capability.
    """
    architecture = find_architecture(compute_capability)
    assumptions: list[Sentence] = []
    if product is None:
        product = next((one for one in load_products() if one.compute_capability == compute_capability), None)
        if product is not None:
            assumptions.append(say("SMs and L2 are those of the {gpu}.", gpu=product.name))
    _check_product(product, compute_capability)
    if registers_per_thread is None:
        assumptions.append(say("Register use is unknown and assumed not to limit occupancy."))
    threads = block_threads[0] * block_threads[1] * block_threads[2]
    if threads < 1:
        raise InputError(
            f"a block of {format_count_of(threads, 'thread')}", remedy="give a block of at least one thread"
        )
    shape = BlockShape(threads=threads, registers_per_thread=registers_per_thread or 0, shared_bytes=shared_bytes)
    blocks = find_occupancy(architecture, shape).blocks_per_sm
    if blocks == 0:
        raise InputError(
            f"no SM of compute capability {compute_capability[0]}.{compute_capability[1]} can hold a block of {format_count(threads)} threads",
            remedy="make the block smaller, or give it fewer registers or less shared memory",
        )
    l1_bytes, carveout = _find_l1_bytes(architecture, blocks, shared_bytes)
    assumptions.append(say("L1 has what a shared-memory carve-out of {carveout} leaves.", carveout=size(carveout)))
    if product is None:
        assumptions.append(say("One SM is modelled: no GPU of this compute capability is in the tables."))
    return TraceContext(
        gpu="" if product is None else product.name,
        sm_count=1 if product is None else product.sm_count,
        blocks_per_sm=blocks,
        l1_bytes=l1_bytes,
        l2_bytes=None if product is None else product.l2_bytes,
        assumptions=tuple(assumptions),
    )


def _check_product(product: Product | None, compute_capability: tuple[int, int]) -> None:
    if product is not None and product.compute_capability != compute_capability:
        raise InputError(
            f"{product.name} is of compute capability {product.compute_capability[0]}.{product.compute_capability[1]}",
            remedy=f"name a GPU of {compute_capability[0]}.{compute_capability[1]}",
        )


def _find_l1_bytes(architecture: Architecture, blocks: int, shared_bytes: int) -> tuple[int, int]:
    """What the smallest carve-out that holds all resident blocks leaves, and that carve-out."""
    per_block = count_shared_per_block(architecture, shared_bytes)
    sizes = architecture.occupancy.shared_carveouts_bytes.value
    carveout = next((size for size in sizes if size >= blocks * per_block), sizes[-1])
    return max(0, architecture.caches.unified_data_cache_bytes.value - carveout), carveout
