"""What is predicted: :class:`LaunchSubject`."""

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.execution.launches.launch import LaunchDescription


class LaunchSubject(Struct, frozen=True, kw_only=True):
    """A kernel, and how it is launched."""

    module: PtxModule  # the code
    launch: LaunchDescription  # how it is run
    kernel: str  # mangled name
    name: str  # for people
    statics: KernelStatics | None  # of the kernel; None when there is no image
    compute_capability: tuple[int, int]  # it was compiled for

    @property
    def registers(self) -> int | None:
        """Of a thread; None when unknown."""
        return None if self.statics is None else self.statics.registers

    @property
    def shared_bytes(self) -> int:
        """Of a block, static and dynamic."""
        static = 0 if self.statics is None else self.statics.shared_static_bytes
        return static + self.launch.shared_bytes
