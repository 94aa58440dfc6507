"""Random programs of nested branches, loops, switches and early returns: as CUDA C++, and run one thread at a time in Python.

A program has four 32-bit variables, an array of eight words of its own and an input of 64 words.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

WORD = 0xFFFFFFFF
INPUTS = 64
_OWN = 8
_VARIABLES = "abcd"
_MOST_TURNS = 40

Expression = tuple[object, ...]
"""``("variable", name)``, ``("number", value)``, ``("input", expression)`` or ``(operator, left, right)``."""


def _sign(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def _divide(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def _turn(x: int, by: int) -> int:
    return x << by | x >> (32 - by)


OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("({0} + {1})", lambda x, y: x + y),
    "subtract": ("({0} - {1})", lambda x, y: x - y),
    "multiply": ("({0} * {1})", lambda x, y: x * y),
    "and": ("({0} & {1})", lambda x, y: x & y),
    "or": ("({0} | {1})", lambda x, y: x | y),
    "xor": ("({0} ^ {1})", lambda x, y: x ^ y),
    "left": ("({0} << ({1} & 31u))", lambda x, y: x << (y & 31)),
    "right": ("({0} >> ({1} & 31u))", lambda x, y: x >> (y & 31)),
    "arithmetic": ("unsigned(int({0}) >> ({1} & 31u))", lambda x, y: _sign(x) >> (y & 31)),
    "divide": ("({0} / ({1} | 1u))", lambda x, y: x // (y | 1)),
    "remainder": ("({0} % ({1} | 1u))", lambda x, y: x % (y | 1)),
    "signed divide": ("unsigned(int({0} >> 1) / int({1} | 1u))", lambda x, y: _divide(x >> 1, _sign(y | 1))),
    "less": ("({0} < {1} ? 1u : 0u)", lambda x, y: int(x < y)),
    "signed less": ("(int({0}) < int({1}) ? {1} : 7u)", lambda x, y: y if _sign(x) < _sign(y) else 7),
    "least": ("min({0}, {1})", min),
    "high": ("__umulhi({0}, {1})", lambda x, y: x * y >> 32),
    "wide": ("unsigned((0ull + {0}) * {1} >> 13)", lambda x, y: (x * y & (1 << 64) - 1) >> 13),
    "count": ("(__popc({0}) + {1})", lambda x, y: x.bit_count() + y),
    "leading": ("(__clz({0}) ^ {1})", lambda x, y: 32 - x.bit_length() ^ y),
    "turn": ("__funnelshift_l({0}, {0}, {1})", lambda x, y: _turn(x, y & 31)),
    "narrow": ("unsigned((unsigned short)({0}) + (signed char)({1}))", lambda x, y: (x & 0xFFFF) + _sign(y, 8)),
    "float": ("(unsigned(float({0} >> 8)) + {1})", lambda x, y: (x >> 8) + y),
}


@dataclass(frozen=True, slots=True)
class Assign:
    """``variable = value``, or ``own[place % 8] ^= value``."""

    target: "str | Expression"
    value: Expression


@dataclass(frozen=True, slots=True)
class Branch:
    """One side or the other, by the lowest bit."""

    condition: Expression
    then: "Block"
    otherwise: "Block"


@dataclass(frozen=True, slots=True)
class Loop:
    """Some turns, up to seven, that the data decide."""

    number: int
    turns: Expression
    body: "Block"


@dataclass(frozen=True, slots=True)
class Leave:
    """Jump out of the innermost loop, or of the kernel, when a remainder is zero."""

    condition: Expression
    ends_kernel: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """One of several cases, or none."""

    value: Expression
    cases: "tuple[Block, ...]"


Statement = Assign | Branch | Loop | Leave | Switch
Block = tuple[Statement, ...]


class Maker:
    """Makes one program from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0

    def make(self) -> Block:
        """Five statements, nested up to four deep."""
        return tuple(self._make_statement(0, is_in_loop=False) for _ in range(5))

    def _make_block(self, depth: int, *, is_in_loop: bool) -> Block:
        return tuple(self._make_statement(depth, is_in_loop=is_in_loop) for _ in range(self._random.randint(1, 4)))

    def _make_statement(self, depth: int, *, is_in_loop: bool) -> Statement:
        kind = self._random.random()
        value = self._make_expression(0)
        if depth >= 4 or kind < 0.4:
            return Assign(self._random.choice(_VARIABLES), value)
        if kind < 0.62:
            sides = [self._make_block(depth + 1, is_in_loop=is_in_loop) for _ in range(2)]
            return Branch(value, sides[0], sides[1] if self._random.random() < 0.6 else ())
        if kind < 0.78:
            self._loops += 1
            return Loop(self._loops, value, self._make_block(depth + 1, is_in_loop=True))
        if kind < 0.86 and is_in_loop:
            return Leave(value, ends_kernel=False)
        if kind < 0.89:
            return Leave(value, ends_kernel=True)
        if kind < 0.94:
            return Switch(value, tuple(self._make_block(4, is_in_loop=False) for _ in range(5)))
        return Assign(self._make_expression(2), value)

    def _make_expression(self, depth: int) -> Expression:
        kind = self._random.random()
        if depth <= 3 and kind > 0.25:
            return (
                self._random.choice(list(OPERATORS)),
                self._make_expression(depth + 1),
                self._make_expression(depth + 1),
            )
        if kind < 0.17:
            return ("variable", self._random.choice(_VARIABLES + "i"))
        if kind < 0.2:
            return ("input", ("variable", self._random.choice(_VARIABLES)))
        return (
            "number",
            self._random.choice([0, 1, 2, 3, 7, 31, 255, 65537, 1 << 31, WORD, self._random.getrandbits(32)]),
        )


