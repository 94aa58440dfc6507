"""Shuffles, votes, matches, cooperative groups, atomics and special registers."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Words = npt.NDArray[np.generic]


def _shuffle(rows: Words, sources: Words, is_inside: Words) -> Words:
    # A lane whose source is outside of its part of the warp keeps its own value.
    lanes = np.broadcast_to(np.where(is_inside, sources, np.arange(32)), rows.shape)
    return np.take_along_axis(rows, lanes, axis=1)


def _up(rows: Words, by: int, width: int = 32) -> Words:
    lane = np.arange(32)
    return _shuffle(rows, lane - by, lane % width >= by)


def _down(rows: Words, by: int, width: int = 32) -> Words:
    lane = np.arange(32)
    return _shuffle(rows, lane + by, lane % width + by < width)


def _index(rows: Words, sources: Words, width: int = 32) -> Words:
    lane = np.arange(32)
    return _shuffle(rows, lane // width * width + sources % width, np.array(True))


@reference("warp_shuffles")
def _warp_shuffles(given: Given) -> Expected:
    rows = given["in"].reshape(-1, 32)
    lane = np.arange(32)
    odd = np.take_along_axis(rows, np.broadcast_to(np.where(lane + 2 < 32, lane + 2, lane), rows.shape), axis=1)
    even = np.take_along_axis(rows, np.broadcast_to(np.where(lane >= 4, lane - 4, lane), rows.shape), axis=1)
    # With a width of 8, xor by 12 leaves the part of the warp: such a lane reads only from parts before its own.
    crossing = lane ^ 12
    inside = crossing // 8 <= lane // 8
    results = (
        _index(rows, np.array(5)),
        _index(rows, lane * 7 + 3),
        _index(rows, lane + 1, 8),
        _up(rows, 3),
        _up(rows, 2, 8),
        _down(rows, 9),
        _down(rows, 1, 4),
        _shuffle(rows, lane ^ 21, np.array(True)),
        _shuffle(rows, crossing, inside),
        _index(rows, rows & 31),
        np.where(lane % 2 == 1, odd, even),
    )
    return {
        "out": np.stack([result.ravel() for result in results]),
        "float_out": _shuffle(given["floats"].reshape(-1, 32), lane ^ 16, np.array(True)),
        "double_out": _down(given["doubles"].reshape(-1, 32), 1),
    }


def _ballot(votes: Words) -> Words:
    return (votes.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)


def _match(rows: Words) -> Words:
    return _ballot(rows[:, :, None] == rows[:, None, :])


@reference("warp_votes")
def _warp_votes(given: Given) -> Expected:
    rows = given["in"].reshape(-1, 32)
    lane = np.arange(32)

    def spread(row: Words) -> Words:
        return np.broadcast_to(np.asarray(row)[:, None], rows.shape)

    eighths = rows // 8
    agree = (eighths == eighths[:, :1]).all(axis=1)
    high = rows > 3
    thirds = np.where(lane[:, None] % 3 == lane[None, :] % 3, rows[:, :, None] == rows[:, None, :], False)
    results = (
        spread((rows < 7).all(axis=1)),
        spread((rows == 7).any(axis=1)),
        spread(_ballot(rows & 1)),
        _match(rows),
        spread(np.where(agree, np.uint32(0xFFFFFFFF), np.uint32(0))),
        spread(agree),
        np.where(high, _ballot(high & ((rows & 2) != 0))[:, None], 0),
        _ballot(thirds),
        np.broadcast_to((np.uint64(1) << lane.astype(np.uint64)) - np.uint64(1), rows.shape),
    )
    return {"out": np.stack([np.asarray(result).ravel().astype(np.uint32) for result in results])}


@reference("cooperative_tiles")
def _cooperative_tiles(given: Given) -> Expected:
    values = given["in"]
    sixteen = values.reshape(-1, 16)
    ranks = np.full(len(values), -1, dtype=np.int32)
    for warp in range(0, len(values), 32):
        active = np.flatnonzero(values[warp : warp + 32] % 3 == 1)
        ranks[warp + active] = np.arange(len(active)) * 100 + len(active)
    tile = np.arange(len(values)) % given.block[0] // 16
    ranks[(tile == 1) & np.repeat((sixteen > 90).any(axis=1), 16)] -= 1000
    return {
        "sums": sixteen.sum(axis=1, dtype=np.int32),
        "peaks": np.repeat(values.reshape(-1, 4).max(axis=1), 4),
        "ranks": ranks,
    }


@reference("special_registers")
def _special_registers(given: Given) -> Expected:
    (bx, by, bz), (gx, gy, gz) = given.block, given.grid
    size = bx * by * bz
    thread = np.arange(size)
    lane = (thread % 32).astype(np.uint64)
    one = np.uint64(1)
    out = np.zeros((gx * gy * gz, size, 8), dtype=np.uint32)
    block = np.arange(len(out))
    out[..., 0] = thread % bx | thread // bx % by << 8 | thread // (bx * by) << 16
    out[..., 1] = (block % gx | block // gx % gy << 8 | block // (gx * gy) << 16)[:, None]
    out[..., 2] = lane | np.uint64(32 << 8)
    out[..., 3] = one << lane
    out[..., 4] = (~((one << (lane + one)) - one)) & np.uint64(0xFFFFFFFF)
    out[..., 5] = (one << (lane + one)) - one
    out[..., 6] = 512 + thread % 256
    out[..., 7] = 1
    return {"out": out}


@reference("named_barriers")
def _named_barriers(given: Given) -> Expected:
    pairs = given["in"].reshape(given.grid[0], 64, 2)
    values = pairs.reshape(given.grid[0], 128)
    out = pairs[:, ::-1, 0] * 3 + 1000 * pairs[:, :, 1] * 3
    votes = (values > 0).sum(axis=1) * 4 + (values > -50).all(axis=1) * 2 + (values == 99).any(axis=1)
    return {"out": out, "votes": np.repeat(votes.astype(np.int32), 128)}


@reference("atomics_integer")
def _atomics_integer(given: Given) -> Expected:
    values = given["in"][: given.number("n")]
    words = values.view(np.uint32)
    results, natural = given["results"], given["unsigned_results"]
    results[0] += values.sum(dtype=np.int32)
    results[1] -= values.sum(dtype=np.int32)
    results[2] = min(results[2], values.min())
    results[3] = max(results[3], values.max())
    results[4] &= np.bitwise_and.reduce(values | 0x00FFFF00)
    results[5] |= np.bitwise_or.reduce(values & 0x0F0F0F0F)
    results[6] ^= np.bitwise_xor.reduce(values)
    results[7] = min(results[7], values.min())
    natural[0] = min(natural[0], words.min())
    natural[1] = max(natural[1], words.max())
    up, down = int(natural[2]), int(natural[3])
    for _ in range(len(values)):
        up = 0 if up >= 99 else up + 1
        down = 76 if down == 0 or down > 76 else down - 1
    natural[2], natural[3] = up, down
    natural[4] |= np.bitwise_or.reduce(np.uint32(1) << (words & np.uint32(31)))
    return {"results": results, "unsigned_results": natural}


@reference("atomics_wide")
def _atomics_wide(given: Given) -> Expected:
    values = given["in"]
    results, signed, sums = given["results"], given["signed_results"], given["sums"]
    results[0] += values.sum(dtype=np.uint64)
    results[1] = min(results[1], values.min())
    results[2] = max(results[2], values.max())
    results[3] &= np.bitwise_and.reduce(values | np.uint64(0xFFFF0000FFFF))
    results[4] |= np.bitwise_or.reduce(values & np.uint64(0xFF00FF00FF00FF00))
    results[5] ^= np.bitwise_xor.reduce(values)
    results[6] += (values >> np.uint64(7)).sum(dtype=np.uint64)
    signed[0] = min(signed[0], values.view(np.int64).min())
    signed[1] = max(signed[1], values.view(np.int64).max())
    for k in range(4):
        sums[k] += float((values[values % np.uint64(4) == k] % np.uint64(1000)).sum())
    return {"results": results, "signed_results": signed, "sums": sums}


@reference("atomics_loops")
def _atomics_loops(given: Given) -> Expected:
    values = given["in"]
    i = np.arange(len(values))
    peaks, products, pairs = given["peaks"], given["products"].tolist(), np.zeros((8, 2), dtype=np.float16)
    for k in range(3):
        peaks[k] = max(peaks[k], values[i % 3 == k].max())
    for k in range(len(values)):
        products[k % 5] = products[k % 5] * (2 + k) % 1000003
    for k in range(8):
        pairs[k] = ((i[i % 8 == k] % 4).sum(), (i % 8 == k).sum())
    return {"peaks": peaks, "products": np.array(products, dtype=np.uint64), "pair_sums": pairs}


@reference("atomics_float_order")
def _atomics_float_order(given: Given) -> Expected:
    # n additions in any order are off by at most n half units of the largest partial sum, which is no larger than the sum of sizes.
    values = given["in"].astype(np.float64)
    i = np.arange(len(values))
    sums = np.array([values[i % 7 == k].sum() for k in range(7)] + [values.sum()])
    bound = np.abs(values).sum() * len(values) * 2.0**-24
    return {
        "sums": Close(sums, 0, float(bound)),
        "double_sums": Close(values.sum(keepdims=True), 0, float(bound) * 2.0**-29),
    }
