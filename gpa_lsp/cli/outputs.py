"""Output of commands: checks of the files to write, and writing in each format."""

import argparse
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpa_lsp.cli.options import STANDARD_OUTPUT
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.files import atomic_write

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Block
    from gpa_lsp.document.notices import Notice
    from gpa_lsp.document.places import PlaceNames
    from gpa_lsp.report.model import Report

# what other programs read: one notice per finding
NOTICE_FORMATS = ("sarif", "github")

_OTHER_FILE = "choose another file"


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse, before any work is done, output files that cannot be written or would replace something irreplaceable.

    Raises:
        InputError: an output is an input, another output, a measurement, a folder, or in a folder that is not there.
    """
    outputs: dict[str, Path] = getattr(arguments, "outputs", {})
    inputs = {_identify(path) for path in _list_inputs(arguments)} - {None} if outputs else set()
    written: set[tuple[int, int] | str] = set()
    for path in outputs.values():
        if path == STANDARD_OUTPUT:
            continue
        _check_place(path)
        identity = _identify(path)
        if identity in inputs:
            raise InputError("is an input of this command and would be replaced", path=path, remedy=_OTHER_FILE)
        name = identity or os.path.realpath(path)
        if name in written:
            raise InputError("is named twice as a file to write", path=path, remedy="give each output its own file")
        written.add(name)
        if identity is not None and not getattr(arguments, "is_measuring", False) and _is_measurement(path):
            message = "is a measurement and would be replaced"
            raise InputError(message, path=path, remedy=f"{_OTHER_FILE}, or remove this one first")


def _list_inputs(arguments: argparse.Namespace) -> Iterator[Path]:
    """Paths of a command line that are read: inputs, launch descriptions next to sources, programs and their arguments."""
    for name, value in vars(arguments).items():
        if name in arguments.outputs or name == "outputs":
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Path):
                yield one
                if one.suffix:
                    yield one.with_suffix(DESCRIPTION_SUFFIX)
            elif isinstance(one, str) and name == "application":
                yield Path(one)


def _check_place(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError("is a folder", path=path, remedy="name a file in it")
        if not path.parent.is_dir():
            raise InputError("there is no such folder", path=path.parent, remedy="create it, or choose another place")
    except (OSError, ValueError) as error:
        raise _fail(path, error) from error


def _identify(path: Path) -> tuple[int, int] | None:
    """Device and inode of a regular file, the same through every link; None for anything else."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _is_measurement(path: Path) -> bool:
    """Whether a file is a GPU profile, which cannot be regenerated from other files."""
    from gpa_lsp.profile.read import is_measurement  # asks the readers

    try:
        return is_measurement(path)
    except GpaError:
        return False


def write_output(text: str, output: Path | None, terminal: Terminal, *, is_page: bool = False) -> None:
    """Write text to the output file, whole or not at all, or to standard output.

    Raises:
        InputError: the file cannot be written; what was there is still there.
    """
    if output is None or output == STANDARD_OUTPUT:
        write = terminal.write_page if is_page else terminal.write_text
        terminal.print_safely(lambda: write(text))
    else:
        write_file(text, output)


def write_file(content: str | bytes, path: Path) -> None:
    """Write a file, whole or not at all.

    Raises:
        InputError: as :func:`write_output`.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    write_with(path, lambda stream: stream.write(data), encoding=None)


def write_with(path: Path, write: Callable[[Any], Any], *, encoding: str | None) -> None:
    """Write a file, whole or not at all, by a function that gets its stream.

    Raises:
        InputError: as :func:`write_output`.
    """
    try:
        with atomic_write(path, encoding=encoding) as stream:
            write(stream)
    except (OSError, ValueError) as error:
        raise _fail(path, error) from error


def _fail(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"cannot be written: {reason}", path=path, remedy=_OTHER_FILE)


def write_blocks(
    blocks: "Sequence[Block]",
    output: Path | None,
    terminal: Terminal,
    *,
    form: str = "text",
    max_rows: int | None = None,
    folds: bool = False,
    is_listing: bool = False,
) -> None:
    """Write a document as ``text`` or ``markdown`` to the output file or standard output.

    Args:
        folds: of Markdown: fold away what can be, as GitHub does.
        is_listing: of text: lines as compilers print them, of any length.

    Raises:
        InputError: as :func:`write_output`.
    """
    if form == "markdown":
        from gpa_lsp.document.markdown import write_markdown

        text = "".join(f"{line}\n" for line in write_markdown(blocks, max_rows=max_rows, folds=folds))
        write_output(text, output, terminal)
    elif is_printed(output):
        terminal.write_blocks(blocks, max_rows=max_rows, is_listing=is_listing)
    else:
        from gpa_lsp.document.terminal import write_plain

        write_output(write_plain(blocks, max_rows=max_rows), output, terminal)


def write_answer(
    arguments: argparse.Namespace,
    terminal: Terminal,
    *,
    text: "Callable[[], Sequence[Block]]",
    json: Callable[[], Any] | None = None,
    html: Callable[[], str] | None = None,
    notices: "Callable[[], Sequence[Notice]] | None" = None,
    places: "PlaceNames | None" = None,
    **options: Any,
) -> None:
    """Write an answer in the format asked for, to the output file or standard output.

    What is not asked for is not made, and what makes it need not be imported.

    Args:
        text: the blocks of ``text`` and ``markdown``.
        notices: those of ``sarif`` and ``github``, which show sources as *places* says.
        options: of :func:`write_blocks`.
    """
    form, output = arguments.format, getattr(arguments, "output", None)
    if form == "json" and json is not None:
        write_json(json(), output, terminal)
    elif form == "html" and html is not None:
        write_output(html(), output, terminal, is_page=True)
    elif notices is not None and places is not None and form in NOTICE_FORMATS:
        write_output(write_notices(notices(), places, form), output, terminal)
    else:
        write_blocks(text(), output, terminal, form=form, **options)


def write_json(value: Any, output: Path | None, terminal: Terminal) -> None:
    """Write a value as JSON to the output file or standard output."""
    write_output(json.dumps(value, indent=2) + "\n", output, terminal)


def write_report_json(report: "Report", output: Path | None, terminal: Terminal, **options: Any) -> None:
    """Write a report as JSON, with options of :func:`~gpa_lsp.report.saved.store.write_report`."""
    from gpa_lsp.report.saved.store import write_report

    if is_printed(output):
        terminal.print_safely(lambda: write_report(report, terminal.out, **options))
    else:
        write_with(output or Path(), lambda stream: write_report(report, stream, **options), encoding="ascii")


def write_notices(notices: "Sequence[Notice]", places: "PlaceNames", form: str) -> str:
    """Notices as text for programs, as ``sarif`` or ``github``."""
    if form == "github":
        from gpa_lsp.document.sarif import write_github

        return write_github(notices, places)
    from gpa_lsp.document.sarif import build_sarif

    return json.dumps(build_sarif(notices, places, Path.cwd()), indent=2) + "\n"


def is_printed(output: Path | None) -> bool:
    """Whether output goes to standard output."""
    return output is None or output == STANDARD_OUTPUT


def refuse_standard_output(path: Path | None, what: str) -> None:
    """Refuse ``-`` for something that cannot be printed.

    Raises:
        InputError: it is.
    """
    if path == STANDARD_OUTPUT:
        raise InputError(f"{what} cannot be written to standard output", remedy="name a file or folder with -o")
