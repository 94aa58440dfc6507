"""Random small functions, and walks over them one instruction at a time: what searches over blocks are compared with."""

from collections.abc import Callable, Iterator

from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.view import FunctionView

_REGISTERS = st.integers(2, 5)
_GUARDS = st.sampled_from(["", "", "", "@P0 ", "@!P0 ", "@P1 ", "@!P1 "])
_SCOREBOARDS = st.sampled_from(["-", "-", "-", "0", "1"])
_SAMPLES = st.sampled_from(
    [
        "",
        "# wait=4/2",
        "# long_scoreboard=6/5 selected=2",
        "# short_scoreboard=3 wait=2",
        "# barrier=5 membar=2",
        "# misc=1",
    ]
)


@st.composite
def programs(draw: st.DrawFn, *, longest: int = 12, with_samples: bool = False, with_guards: bool = True) -> str:
    """A function: arithmetic, loads, compares, guards, scoreboards, jumps anywhere, exits in the middle, perhaps a second entry."""
    count = draw(st.integers(2, longest))
    second_entry = draw(st.integers(1, 2 * count))
    lines = []
    for row in range(count):
        if row == second_entry:
            lines.append("$second:")
        guard = draw(_GUARDS) if with_guards else ""
        code = f"{guard}{_draw_instruction(draw, count)}"
        waits = draw(st.sampled_from(["-", "-", "0", "1", "01"]))
        control = f"B{waits}:R{draw(_SCOREBOARDS)}:W{draw(_SCOREBOARDS)}:-:S{draw(st.integers(1, 15)):02d}"
        lines += [f"l{row}:", f"{control} {code} {draw(_SAMPLES) if with_samples else ''}"]
    return "\n".join([*lines, f"l{count}:", "EXIT"])


def _draw_instruction(draw: st.DrawFn, count: int) -> str:
    kind = draw(st.integers(0, 11))
    one, other, third = draw(_REGISTERS), draw(_REGISTERS), draw(_REGISTERS)
    if kind <= 3:
        return f"IADD3 R{one}, R{other}, R{third}, RZ"
    if kind == 4:
        return f"LDG.E R{one}, [R{2 * (other // 2)}.64]"
    if kind == 5:
        return f"ISETP.LT.AND P{one % 2}, PT, R{other}, R{third}, PT"
    if kind == 6:
        return draw(st.sampled_from(["BAR.SYNC 0x0", "MEMBAR.SC.GPU", "EXIT"]))
    if kind == 7:
        return f"STG.E [R{2 * (one // 2)}.64], R{other}"
    return f"BRA l{draw(st.integers(0, count))}"


def walk_simple_paths(view: FunctionView, def_row: int, use_row: int) -> Iterator[tuple[int, ...]]:
    """All paths from a def to the next arrival at a use, without the two themselves, that pass no instruction twice, nor the def again."""
    stack: list[tuple[int, tuple[int, ...]]] = [(def_row, ())]
    while stack:
        row, path = stack.pop()
        for after in view.graph.next_instructions(row):
            if after == use_row:
                yield path
            elif after != def_row and after not in path:
                stack.append((after, (*path, after)))


def is_reachable(view: FunctionView, def_row: int, use_row: int, is_allowed: Callable[[int], bool]) -> bool:
    """Whether a use can be reached from a def through some instructions only."""
    waiting, seen = [def_row], {def_row}
    while waiting:
        for after in view.graph.next_instructions(waiting.pop()):
            if after == use_row:
                return True
            if after not in seen and is_allowed(after):
                seen.add(after)
                waiting.append(after)
    return False
