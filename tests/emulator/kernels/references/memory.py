"""Kinds of memory and of access: strings, local arrays, structures, constants, textures, vectors, dynamic shared memory, asynchronous copies."""

import zlib

import numpy as np

from tests.emulator.kernels.truth import Close, Expected, Given, reference

_WORD = 0xFFFFFFFF


@reference("byte_strings")
def _byte_strings(given: Given) -> Expected:
    text, pattern = given["text"].tobytes(), given["pattern"].tobytes()
    changed = bytearray(text)
    lengths, words, places, checksums = [], [], [], []
    for start in given["starts"].tolist():
        line = text[start : text.index(0, start)]
        lengths.append(len(line))
        words.append(len(line.split()))
        places.append(line.find(pattern))
        checksums.append(zlib.crc32(line))
        changed[start : start + len(line)] = line.translate(bytes.maketrans(b"aeiou", b"AEIOU"))
    return {
        "text": np.frombuffer(bytes(changed), dtype=np.uint8),
        "lengths": np.array(lengths, dtype=np.int32),
        "words": np.array(words, dtype=np.int32),
        "places": np.array(places, dtype=np.int32),
        "checksums": np.array(checksums, dtype=np.uint32),
    }


@reference("local_arrays")
def _local_arrays(given: Given) -> Expected:
    def mix(row: list[int]) -> int:
        stack: list[int] = []
        counts, matrix = [0] * 16, list(range(1, 10))
        for x in row:
            counts[x & 15] += 1
            if x & 1 and len(stack) < 16:
                stack.append(x)
            elif len(stack) > 1:
                top = stack.pop()
                stack[-1] = (stack[-1] * 31 + top) & _WORD
            a, b = x % 9, (x >> 4) % 9
            matrix[a], matrix[b] = matrix[b], matrix[a]
        mixed = len(stack)
        for values, factor in ((stack, 17), (counts, 13), (matrix, 11)):
            for value in values:
                mixed = (mixed * factor + value) & _WORD
        return mixed

    rows = given["in"].reshape(-1, given.number("length")).tolist()
    return {"out": np.array([mix(row) for row in rows], dtype=np.uint32)}


@reference("struct_parameters")
def _struct_parameters(given: Given) -> Expected:
    n = given.number("grid.count")
    i = np.arange(n)
    low = np.array([given.real(f"grid.low{k}") for k in range(3)], dtype=np.float32)
    high = np.array([given.real(f"other.high{k}") for k in range(3)], dtype=np.float32)
    sides = np.array([given.number(f"shape.{axis}") for axis in "xyz"])
    levels = np.array([given.number(f"grid.level{k}") for k in range(5)])
    middle = np.float32(0.5) * (low + high)
    whole = (
        given["values"][:n] * sides[i % 3]
        + levels[i % 5]
        + given.number("grid.kind")
        + given.number("offset")
        + given.number("last")
    )
    out = given["out"]
    out[:n] = (given.real("grid.scale") * whole + middle[i % 3].astype(np.float64)).astype(np.float32)
    return {"out": out}


@reference("constant_memory")
def _constant_memory(given: Given) -> Expected:
    values, weights = given["in"], given["weights"]
    total = np.zeros(len(values), dtype=np.float32)
    for k in range(16):
        total = total + weights[(values + k) & 15] * np.float32(k)
    table = np.array([3, 1, 4, 1, 5, 9, 2, 6], dtype=np.int32)
    shifts = np.array([1, -2, 3, -4], dtype=np.int32)
    chosen = table[values & 7] * shifts[values & 3] + table[2:][np.arange(len(values)) & 3] + np.int32(1.5 - 2.25 * 4.0)
    return {"out": total, "chosen": chosen.astype(np.int32), "visits": np.array([len(values)], dtype=np.uint32)}


