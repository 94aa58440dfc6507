"""Descriptions of launches to begin with, for the kernels of a source, or of what was built, that have none."""

from pathlib import Path

from gpa_lsp.compiler.settings import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.emulator.inputs.read_launches import find_launch_file, read_launches
from gpa_lsp.emulator.inputs.source_parameters import read_source_parameters
from gpa_lsp.emulator.inputs.template import write_template
from gpa_lsp.emulator.ptx.model import PtxModule
from gpa_lsp.emulator.ptx.parse import parse_ptx
from gpa_lsp.errors import InputError, Problem
from gpa_lsp.prediction.built_modules import examine_built, read_modules
from gpa_lsp.prediction.predict import match_launches
from gpa_lsp.prediction.static_source import SourceStatics, examine_source, require_ptx
from gpa_lsp.report.names import is_named


def write_templates(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches_path: Path | None = None,
    launches_text: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    settings: CompileSettings = DEFAULT_SETTINGS,
) -> str:
    """The text of a description, or of what to append to the one there is.

    Args:
        path: of the source.
        text: what an editor holds of it; None to read the file.
        kernel: only kernels whose name contains this; None for all.
        launches_path: the description; None for the file beside the source.
        launches_text: what an editor holds of it, empty for one that is to be begun; None to read the file.
        compute_capability: to compile for; None leaves it to the compile command.
        settings: of the compiler.

    Raises:
        InputError: the source does not compile, or every kernel has a launch already.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    statics = examine_source(path, text=text, compute_capability=compute_capability, settings=settings)
    module = parse_ptx(require_ptx(statics, path), name=str(path))
    described = launches_path or find_launch_file(statics.path)
    return describe_missing(module, statics, described, kernel, launches_text=launches_text)


def write_build_templates(
    path: Path,
    *,
    kernel: str | None = None,
    launches_path: Path | None = None,
    compute_capability: tuple[int, int] | None = None,
) -> str:
    """The same for device code that was built; what its parameters are is found in the PTX alone.

    Args:
        path: as for :func:`~gpa_lsp.prediction.predict_build.predict_build`.
        kernel: only kernels whose name contains this; None for all.
        launches_path: the description; None for the file beside it.
        compute_capability: code for this one; None for the newest.

    Raises:
        InputError: the file cannot be read or has no PTX, or every kernel has a launch already.
        MissingToolError: the file needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    described = launches_path or find_launch_file(path)
    written, failure = [], None
    for built in read_modules(path, compute_capability, None, []):
        try:
            written.append(describe_missing(built.module, examine_built(built, path, kernel), described, kernel))
        except InputError as error:
            failure = error
    if failure is not None and not written:
        raise failure
    return "\n".join(written)


def describe_missing(
    module: PtxModule,
    statics: SourceStatics,
    described: Path | None,
    kernel: str | None,
    *,
    launches_text: str | None = None,
) -> str:
    """A description of a launch for each kernel of a module that a file has none for.

    Raises:
        InputError: there is no such kernel.
    """
    # An empty file is one that the shell has just made for what is printed.
    is_there = described is not None and (
        _has_text(described) if launches_text is None else bool(launches_text.strip())
    )
    launches = read_launches(described, text=launches_text) if described is not None and is_there else ()
    unmatched: list[Problem] = []
    known = {one.function.name for one in match_launches(module, launches, None, unmatched)}
    wanted = [one for one in module.entries if one.name not in known and (kernel is None or is_named(kernel, one.name))]
    if not wanted:
        message = "every kernel has a launch already" if module.entries else "the source has no kernel"
        raise InputError(message, path=described or statics.path, remedy="edit the description that is there")
    return "\n".join(
        write_template(module, one, source_names=read_source_parameters(str(statics.path), statics.text, one.name))
        for one in wanted
    )


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
