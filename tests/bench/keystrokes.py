"""What a keystroke costs the server near the start and near the end of a long document: ``python -m tests.bench.keystrokes [--lines N] [--times N]``.

Prints CPU time of one ``didChange`` with one character, and the ratio of the two places, which should be about one.
"""

import argparse
import time

from gpa_lsp.editor.text_changes import EditedText
from tests.editor.edits import make_units
from tests.editor.test_text_changes import read_changes, replace


def measure_keystrokes(edited: EditedText, line: int, times: int) -> float:
    """Median CPU seconds of a keystroke on a line."""
    changes = [read_changes([replace((line, 4), (line, 4), "x")]) for _ in range(times)]
    taken = []
    for change in changes:
        started = time.process_time()
        edited.apply(change)
        taken.append(time.process_time() - started)
    return sorted(taken)[len(taken) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=200)
    arguments = parser.parse_args()
    edited = EditedText("    value[index] += weight;\n" * arguments.lines, make_units("utf-16"))
    edited.apply(read_changes([replace((0, 0), (0, 0), "x")]))
    near, far = (
        measure_keystrokes(edited, line, arguments.times)
        for line in (10, max(arguments.lines - arguments.lines // 10, 0))
    )
    started = time.process_time()
    edited.read()
    print(
        f"a keystroke in {arguments.lines:,} lines: {1e6 * near:.0f} µs near the start, {1e6 * far:.0f} µs near the end, "
        f"ratio {far / near:.2f}; reading the text afterwards {1e3 * (time.process_time() - started):.1f} ms"
    )


if __name__ == "__main__":
    main()
