"""One source on its way to a compiler: :class:`CompileJob`."""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.compiler.architectures import name_target
from gpa_lsp.compiler.included_files import IncludedFiles
from gpa_lsp.compiler.model import CompilerFlags
from gpa_lsp.compiler.settings import CompileSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileJob:
    """What is to be compiled, and how.

    Attributes:
        path: of the source, absolute.
        content: its text.
        compute_capability: to compile for.
        flags: that decide what the text means.
        settings: limits.
        included: the project's headers that the source includes, as far as can be told.
        is_cancelled: asked again and again; True ends the compiler.
    """

    path: Path
    content: bytes = field(repr=False)
    compute_capability: tuple[int, int]
    flags: CompilerFlags
    settings: CompileSettings
    included: IncludedFiles = field(repr=False)
    is_cancelled: Callable[[], bool] | None = None

    @property
    def target(self) -> str:
        """The architecture's name, e.g. ``sm_90a``."""
        return name_target(self.compute_capability, self.flags.architectures)
