"""The kernels of ``fixtures/kernels``, original and improved, compiled without contraction: to the bit but where said."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Floats = npt.NDArray[np.float32]
single = np.float32


def fuse(a: Floats, b: Floats, c: Floats) -> Floats:
    """``fma``: in double precision the product is exact, and the sum all but always."""
    return (np.multiply(a, b, dtype=np.float64) + c).astype(np.float32)


def _floats(given: Given, name: str) -> Floats:
    return given[name].astype(np.float32, copy=False)


def _advance(program: npt.NDArray[np.generic]) -> npt.NDArray[np.uint32]:
    return program.astype(np.uint32) * np.uint32(1664525) + np.uint32(1013904223)


@reference("async_copy")
def _async_copy(given: Given) -> Expected:
    tiles = _floats(given, "in").reshape(given.number("tiles"), given.grid[0], 1024)
    total = np.zeros((given.grid[0], 256), dtype=np.float32)
    for tile in tiles:
        for j in range(0, 1024, 256):
            # Halving is exact, so the fma rounds like an addition.
            total = total * single(0.5) + tile[:, (np.arange(256) + j + 1) % 1024]
    return {"out": total}


@reference("bank_conflict")
def _bank_conflict(given: Given) -> Expected:
    size = given.number("size")
    return {"out": given["in"].reshape(size, size).T}


def _weigh(x: Floats, turns: int) -> Floats:
    for _ in range(turns):
        x = fuse(x, single(0.5) * x, np.full_like(x, 0.25))
    return x


@reference("barrier_imbalance")
def _barrier_imbalance(given: Given) -> Expected:
    tiles = _weigh(_floats(given, "in"), 24).reshape(-1, given.grid[0], 256)
    total = np.zeros((given.grid[0], 256), dtype=np.float32)
    for tile in tiles:
        total = total + tile * np.roll(tile, -1, axis=1)
    return {"out": total}


@reference("branch_divergence")
def _branch_divergence(given: Given) -> Expected:
    x = _floats(given, "in")
    odd = x.copy()
    for _ in range(32):
        odd = single(0.75) - np.abs(odd - single(0.125))
    return {"out": np.where(np.arange(len(x)) % 2 == 0, _weigh(x, 32), odd)}


@reference("constant_indexed")
def _constant_indexed(given: Given) -> Expected:
    state = given["in"]
    table = single(1) / np.arange(1, 1025, dtype=np.float32)
    total = np.zeros(len(state), dtype=np.float32)
    for _ in range(given.number("steps")):
        total = total + table[state % np.uint32(1024)]
        state = _advance(state)
    return {"out": total}


@reference("device_calls")
def _device_calls(given: Given) -> Expected:
    x = _floats(given, "in")
    for _ in range(given.number("steps")):
        mixed = x + single(0.25) * (single(0.5) - x)
        x = mixed * mixed + single(0.125) * single(0.25)
        x = np.minimum(np.maximum(x, single(-1)), single(1)) + single(0.0625) * x
    return {"out": x}


@reference("double_constant/original")
def _double_constant(given: Given) -> Expected:
    x = _floats(given, "in")
    for _ in range(32):
        x = (x.astype(np.float64) * 0.7 + 0.1).astype(np.float32)
    return {"out": x}


@reference("double_constant/improved")
def _single_constant(given: Given) -> Expected:
    x = _floats(given, "in")
    for _ in range(32):
        x = x * single(0.7) + single(0.1)
    return {"out": x}


def _fold(lanes: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    # Butterfly sums: lane 0 holds what a tree of halves gives.
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


@reference("few_blocks/original")
def _few_blocks(given: Given) -> Expected:
    rows = _floats(given, "in").reshape(given.grid[0], -1, 1024)
    own = np.zeros((given.grid[0], 1024), dtype=np.float32)
    for k in range(rows.shape[1]):
        own = own + rows[:, k]
    return {"row_sums": _fold(_fold(own.reshape(-1, 32, 32)))}


@reference("few_blocks/improved")
def _many_blocks(given: Given) -> Expected:
    # Blocks add their parts in no stated order; each sum of n positive terms is off by less than n half units.
    rows = given["in"].astype(np.float64).reshape(given.grid[1], -1)
    return {"row_sums": Close(rows.sum(axis=1), rows.shape[1] / given.grid[0] / given.block[0] + 16)}


_HORNER = (0.30, -0.21, 0.17, -0.13, 0.11, -0.07, 0.05, -0.03)


@reference("fp64_heavy/original")
def _fp64_heavy(given: Given) -> Expected:
    x = given["in"].astype(np.float64)
    y = np.zeros_like(x)
    for _ in range(given.number("rounds")):
        for term in _HORNER:
            y = y * x + term
        x = x * 0.99
    return {"out": y}


@reference("fp64_heavy/improved")
def _fp32_instead(given: Given) -> Expected:
    x = given["in"].astype(np.float32)
    y = np.zeros_like(x)
    for _ in range(given.number("rounds")):
        for term in _HORNER:
            y = y * x + single(term)
        x = x * single(0.99)
    return {"out": y.astype(np.float64)}


@reference("global_atomics")
def _global_atomics(given: Given) -> Expected:
    return {"counts": np.bincount(given["in"][: given.number("n")] % np.uint32(64), minlength=64).astype(np.uint32)}


@reference("huge_body")
def _huge_body(given: Given) -> Expected:
    x = given["in"].astype(np.uint32)
    for _ in range(given.number("rounds")):
        for stage in range(1024):
            x = (x ^ x >> np.uint32(15)) * np.uint32(0x9E3779B1 + 2 * stage & 0xFFFFFFFF)
            x = (x << np.uint32(7) | x >> np.uint32(25)) + np.uint32(stage * stage)
    return {"out": x}


@reference("indirect_call")
def _indirect_call(given: Given) -> Expected:
    program = given["in"]
    x = single(1) + (np.arange(len(program)) % 5).astype(np.float32)
    for _ in range(given.number("steps")):
        choices = (
            x * single(1.0625) + single(0.5),
            x * single(0.5) - single(0.25),
            np.abs(x) - single(1),
            np.minimum(np.abs(x), single(2)) - single(0.5) * x,
        )
        x = np.choose(program >> np.uint32(30), choices)
        program = _advance(program)
    return {"out": x}


@reference("inline_chain")
def _inline_chain(given: Given) -> Expected:
    low = _floats(given, "in")
    high = low[::-1].copy()

    def relax(x: Floats, target: Floats) -> Floats:
        place = np.minimum(np.maximum(np.abs(target - x) / single(4), single(0)), single(1))
        return x + place * place * (single(3) - single(2) * place) * (target - x)

    for _ in range(given.number("steps")):
        low = relax(low, high)
        high = relax(high, low)
    return {"out": high * high - low}


@reference("integer_division")
def _integer_division(given: Given) -> Expected:
    key = given["keys"]
    mixed = np.zeros_like(key)
    for _ in range(16):
        bucket = key // np.uint32(97)
        mixed = mixed + (bucket ^ key % np.uint32(97))
        key = _advance(key) + bucket
    return {"out": mixed}


@reference("jump_table")
def _jump_table(given: Given) -> Expected:
    program = given["in"]
    x = single(1) + (np.arange(len(program)) % 7).astype(np.float32)
    half, one = single(0.5), single(1)
    for _ in range(given.number("steps")):
        choices = (
            x + single(1.5), x * single(0.75), np.minimum(x, single(8)), np.maximum(x, single(0.25)), x * half + half, -x,
            np.minimum(x + single(2), single(4)), np.maximum(x - single(2), single(-4)),
            fuse(x, np.full_like(x, 1.25), np.full_like(x, -0.5)), np.minimum(np.maximum(x, -one), one), half - x, x * single(0.25),
            np.minimum(x * single(3), single(9)), np.maximum(x - single(0.125), single(-16)), x + single(0.0625), x,
        )  # fmt: skip
        x = np.choose(program >> np.uint32(28), choices)
        program = _advance(program)
    # The improved twin multiplies and adds where the original only limits: -0 becomes +0.
    return {"out": Close(x, 1)}


@reference("local_array")
def _local_array(given: Given) -> Expected:
    threads = given.number("threads")
    bins = given["in"].reshape(given.number("values_per_thread"), threads) % np.uint32(16)
    mixed = np.zeros(threads, dtype=np.uint32)
    for k in range(16):
        mixed = mixed * np.uint32(31) + (bins == k).sum(axis=0, dtype=np.uint32)
    return {"out": mixed}


@reference("loop_not_unrolled")
def _loop_not_unrolled(given: Given) -> Expected:
    n = given.number("n")
    values, weights = _floats(given, "in"), _floats(given, "weights")
    total = np.zeros(n, dtype=np.float32)
    for tap in range(16):
        total = total + weights[tap] * values[tap : tap + n]
    return {"out": total}


@reference("low_occupancy")
def _low_occupancy(given: Given) -> Expected:
    rows = _floats(given, "in").reshape(given.number("steps"), -1)
    total = np.zeros(rows.shape[1], dtype=np.float32)
    for row in rows:
        total = total * single(0.5) + row[np.arange(len(row)) ^ 1]
    return {"out": total}


@reference("math_functions/original")
def _math_functions(given: Given) -> Expected:
    # sinf 2 ulp, powf 9 ulp, the division rounded: 12 ulp in all.
    x = given["in"].astype(np.float64)
    return {"out": Close(np.sin(x) / x ** float(single(1.7)), 13)}


@reference("math_functions/improved")
def _fast_functions(given: Given) -> Expected:
    # sin.approx is off by 2^-20.5 for |x| < 2 pi, the power by some 2^-20 of itself, the division by 2 ulp.
    x = given["in"].astype(np.float64)
    power = x ** float(single(1.7))
    return {"out": Close(np.sin(x) / power, 16, 2.0**-20.5 / float(power.min()))}


@reference("narrow_loads")
def _narrow_loads(given: Given) -> Expected:
    particles = _floats(given, "in").reshape(-1, 4)
    weight = single(given.real("step")) * particles[:, 3]
    particles[:, 0] += weight * particles[:, 1]
    particles[:, 1] += weight * particles[:, 2]
    particles[:, 2] += weight * particles[:, 0]
    return {"out": particles}


@reference("recursion")
def _recursion(given: Given) -> Expected:
    values = given["in"].tolist()
    roots, n = given.number("roots"), given.number("n")

    def add(node: int) -> int:
        return 0 if node >= n else int(values[node]) + 3 * add(2 * node) + 5 * add(2 * node + 1)

    return {"out": np.array([add(roots + i) & 0xFFFFFFFF for i in range(roots)], dtype=np.uint32)}


@reference("register_spill")
def _register_spill(given: Given) -> Expected:
    state = list(_floats(given, "in").reshape(80, given.number("threads")))
    for _ in range(given.number("rounds")):
        for k in range(80):
            state[k] = single(0.5) * state[k] + single(0.5) * state[(k * 7 + 3) % 80]
    total = np.zeros_like(state[0])
    for k in range(80):
        total = total + state[k] * single(k + 1)
    return {"out": total}


@reference("shared_reduction")
def _shared_reduction(given: Given) -> Expected:
    rows = given["in"].reshape(given.grid[0], 256)
    return {"block_sums": rows.sum(axis=1, dtype=np.int32), "block_positives": (rows > 0).sum(axis=1, dtype=np.int32)}


@reference("short_def_use")
def _short_def_use(given: Given) -> Expected:
    rows = _floats(given, "in").reshape(given.number("steps"), -1)
    value = np.ones(rows.shape[1], dtype=np.float32)
    for row in rows:
        value = value * single(0.5) + row
        for _ in range(8):
            value = value * (single(1) - single(0.125) * value)
    return {"out": value}


@reference("strided_access/original")
def _strided_access(given: Given) -> Expected:
    rows = _floats(given, "in").reshape(-1, 64)
    total = np.zeros(len(rows), dtype=np.float32)
    for column in range(64):
        total = total + rows[:, column ^ 1]
    return {"row_sums": total}


@reference("strided_access/improved")
def _straight_access(given: Given) -> Expected:
    rows = _floats(given, "in").reshape(-1, 64)
    return {"row_sums": _fold(rows[:, :32] + rows[:, 32:])}


@reference("tensor_core")
def _tensor_core(given: Given) -> Expected:
    # One fma a step, or the tensor cores' sums of at least single precision.
    size = given.number("size")
    a, b = (given[name].view(np.float16).astype(np.float64).reshape(size, size) for name in "ab")
    return {"c": Close(a @ b, 4, size * 2.0**-23)}


@reference("texture_fetch")
def _texture_fetch(given: Given) -> Expected:
    n = given.number("n")
    values = _floats(given, "values")
    total = np.zeros(n, dtype=np.float32)
    for tap in range(8):
        total = total * single(0.5) + values[tap : tap + n]
    return {"out": total}


@reference("tiny_blocks")
def _tiny_blocks(given: Given) -> Expected:
    return {"segment_peaks": given["in"].reshape(-1, 128).max(axis=1)}
