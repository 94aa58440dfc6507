"""One source on its way to a compiler: :class:`CompileJob`."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.architectures import name_target
from gpa_lsp.execution.compiler.included_files import IncludedFiles
from gpa_lsp.execution.compiler.model import CompilerFlags
from gpa_lsp.execution.compiler.settings import CompileSettings


class CompileJob(Struct, frozen=True, kw_only=True):
    """What is to be compiled, and how."""

    path: Path  # of the source, absolute
    content: bytes  # its text
    compute_capability: tuple[int, int]  # to compile for
    flags: CompilerFlags  # that decide what the text means
    settings: CompileSettings  # limits
    included: IncludedFiles  # the project's headers that the source includes, as far as can be told
    is_cancelled: Callable[[], bool] | None = None  # asked again and again; True ends the compiler

    @property
    def target(self) -> str:
        """The architecture's name, e.g. ``sm_90a``."""
        return name_target(self.compute_capability, self.flags.architectures)
