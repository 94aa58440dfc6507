"""The host code around a source: the launches it says, and the texts that tell of its kernels' parameters."""

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.sources.assumed_launches import USUAL_THREADS, find_assumed_launches, find_place
from gpa_lsp.code.sources.host_launch import HostLaunch
from gpa_lsp.execution.compiler.missing_headers import include_with_search
from gpa_lsp.execution.compiler.model import CompilerFlags
from gpa_lsp.execution.compiler.source_text import read_source
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.foundation.errors import GpaError


class HostCode(Struct, frozen=True, kw_only=True):
    """What was read."""

    # in the order the program would come to them; what depends on what it reads is marked as a guess
    launches: tuple[HostLaunch, ...]
    # (path, text) of the source, then of what includes it, then of the project's headers
    texts: tuple[tuple[str, str], ...]
    # the launches again, those that depend on what is read no larger than ``most_threads``
    read: "partial[tuple[HostLaunch, ...]]"

    def shrink(self, launch: HostLaunch, threads: int) -> HostLaunch:
        """A launch with no more threads than that, where what the program reads decides it; else the launch as it is."""
        if not launch.inputs:
            return launch
        place = find_place(launch), launch.template_arguments
        alike = [one for one in self.launches if (find_place(one), one.template_arguments) == place]
        smaller = [one for one in self.read(most_threads=threads) if (find_place(one), one.template_arguments) == place]
        found = smaller[alike.index(launch)] if launch in alike and len(smaller) == len(alike) else launch
        is_nothing_left = found.grid is None and launch.grid is not None
        return launch if is_nothing_left else found


def read_host_code(statics: SourceStatics) -> HostCode:
    """Read the host code of a source, with its headers; of a fragment that of the file it was compiled through."""
    own = (str(statics.path), statics.text)
    path = statics.unit.source or statics.path
    flags = statics.flags or CompilerFlags(directory=path.parent)
    try:
        text = statics.text if path == statics.path else read_source(path, None).decode("utf-8", "replace")
        included = include_with_search(path, text.encode(), flags)[1].headers
    except GpaError:
        read = partial(_read_launches, own[0], own[1], (), (), "")
        return HostCode(launches=read(), texts=(own,), read=read)
    texts = {str(file): content.decode("utf-8", "replace") for file, content in included.items()}
    texts |= {own[0]: own[1]} if own[0] in texts else {}
    macros = tuple(one for one in flags.macros if not one.startswith("-"))
    file = "" if path == statics.path else str(path)
    read = partial(_read_launches, str(path), text, tuple(texts.items()), macros, file)
    others = {str(path): text, **texts}
    return HostCode(launches=read(), texts=(own, *(one for one in others.items() if one[0] != own[0])), read=read)


def _read_launches(
    path: str,
    text: str,
    included: tuple[tuple[str, str], ...],
    macros: tuple[str, ...],
    file: str,
    *,
    most_threads: int = USUAL_THREADS,
) -> tuple[HostLaunch, ...]:
    """Of a text; lines of another one than the source are named by its file."""
    launches = find_assumed_launches(path, text, included, macros, most_threads=most_threads)
    return tuple(_name_file(one, file) for one in launches) if file else launches


def _name_file(launch: HostLaunch, file: str) -> HostLaunch:
    """The launch with the file that its lines are of, for readers of another."""
    arguments = tuple(replace(one, file=one.file or file) for one in launch.arguments)
    return replace(launch, file=launch.file or file, arguments=arguments)