def render(program: Block) -> str:
    """The program as a kernel ``random_program(in, out)``."""
    lines = [
        'extern "C" __global__ void random_program(const unsigned* in, unsigned* out)',
        "{",
        "    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;",
        f"    unsigned a = in[i % {INPUTS}], b = i, c = a * 7u, d = 3u, turns = 0;",
        f"    unsigned own[{_OWN}] = {{}};",
        *_render_block(program, 1),
        f"    for (int k = 0; k < {_OWN}; ++k)",
        "        d = d * 31u + own[k];",
        "    out[i] = a + 3u * b + 5u * c + 7u * d;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _write(expression: Expression) -> str:
    kind, *rest = expression
    if kind == "variable":
        return str(rest[0])
    if kind == "number":
        return f"{rest[0]}u"
    written = [_write(one) for one in rest if isinstance(one, tuple)]
    return f"in[{written[0]} % {INPUTS}]" if kind == "input" else OPERATORS[str(kind)][0].format(*written)


def _render_block(block: Block, level: int) -> list[str]:
    return [line for statement in block for line in _render_statement(statement, level)]


def _render_statement(statement: Statement, level: int) -> list[str]:
    indent = "    " * level
    match statement:
        case Assign(target, value):
            return [
                f"{indent}{target} = {_write(value)};"
                if isinstance(target, str)
                else f"{indent}own[{_write(target)} % {_OWN}] ^= {_write(value)};"
            ]
        case Branch(condition, then, otherwise):
            second = [f"{indent}}} else {{", *_render_block(otherwise, level + 1)] if otherwise else []
            return [
                f"{indent}if ({_write(condition)} & 1u) {{",
                *_render_block(then, level + 1),
                *second,
                f"{indent}}}",
            ]
        case Loop(number, turns, body):
            head = f"{indent}for (unsigned n{number} = 0; n{number} < ({_write(turns)} & 7u) && ++turns < {_MOST_TURNS}; ++n{number}) {{"
            return [head, f"{indent}    a += n{number};", *_render_block(body, level + 1), f"{indent}}}"]
        case Leave(condition, ends_kernel):
            action = "{ out[i] = a; return; }" if ends_kernel else "break;"
            return [f"{indent}if ({_write(condition)} % {11 if ends_kernel else 5}u == 0) {action}"]
        case Switch(value, cases):
            lines = [f"{indent}switch ({_write(value)} % {len(cases) + 1}u) {{"]
            for number, case in enumerate(cases):
                lines += [f"{indent}case {number}:", *_render_block(case, level + 1), f"{indent}    break;"]
            return [*lines, f"{indent}}}"]


class _BreakLoop(Exception):  # noqa: N818  (it is the program's own way out of a loop)
    pass


class _EndKernel(Exception):  # noqa: N818  (it is the program's own way out of the kernel)
    pass


class Thread:
    """One thread that runs a program.

    Args:
        number: of the thread.
        inputs: 64 words.
    """

    def __init__(self, number: int, inputs: list[int]) -> None:
        first = inputs[number % INPUTS]
        self._values = {"i": number, "a": first, "b": number, "c": first * 7 & WORD, "d": 3}
        self._inputs = inputs
        self._own = [0] * _OWN
        self._turns = 0

    def run(self, program: Block) -> int:
        """Run the program; its results."""
        values = self._values
        try:
            self._run_block(program)
        except _EndKernel:
            return values["a"]
        d = values["d"]
        for word in self._own:
            d = d * 31 + word
        return values["a"] + 3 * values["b"] + 5 * values["c"] + 7 * d & WORD

    def _evaluate(self, expression: Expression) -> int:
        kind, *rest = expression
        if kind == "variable":
            return self._values[str(rest[0])]
        if kind == "number":
            assert isinstance(rest[0], int)
            return rest[0]
        found = [self._evaluate(one) for one in rest if isinstance(one, tuple)]
        if kind == "input":
            return self._inputs[found[0] % INPUTS]
        return OPERATORS[str(kind)][1](found[0], found[1]) & WORD

    def _run_block(self, block: Block) -> None:
        for statement in block:
            self._run_statement(statement)

    def _run_statement(self, statement: Statement) -> None:
        match statement:
            case Assign(target, value):
                result = self._evaluate(value)
                if isinstance(target, str):
                    self._values[target] = result
                else:
                    self._own[self._evaluate(target) % _OWN] ^= result
            case Branch(condition, then, otherwise):
                self._run_block(then if self._evaluate(condition) & 1 else otherwise)
            case Loop(_, turns, body):
                self._run_loop(turns, body)
            case Leave(condition, ends_kernel):
                if self._evaluate(condition) % (11 if ends_kernel else 5) == 0:
                    raise _EndKernel if ends_kernel else _BreakLoop
            case Switch(value, cases):
                chosen = self._evaluate(value) % (len(cases) + 1)
                self._run_block(cases[chosen] if chosen < len(cases) else ())

    def _run_loop(self, turns: Expression, body: Block) -> None:
        turn = 0
        while turn < self._evaluate(turns) & 7:
            self._turns += 1
            if self._turns >= _MOST_TURNS:
                return
            self._values["a"] = self._values["a"] + turn & WORD
            try:
                self._run_block(body)
            except _BreakLoop:
                return
            turn += 1
