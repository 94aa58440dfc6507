"""Branches, loops, calls: one thread at a time in plain Python, integers only."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Expected, Given, reference

_WORD = 0xFFFFFFFF


def _run(count: int, compute: Callable[[int], int], dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[np.generic]:
    results = np.array([compute(i) & _WORD for i in range(count)], dtype=np.uint32)
    return results.view(dtype)


@reference("nested_ifs")
def _nested_ifs(given: Given) -> Expected:
    values, before = given["in"].tolist(), given["out"].tolist()

    def walk(i: int) -> int:
        x, path = values[i], 1
        if x & 1:
            path = path * 3 + 1
            if x & 2:
                path *= 5
                path = {4: path ^ x >> 4, 8: path + x * 7}.get(x & 12, before[i])
            else:
                for k in range(x >> 2 & 7):
                    path = path * 31 + k
            path += 11
        elif x & 16:
            path = path - x if x & 32 else path + (x >> 3)
            if x & 64:
                path = ~path
        else:
            k = x & 15
            while k:
                path = path + k if k & 1 else path ^ k << 8
                k >>= 1
        path &= _WORD
        if (x % 5 == 0 and path & 1) or (x % 7 == 3 and not path & 4):
            path = path // 3 + 1000
        return path

    out = given["out"]
    n = given.number("n")
    out[:n] = _run(n, walk)
    return {"out": out}


@reference("switch_table")
def _switch_table(given: Given) -> Expected:
    length = given.number("length")
    programs = given["programs"].reshape(-1, length).tolist()
    return {"out": _run(len(programs), lambda i: _interpret(i, programs[i]))}


def _interpret(i: int, program: list[int]) -> int:
    a, b, k = i + 1, 0, 0
    while k < len(program):
        case = program[k] & 15
        if case == 0:
            a += 17
        elif case == 1:
            b = a
        elif case in (2, 3):
            a = (a ^ (b << 1 if case == 2 else 0)) * 2654435761
        elif case == 4:
            b += a >> 16
        elif case == 5 and a & 1:
            b = ~b
        elif case in (5, 6):
            a -= b
        elif case == 7:
            a, b = b, a
        elif case == 8:
            a = a << 3 | a >> 29
        elif case == 9:
            k += 1
        elif case == 10:
            b = b * b + 1
        elif case == 11:
            a = b.bit_count() + a
        elif case == 12:
            b ^= 0xDEADBEEF
        elif case == 13:
            return a + 2 * b
        else:
            a += b + k
        a, b, k = a & _WORD, b & _WORD, k + 1
    return a ^ b


@reference("early_returns")
def _early_returns(given: Given) -> Expected:
    values = given["in"].tolist()

    def leave(i: int) -> int:
        value = values[i]
        if value == 0:
            return -1
        for k in range(4):
            if value >> k & 3 == 3:
                return 100 + k
        return value * 2 if value > 1000 else value + 5

    out = given["out"]
    n = given.number("n")
    out[:n] = _run(n, leave, np.int32)
    return {"out": out}


def _remainder(x: int, y: int) -> int:
    return abs(x) % abs(y) * (-1 if x < 0 else 1)


@reference("loop_exits")
def _loop_exits(given: Given) -> Expected:
    width = given.number("width")
    rows = given["in"].reshape(-1, width).tolist()

    def loop(i: int) -> int:
        row, total = rows[i], 0
        for value in row:
            if value > 90:
                break
            total += max(value, 0)
        k = width
        while True:
            k -= 1
            total ^= row[k]
            if k == 0 or _remainder(row[k], 4) == 1:
                break
        pairs = [(a, b) for a in range(width) for b in range(a + 1, width) if row[a] + row[b] == 50]
        total = total + 1000 * pairs[0][0] + pairs[0][1] if pairs else -total
        for _ in range(40):
            total += 7
            if _remainder(total, 16) == 3:
                break
            if _remainder(total, 16) != 5:
                total -= 2
        return total

    return {"out": _run(len(rows), loop, np.int32)}


@reference("recursive_calls")
def _recursive_calls(given: Given) -> Expected:
    values = given["in"].tolist()
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21]

    def call(i: int) -> int:
        x = values[i]
        value = fibonacci[x % 9]
        if x % 3 == 0:
            value += 1000 * (2 * (x % 4) + 3)  # ackermann(2, n) is 2 n + 3
        return value + (1000000 if x % 13 % 2 == 0 else 0)

    rows = given["rows"].reshape(len(values), -1)
    return {"out": _run(len(values), call), "rows": np.sort(rows, axis=1)}


@reference("function_pointers")
def _function_pointers(given: Given) -> Expected:
    values = given["in"].tolist()
    table = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a ^ b << 3)

    def call(i: int) -> int:
        x = values[i]
        for step in range(6):
            x = table[values[i] >> 2 * step & 3](x, step + 1)
        return x

    areas = [(i + 1) ** 2 if value & 1 else 3 * i for i, value in enumerate(values)]
    return {"out": _run(len(values), call, np.int32), "areas": np.array(areas, dtype=np.int32)}


@reference("struct_returns")
def _struct_returns(given: Given) -> Expected:
    rows = given["in"].reshape(-1, given.number("width"))
    pairs = np.zeros(len(rows), dtype=[("least", "<i4"), ("most", "<i4"), ("mean", "<f8")])
    by = rows[:, 0].astype(np.int8)
    counter = (30000 + by.astype(np.int32)).astype(np.int16)
    pairs["least"] = rows.min(axis=1) - by
    pairs["most"] = rows.max(axis=1) + counter
    pairs["mean"] = rows.sum(axis=1) / rows.shape[1]
    first = given["matrices"].reshape(-1, 2, 2)
    product = first
    for _ in range(3):
        product = product[:, :, :1] * first[:, :1, :] + product[:, :, 1:] * first[:, 1:, :]
    return {"out": pairs.view(np.int32), "matrices": product}
