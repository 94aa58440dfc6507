"""``malloc`` and ``free`` of device code: :class:`Heap`."""

from gpa_lsp.emulator.engine.arena import Region

_ALIGNMENT_BYTES = 16


class Heap:
    """Hands out pieces of one region, first fit.

    Args:
        region: where they lie.
    """

    def __init__(self, region: Region) -> None:
        self._free: list[tuple[int, int]] = [(region.base, region.size_bytes)]
        self._taken: dict[int, int] = {}

    def allocate(self, size_bytes: int) -> int:
        """The address of so many bytes; 0 when there is no room or none are wanted."""
        wanted = -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        if size_bytes <= 0:
            return 0
        for place, (start, size) in enumerate(self._free):
            if size >= wanted:
                if size == wanted:
                    del self._free[place]
                else:
                    self._free[place] = (start + wanted, size - wanted)
                self._taken[start] = wanted
                return start
        return 0

    def free(self, address: int) -> None:
        """Give a piece back; addresses that were not handed out are passed over."""
        size = self._taken.pop(address, None)
        if size is None:
            return
        if self._free and self._free[-1][0] == address + size:
            self._free[-1] = (address, size + self._free[-1][1])
            return
        self._free.insert(0, (address, size))
