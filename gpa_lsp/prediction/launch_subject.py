"""What is predicted: :class:`LaunchSubject`."""

from gpa_lsp.analyses.static.model import KernelStatics
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.ptx.model import PtxModule


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSubject:
    """A kernel, and how it is launched.

    Attributes:
        module: the code.
        launch: how it is run.
        kernel: mangled name.
        name: for people.
        statics: of the kernel; None when there is no image.
        compute_capability: it was compiled for.
    """

    module: PtxModule
    launch: LaunchDescription
    kernel: str
    name: str
    statics: KernelStatics | None
    compute_capability: tuple[int, int]

    @property
    def registers(self) -> int | None:
        """Of a thread; None when unknown."""
        return None if self.statics is None else self.statics.registers

    @property
    def shared_bytes(self) -> int:
        """Of a block, static and dynamic."""
        static = 0 if self.statics is None else self.statics.shared_static_bytes
        return static + self.launch.shared_bytes
