"""Blocks and architectures for hypothesis."""

from hypothesis import strategies as st

from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape

shapes = st.builds(
    BlockShape,
    threads=st.integers(1, 1024),
    registers_per_thread=st.integers(1, 255),
    shared_bytes=st.integers(0, 240_000) | st.integers(0, 12_000),
    barriers=st.integers(0, 16),
)
architectures = st.sampled_from(list_architectures()).map(find_architecture)


def pick_carveout(architecture: Architecture, number: int) -> int | None:
    """One of the sizes the SM can be set to, or None."""
    sizes = (None, *architecture.occupancy.shared_carveouts_bytes.value)
    return sizes[number % len(sizes)]
