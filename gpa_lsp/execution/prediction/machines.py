"""The GPU a prediction is for."""

from gpa_lsp.execution.volumes.devices import VolumeDevice, build_device, find_paper_device
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import GpaError, Problem
from gpa_lsp.gpu.device.products import Product, find_product, load_products


def choose_product(name: str | None, compute_capability: tuple[int, int]) -> Product | None:
    """The product of a name, or else the first known of a compute capability; None when none is of that capability.

    Raises:
        InputError: no product has the name.
    """
    if name is not None:
        return find_product(name)
    return next((one for one in load_products() if one.compute_capability == compute_capability), None)


def choose_volume_device(product: Product | None, mode: VolumeMode) -> VolumeDevice | Problem:
    """The product as the volume model sees it, or why it cannot."""
    if product is None:
        problem = "data volumes are not predicted: no GPU of this compute capability is known"
        return Problem.from_error(GpaError(problem))
    try:
        if mode is VolumeMode.PAPER:
            return find_paper_device("V100" if product.compute_capability == (7, 0) else product.name.split()[0])
        return build_device(product)
    except GpaError as error:
        return Problem.from_error(error)
