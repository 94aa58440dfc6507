"""Writes the arrays of ``sources/data`` that no generator of a launch description makes: ``python -m tests.emulator.kernels.make_data``."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent / "sources" / "data"


def main() -> None:
    """Write all of them; the same bytes every time."""
    random = np.random.Generator(np.random.PCG64(20260101))
    FOLDER.mkdir(exist_ok=True)
    _save("longs_a", _make_longs(random, 512))
    _save("longs_b", _make_longs(random, 512) | np.uint64(1))
    _make_text(random)


def _save(name: str, values: npt.NDArray[np.generic]) -> None:
    np.save(FOLDER / f"{name}.npy", values, allow_pickle=False)


def _make_longs(random: np.random.Generator, count: int) -> npt.NDArray[np.uint64]:
    # Of all lengths, from a few bits to 64, and the ends of the signed and unsigned ranges among them.
    values = random.integers(0, 2**64, count, dtype=np.uint64) >> random.integers(0, 64, count).astype(np.uint64)
    values[:6] = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**32]
    return values


def _make_text(random: np.random.Generator) -> None:
    words = ["warp", "lane", "sector", "block", "a", "needle", "barrier", "tile", "of", "queue"]
    lines = [" ".join(random.choice(words, random.integers(0, 9))) for _ in range(64)]
    text = b"".join(line.encode() + b"\0" for line in lines)
    _save("text", np.frombuffer(text, dtype=np.uint8))
    _save("starts", np.cumsum([0] + [len(line) + 1 for line in lines[:-1]]).astype(np.int32))
    _save("pattern", np.frombuffer(b"needle", dtype=np.uint8))


if __name__ == "__main__":
    main()
