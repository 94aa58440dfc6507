"""The sizes of block a kernel is launched with, as far as the text around it says them: launches in the source, and a description beside it."""

from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.analyses.static.model import BlockOrigin, KnownBlock
from gpa_lsp.emulator.inputs.read_launches import find_launch_file, read_launches
from gpa_lsp.errors import GpaError
from gpa_lsp.report.names import demangle, find_plain_name, is_named
from gpa_lsp.sources.cuda_launches import find_launch_sizes


def find_known_blocks(path: Path, text: str, mangled_name: str) -> tuple[KnownBlock, ...]:
    """Sizes of block for one kernel, those of a description first.

    Args:
        path: of the source; ``kernel.launch.toml`` beside ``kernel.cu`` describes its launches.
        text: of the source.
        mangled_name: of the kernel.
    """
    return (*_find_described(path, mangled_name), *_find_launched(path, text, mangled_name))


def _find_launched(path: Path, text: str, mangled_name: str) -> Iterator[KnownBlock]:
    for launch in find_launch_sizes(str(path), text, find_plain_name(demangle(mangled_name))):
        yield KnownBlock(
            threads=launch.threads,
            origin=BlockOrigin.SOURCE,
            dynamic_shared_bytes=launch.dynamic_shared_bytes,
            line=launch.line,
        )


def _find_described(path: Path, mangled_name: str) -> Iterator[KnownBlock]:
    """A description that cannot be read is its reader's to complain of, not ours."""
    description = find_launch_file(path)
    if description is None:
        return
    try:
        launches = read_launches(description)
    except GpaError:
        return
    for launch in launches:
        if launch.kernel == mangled_name or is_named(launch.kernel, mangled_name, demangle(mangled_name)):
            x, y, z = launch.block
            yield KnownBlock(
                threads=x * y * z, origin=BlockOrigin.DESCRIPTION, dynamic_shared_bytes=launch.shared_bytes
            )
