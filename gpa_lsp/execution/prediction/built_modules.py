"""The PTX of device code that was built, parsed: :func:`read_modules`."""

from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.builds import read_build
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.prediction.static_source import SourceStatics, examine_unit
from gpa_lsp.execution.prediction.targets import Capability, note_difference
from gpa_lsp.foundation.errors import Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.gpu.device.products import find_product
from gpa_lsp.kernel.names import choose_by_name

_MOST_UNITS = 256  # Units of one architecture whose PTX is read; a library can hold thousands
_REMEDY = "build with -lineinfo, or with -gencode arch=compute_XX,code=[sm_XX,compute_XX]"


class BuiltModule(Struct, frozen=True, kw_only=True):
    """A unit with its PTX, parsed."""

    unit: CompiledUnit
    module: PtxModule


def read_modules(
    path: Path,
    wanted: Capability | None,
    machine: str | None,
    problems: list[Problem],
    *,
    assembles: bool = True,
    kernel: str | None = None,
    newest: Capability | None = None,
) -> list[BuiltModule]:
    """The units of one architecture that have PTX.

    Args:
        path: as for :func:`~gpa_lsp.execution.compiler.builds.read_build`.
        wanted: code for this compute capability; None for that of the GPU, where there is such code, else for the newest.
        machine: name of the GPU; None for none.
        problems: what a reader must know is added to it.
        assembles: as for :func:`~gpa_lsp.execution.compiler.builds.read_build`.
        kernel: the name, or part of it, of those that an image is assembled for; None for all.
        newest: code for later compute capabilities is taken only where there is no other; None for no such limit.

    Raises:
        InputError: the file cannot be read or has no PTX, or no GPU has the name.
        MissingToolError: the file needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    product = None if machine is None else find_product(machine)
    units = read_build(
        path,
        compute_capability=wanted,
        assembles=assembles,
        choose_entries=choose_by_name(kernel),
    )
    known = sorted({unit.compute_capability for unit in units if unit.ptx is not None})
    known = [one for one in known if newest is None or one <= newest] or known
    if not known:
        why = next((note for unit in units for note in unit.notes), "there is no PTX in it")
        raise UnsupportedInputError(why, path=path, remedy=_REMEDY)
    exact = product is not None and product.compute_capability in known
    chosen = product.compute_capability if product is not None and exact else known[-1]
    left = [unit for unit in units if unit.ptx is not None and unit.compute_capability == chosen]
    if len(left) > _MOST_UNITS:
        message = f"only {format_count(_MOST_UNITS)} of its {format_count(len(left))} units were read"
        problems.append(Problem(severity=ProblemSeverity.WARNING, message=message, path=path))
    notes = () if product is None else note_difference(product, chosen)
    problems.extend(Problem.note(note) for note in notes)
    return [
        BuiltModule(unit=unit, module=parse_ptx(unit.ptx or "", name=f"the PTX of {path.name}"))
        for unit in left[:_MOST_UNITS]
    ]


def examine_built(built: BuiltModule, path: Path, kernel: str | None) -> SourceStatics:
    """What its image says; without one, nothing."""
    return examine_unit(built.unit, path=path.absolute(), text="", module=built.module, kernel=kernel)
