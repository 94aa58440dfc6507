"""The host code around a source: the launches it says, and the texts that tell of its kernels' parameters."""

from dataclasses import replace

from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.compiler.missing_headers import include_with_search
from gpa_lsp.compiler.model import CompilerFlags
from gpa_lsp.compiler.source_text import read_source
from gpa_lsp.prediction.static_source import SourceStatics
from gpa_lsp.sources.host_launch import HostLaunch
from gpa_lsp.sources.host_launches import find_host_launches


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCode:
    """What was read.

    Attributes:
        launches: in the order the program would come to them.
        texts: (path, text) of the source, then of what includes it, then of the project's headers.
    """

    launches: tuple[HostLaunch, ...]
    texts: tuple[tuple[str, str], ...]


def read_host_code(statics: SourceStatics) -> HostCode:
    """Read the host code of a source, with its headers; of a fragment that of the file it was compiled through.

    Args:
        statics: of the source.
    """
    own = (str(statics.path), statics.text)
    path = statics.unit.source or statics.path
    flags = statics.flags or CompilerFlags(directory=path.parent)
    try:
        text = statics.text if path == statics.path else read_source(path, None).decode("utf-8", "replace")
        included = include_with_search(path, text.encode(), flags)[1].headers
    except GpaError:
        return HostCode(launches=find_host_launches(*own), texts=(own,))
    texts = {str(file): content.decode("utf-8", "replace") for file, content in included.items()}
    texts |= {own[0]: own[1]} if own[0] in texts else {}
    macros = tuple(one for one in flags.macros if not one.startswith("-"))
    launches = find_host_launches(str(path), text, tuple(texts.items()), macros)
    if path != statics.path:
        launches = tuple(_name_file(one, str(path)) for one in launches)
    others = {str(path): text, **texts}
    return HostCode(launches=launches, texts=(own, *(one for one in others.items() if one[0] != own[0])))


def _name_file(launch: HostLaunch, file: str) -> HostLaunch:
    """The launch with the file that its lines are of, for readers of another."""
    arguments = tuple(replace(one, file=one.file or file) for one in launch.arguments)
    return replace(launch, file=launch.file or file, arguments=arguments)
