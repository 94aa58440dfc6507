"""Results of ``clusters.cu`` and ``bulk_copies.cu``."""

import numpy as np

from tests.emulator.kernels.truth import Close, Expected, Given, reference


@reference("cluster_sum")
def _cluster_sum(given: Given) -> Expected:
    return {"out": given["in"].reshape(10, -1).sum(axis=1).astype(np.int32)}


@reference("cluster_histogram")
def _cluster_histogram(given: Given) -> Expected:
    bins = len(given["out"])
    return {"out": np.bincount(np.clip(given["in"], 0, bins - 1), minlength=bins).astype(np.int32)}


@reference("cluster_ring")
def _cluster_ring(given: Given) -> Expected:
    found = given["in"].reshape(3, 8, 32)
    for _ in range(given["steps"]):
        found = np.roll(found * np.uint32(3) + np.uint32(1), 1, axis=1)
    return {"out": found.reshape(-1)}


@reference("cluster_places")
def _cluster_places(given: Given) -> Expected:
    y, x = np.divmod(np.arange(24), 6)
    first = (y // 2 * 2) * 6 + x // 2 * 2
    owners = (first[:, None] + np.array([0, 1, 6, 7])) * 8 + np.arange(4)
    return {
        "places": np.stack([x % 2, y % 2, x // 2, y // 2], axis=1).reshape(-1).astype(np.int32),
        "owners": owners.reshape(-1).astype(np.int32),
    }


@reference("bulk_pipeline")
def _bulk_pipeline(given: Given) -> Expected:
    doubled = given["in"] * np.float32(2) + np.float32(1)
    sums = doubled.reshape(-1, 256)
    return {"out": doubled, "sums": Close(sums.sum(axis=0, dtype=np.float64), ulps=64, absolute=1e-2)}


@reference("bulk_multicast")
def _bulk_multicast(given: Given) -> Expected:
    tile, passed = given["in"].reshape(3, 128), np.zeros((3, 4, 128), np.int32)
    for rank in range(4):
        count, to = 16 * (rank + 1), (rank + 1) % 4
        passed[:, to, :count] = tile[:, 16 * rank : 16 * rank + count]
        if rank < 3:
            passed[:, to, count:] = tile[:, count:] + 1000 * rank
    passed[:, 0, 64:96] = tile[:, :64].reshape(3, 32, 2).sum(axis=2)
    return {"out": passed.reshape(-1)}
