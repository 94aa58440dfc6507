"""What a lane can ask of its place in the launch: :class:`SpecialRegisters`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.memory_spaces import LOCAL_WINDOW, SHARED_WINDOW
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES

Words = npt.NDArray[np.uint32]


class SpecialRegisters:
    """The special registers of w warps.

    Args:
        grid: blocks of the launch.
        block: threads of a block.
        numbers: int64[w], linear index of each warp's block.
        warps: int64[w], of each within its block.
        shared_bytes: of a block.
    """

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        numbers: npt.NDArray[np.int64],
        warps: npt.NDArray[np.int64],
        shared_bytes: int,
    ) -> None:
        threads = warps[:, None] * WARP_LANES + np.arange(WARP_LANES)
        lanes = np.broadcast_to(np.arange(WARP_LANES), threads.shape)
        x, y, _ = block
        tid = (threads % x, threads // x % y, threads // (x * y))
        of_block = tuple(
            one[:, None] for one in (numbers % grid[0], numbers // grid[0] % grid[1], numbers // (grid[0] * grid[1]))
        )
        found: dict[str, npt.NDArray[np.int64]] = {"SR_LANEID": lanes, "SRZ": lanes * 0}
        for axis, thread, number in zip("XYZ", tid, of_block, strict=True):
            found[f"SR_TID.{axis}"] = thread
            found[f"SR_CTAID.{axis}"] = np.broadcast_to(number, threads.shape)
        found["SR_TID"] = tid[0] | tid[1] << 16 | tid[2] << 26
        one = np.ones_like(lanes, dtype=np.int64)
        found |= {
            "SR_EQMASK": one << lanes,
            "SR_LTMASK": (one << lanes) - 1,
            "SR_LEMASK": (one << lanes + 1) - 1,
            "SR_GTMASK": 0xFFFFFFFF & ~((one << lanes + 1) - 1),
            "SR_GEMASK": 0xFFFFFFFF & ~((one << lanes) - 1),
            "SR_SWINHI": one * (SHARED_WINDOW >> 32),
            "SR_LWINHI": one * (LOCAL_WINDOW >> 32),
            "SR_CgaCtaId": lanes * 0,
            "SR_CgaSize": one,
            "SR_SMEMSZ": one * shared_bytes,
        }
        self._found: dict[str, Words] = {name: value.astype(np.uint32) for name, value in found.items()}

    def find(self, name: str) -> Words | None:
        """uint32[w, 32]; None for what depends on the machine and the moment."""
        return self._found.get(name)
