"""Which measured roofs a kernel stands under: those kept of its GPU."""

from pathlib import Path

from gpa_lsp.foundation.errors import GpaError, InputError, Problem, ProblemSeverity
from gpa_lsp.gpu.device.empirical_model import EmpiricalRoofs
from gpa_lsp.gpu.device.roofs_file import find_kept_roofs, read_roofs


class KeptRoofs:
    """Finds the roofs that were kept of a device, and reads each file once. What cannot be used becomes a problem: nobody named it.

    Args:
        folder: where they are looked for; None for the user's data folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, EmpiricalRoofs | None] = {}
        self._problems: list[Problem] = []

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Kept files that could not be used."""
        return tuple(self._problems)

    def find(self, device_name: str | None) -> EmpiricalRoofs | None:
        """The roofs for a device; None when there are none."""
        if device_name is None:
            return None
        if device_name not in self._known:
            self._known[device_name] = self._read_kept(device_name)
        return self._known[device_name]

    def _read_kept(self, device_name: str) -> EmpiricalRoofs | None:
        path = find_kept_roofs(device_name, self._folder)
        if path is None:
            return None
        try:
            return read_roofs(path)
        except GpaError as error:
            place = error.place if isinstance(error, InputError) else None
            message = f"the measured ceilings of {device_name} cannot be used: {getattr(error, 'message', error)}"
            remedy = "measure them again with gpa-lsp calibrate, or remove the file; theoretical ceilings are shown"
            self._problems.append(
                Problem(severity=ProblemSeverity.WARNING, message=message, path=path, place=place, remedy=remedy)
            )
            return None
