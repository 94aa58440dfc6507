"""Where instructions and constant operands come from: :class:`InstructionSupply`."""

from collections import OrderedDict

from gpa_lsp.execution.simulator.machine import SmModel

FAR_LINES = 4  # Lines of the constant cache that come from further away together


class InstructionSupply:
    """Each sub-core's instruction cache, what the SM holds behind them, and its constants. A stream of lines is fetched ahead of a miss."""

    def __init__(self, model: SmModel, sub_cores: int) -> None:
        self._model = model
        self._near: list[OrderedDict[int, float]] = [OrderedDict() for _ in range(sub_cores)]
        self._shared: dict[int, float] = {}
        self._constants: dict[int, float] = {}
        self._far_constants: dict[int, float] = {}

    def fetch(self, sub_core: int, line: int, time: float) -> float:
        """When the instructions of a line are in a sub-core's own cache."""
        model, near = self._model, self._near[sub_core]
        ready = near.get(line)
        if ready is not None:
            near.move_to_end(line)
            return ready
        shared = self._shared.get(line)
        if shared is None:
            shared = time + (model.code_cold_cycles if self._shared else model.code_first_cycles)
            self._shared[line] = shared
            for ahead in range(1, model.code_prefetch_lines + 1):
                self._shared.setdefault(line + ahead, shared + ahead * model.code_stream_cycles)
        follows = line - 1 in near
        ready = max(time + (model.code_stream_cycles if follows else model.code_near_cycles), shared)
        near[line] = ready
        if len(near) > model.code_cache_lines:
            near.popitem(last=False)
        return ready

    def read_constant(self, line: int, time: float) -> float:
        """When a line of constants is in the SM."""
        ready = self._constants.get(line)
        if ready is None:
            far = self._far_constants.setdefault(line // FAR_LINES, time + self._model.constant_cold_cycles)
            ready = self._constants[line] = max(far, time + self._model.constant_near_cycles)
        return ready
