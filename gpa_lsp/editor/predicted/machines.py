"""Which GPU the editor predicts for."""

from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.gpu.device.products import list_products_named


def choose_machine(job: PredictedJob) -> str | None:
    """The GPU of the settings, else that of the workspace's reports if its figures are known; None for one of the architecture compiled for.

    An architecture in the settings wins over the reports: somebody wants to know of another GPU.
    """
    if job.machine is not None or job.measured_on is None:
        return job.machine
    product = next(iter(list_products_named(job.measured_on)), None)
    if product is None or job.architecture not in (None, product.compute_capability):
        return None
    return product.name
