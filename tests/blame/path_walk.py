"""Pending registers, found by walking instruction by instruction with a stack of return addresses: slow, and easy to believe."""

from heapq import heappop, heappush

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.diagnosis.blame.view import FunctionView

DEEPEST_STACK = 4
_OLDEST = 8

Found = dict[int, dict[tuple[int, int], tuple[int, int]]]
"""Waiting row → (setter row, scoreboard) → (cycles, instructions) of the shortest path between them."""

_Stack = tuple[int, ...]


class PathWalk:
    """All pairs of waits and setters of a function.

    Attributes:
        at_masks: of wait masks.
        at_dependency_barriers: of what DEPBARs wait for beside their masks.
    """

    def __init__(self, view: FunctionView) -> None:
        self.view = view
        self.at_masks: Found = {}
        self.at_dependency_barriers: Found = {}
        graph = view.graph
        self.procedure = [int(graph.procedure_of_block[block]) for block in graph.block_of_instruction.tolist()]
        flow = view.instructions.flow.tolist()
        returning = {self.procedure[row] for row in range(len(view)) if flow[row] == Flow.RETURN}
        self.callee = {
            call.instruction: call.callee_procedure
            for call in graph.calls
            if call.callee_procedure in returning and call.instruction + 1 < len(view)
        }
        for row in range(len(view)):
            sets = self.sets(row)
            for number, (scoreboard, released_by) in enumerate(sets):
                age = sum(other[0] == scoreboard for other in sets[number + 1 :])
                self.walk(row, scoreboard, released_by, age)

    def sets(self, row: int) -> list[tuple[int, set[int]]]:
        """(scoreboard, scoreboards that release it) of what a row sets."""
        control = self.view.control
        write, read = int(control.write_barrier[row]), int(control.read_barrier[row])
        found = [(write, {write})] if write < 6 else []
        if read < 6:
            found.append((read, {read, write} if write < 6 else {read}))
        return found

    def walk(self, setter: int, scoreboard: int, released_by: set[int], age: int) -> None:
        """Follow one setter to every wait it reaches, the nearest first."""
        view = self.view
        heap: list[tuple[int, int, int, int, _Stack, bool]] = [(0, 0, setter, age, (), True)]
        seen = set()
        while heap:
            cycles, steps, row, age, stack, is_start = heappop(heap)
            if not is_start:
                if (row, age, stack) in seen:
                    continue
                seen.add((row, age, stack))
                here = (cycles, steps)
                mask = int(view.control.wait_mask[row])
                if mask >> scoreboard & 1:
                    note(self.at_masks, row, (setter, scoreboard), here)
                if any(mask >> one & 1 for one in released_by):
                    continue
                text = view.instructions.texts[row]
                if "DEPBAR" in text:
                    which, allowed = int(text.split("SB")[1][0]), int(text.split("0x")[1], 16)
                    if which == scoreboard and age >= allowed:
                        note(self.at_dependency_barriers, row, (setter, scoreboard), here)
                    released = which == scoreboard and age >= allowed
                    released |= which in released_by and allowed == 0
                    if released and not text.startswith("@"):
                        continue
                age = min(_OLDEST, age + sum(one == scoreboard for one, _ in self.sets(row)))
            onward = (cycles + int(view.stall_cycles[row]), steps + 1)
            for following, deeper in self.follow(row, stack):
                heappush(heap, (*onward, following, age, deeper, False))

    def follow(self, row: int, stack: _Stack) -> list[tuple[int, _Stack]]:
        """The rows that can be next, with the return addresses then."""
        graph = self.view.graph
        following = [(one, stack) for one in graph.next_instructions(row)]
        if row in self.callee:
            if self.view.instructions.guard[row] < 0:
                following = []
            if len(stack) < DEEPEST_STACK:
                entry = graph.procedures[self.callee[row]].start_offset // 16
                following.append((entry, (*stack, row + 1)))
        if self.view.instructions.flow[row] == Flow.RETURN:
            if stack:
                following.append((stack[-1], stack[:-1]))
            else:
                callers = [call for call, callee in self.callee.items() if callee == self.procedure[row]]
                following += [(call + 1, ()) for call in callers]
        return following


def note(found: Found, row: int, setter: tuple[int, int], distance: tuple[int, int]) -> None:
    """Keep the shortest distance of a pair."""
    known = found.setdefault(row, {})
    known[setter] = min(distance, known.get(setter, distance))