@reference("texture_linear_memory")
def _texture_linear_memory(given: Given) -> Expected:
    n = given.number("n")
    values = given["values"]
    i = np.arange(n)
    out, fours = given["out"], given["four_out"].reshape(-1, 4)
    out[:n] = values[n - 1 - i] + values[i // 2]
    fours[:n] = given["fours"].reshape(-1, 4)[i % 8]
    return {"out": out, "four_out": fours}


@reference("texture_point")
def _texture_point(given: Given) -> Expected:
    width, height = given.number("width"), given.number("height")
    image = given["image"].reshape(height, width)
    x = np.clip(np.floor(np.arange(width) - 1.5).astype(int), 0, width - 1)
    y = np.clip(np.floor(np.arange(height) + 2.25).astype(int), 0, height - 1)
    return {"out": image[y[:, None], x[None, :]]}


@reference("texture_bilinear")
def _texture_bilinear(given: Given) -> Expected:
    # Weights are multiples of 1/16, exact in the filter's fractions; only the three interpolations round.
    width, height = given.number("width"), given.number("height")
    image = given["image"].reshape(height, width).astype(np.float64)
    x, y = np.arange(width) * 0.5625 + 0.125 - 0.5, np.arange(height) * 0.4375 - 0.5 - 0.5
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    a, b = (x - left)[None, :], (y - top)[:, None]

    def texel(dy: int, dx: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return image[np.clip(top + dy, 0, height - 1)[:, None], np.clip(left + dx, 0, width - 1)[None, :]]

    upper, lower = (1 - a) * texel(0, 0) + a * texel(0, 1), (1 - a) * texel(1, 0) + a * texel(1, 1)
    return {"out": Close((1 - b) * upper + b * lower, 4, float(np.abs(image).max()) * 2.0**-23)}


@reference("texture_wrap")
def _texture_wrap(given: Given) -> Expected:
    n = given.number("n")
    texels = given["bytes"]
    place = np.floor((np.arange(n) - 20) / 32.0 * len(texels)).astype(int) % len(texels)
    out = given["out"].astype(np.float64)
    out[:n] = texels[place] / 255.0
    return {"out": Close(out, 1)}


@reference("vector_accesses")
def _vector_accesses(given: Given) -> Expected:
    floats, doubles = given["floats"].reshape(-1, 4), given["doubles"].reshape(-1, 2)
    shorts, tiny = given["shorts"].reshape(-1, 4).astype(np.int32), given["bytes"].reshape(-1, 2).astype(np.int32)
    odd = given["odds"].view([("tag", "u1"), ("pad", "u1", 3), ("value", "<i4"), ("half", "<i2"), ("end", "<i2")])
    wide = given["wides"].view([("position", "<f8"), ("index", "<i4"), ("flags", "i1", 4)])
    n = len(floats)
    longs = doubles.astype(np.int64)
    wide["position"] = -wide["position"]
    wide["index"] += shorts[:, 3]
    wide["flags"][np.arange(n), np.arange(n) & 3] = tiny[:, 0].astype(np.int8)
    threes = (
        shorts[:, 1] - shorts[:, 2],
        tiny[:, 0] * tiny[:, 1],
        odd["tag"] + odd["value"] * odd["half"].astype(np.int32),
    )
    return {
        "sums": np.stack([floats[:, 0] + floats[:, 3], floats[:, 1] * floats[:, 2]], axis=1),
        "longs": np.stack([longs[:, 0], longs[:, 1] * shorts[:, 0]], axis=1),
        "threes": np.stack(threes, axis=1).astype(np.int32),
        "wides": wide.view(np.uint8),
    }


@reference("dynamic_shared")
def _dynamic_shared(given: Given) -> Expected:
    elements = given.number("elements")
    rows = given["in"].reshape(-1, elements)
    k = np.arange(elements)
    marks = rows[:, (k + 1) % elements] > 0
    chosen = rows[:, (k + (k % 32 * 5) % 32) % elements]
    return {"out": np.where(marks, chosen.astype(np.float64), -1.0)[:, ::-1]}


@reference("async_tiles")
def _async_tiles(given: Given) -> Expected:
    tiles = given.number("tiles")
    values = given["in"].reshape(given.grid[0], tiles, 64, 4)
    shifts = given["shifts"].reshape(tiles, 64)
    total = np.zeros((given.grid[0], 64, 4), dtype=np.float32)
    t = np.arange(64)
    for k in range(tiles):
        value = values[:, k, (t + shifts[k]) % 64]
        total[..., 0] += value[..., 0]
        total[..., 1] = total[..., 1] * np.float32(0.5) + value[..., 1]
        total[..., 2] = np.maximum(total[..., 2], value[..., 2])
        total[..., 3] -= value[..., 3]
    return {"out": total}


@reference("async_pipeline")
def _async_pipeline(given: Given) -> Expected:
    tiles = given.number("tiles")
    values = given["in"].reshape(given.grid[0], tiles, 64)
    total = np.zeros((given.grid[0], 64), dtype=np.int32)
    for k in range(tiles):
        total = total * 3 + values[:, k]
    return {"out": total}


@reference("printing")
def _printing(given: Given) -> Expected:
    out = []
    for i in range(given.threads):
        total = 0
        for value in given["in"][: given.number("n")].tolist()[::-1]:
            total = total * 7 + value + i
        out.append(total)
    return {"out": np.array(out, dtype=np.int32)}
