"""Kernels made to hurt: shapes of control flow and dependence that simple algorithms need quadratic or exponential time for."""

from collections.abc import Callable

from gpa_lsp.kernel.model import Kernel
from tests.conftest import IS_NIGHTLY
from tests.rows.written import write_kernel

STALLS = "long_scoreboard=3/2 short_scoreboard=2/1 wait=2/1 selected=1"


def write_diamonds(count: int) -> Kernel:
    """A load, then a chain of diamonds one arm of which waits for it: ``2 ** count`` paths."""
    lines = ["B-:R-:W0:-:S02  LDG.E R2, [R4.64]  # selected=1"]
    for number in range(count):
        lines += [
            f"B-:R-:W-:-:S05  @P0 BRA else{number}  # branch_resolving=1",
            f"B0:R-:W-:-:S04  FADD R3, R2, R3  # {STALLS}",
            f"else{number}:",
            f"B-:R-:W-:-:S04  IADD3 R6, R6, 0x1, RZ  # {STALLS}",
        ]
    return write_kernel("\n".join([*lines, "EXIT  # drain=1"]))


def write_long_loop(count: int) -> Kernel:
    """One loop body in which every instruction sets the same scoreboard and is sampled; one at its end waits for all."""
    lines = ["loop:"]
    lines += [f"B-:R-:W0:-:S02  LDG.E R{2 + number % 200}, [R4.64]  # {STALLS}" for number in range(count)]
    lines += [f"B0:R-:W-:-:S04  FADD R3, R2, R3  # {STALLS}", "B-:R-:W-:-:S05  @P0 BRA loop", "EXIT  # drain=1"]
    return write_kernel("\n".join(lines))


def write_waiting_loop(count: int) -> Kernel:
    """One loop body in which every instruction sets a scoreboard, and waits for it on one arm only, so that nothing is ever over."""
    lines = ["loop:", "B-:R-:W0:-:S02  LDG.E R2, [R4.64]"]
    for number in range(count):
        lines += [
            f"B-:R-:W-:-:S05  @P{number % 6} BRA skip{number}",
            f"B0:R-:W0:-:S02  LDG.E R{8 + number % 200}, [R2.64]  # {STALLS}",
            f"skip{number}:",
        ]
    return write_kernel("\n".join([*lines, "B-:R-:W-:-:S05  @P6 BRA loop", "EXIT"]))


def write_irreducible(count: int) -> Kernel:
    """Loops that are entered in two places, one after the other."""
    lines = []
    for number in range(count):
        lines += [
            f"B-:R-:W-:-:S05  @P0 BRA second{number}",
            f"first{number}:",
            f"B1:R-:W0:-:S02  LDG.E R2, [R4.64]  # {STALLS}",
            f"second{number}:",
            f"B0:R-:W1:-:S02  LDS R4, [R2]  # {STALLS}",
            f"B-:R-:W-:-:S05  @P1 BRA first{number}  # wait=1",
        ]
    return write_kernel("\n".join([*lines, "EXIT"]))


def write_recursion(count: int) -> Kernel:
    """Local functions that call each other in a ring, and themselves."""
    lines = ["B-:R-:W0:-:S02  LDG.E R2, [R4.64]", "B-:R-:W-:-:S05  CALL.REL.NOINC `($f0)", "EXIT"]
    for number in range(count):
        lines += [
            f"$f{number}:",
            f"B0:R-:W-:-:S04  FADD R3, R2, R3  # {STALLS}",
            f"B-:R-:W0:-:S02  LDG.E R2, [R4.64]  # {STALLS}",
            f"B-:R-:W-:-:S05  @P0 CALL.REL.NOINC `($f{number})",
            f"B-:R-:W-:-:S05  @P1 CALL.REL.NOINC `($f{(number + 1) % count})  # branch_resolving=2",
            f"B0:R-:W-:-:S04  FADD R3, R2, R3  # {STALLS}",
            "B-:R-:W-:-:S05  RET.REL.NODEC R20 `(kernel)",
        ]
    return write_kernel("\n".join(lines))


def write_nest(depth: int) -> Kernel:
    """Loops inside loops, each with a load that the next level waits for."""
    lines = []
    for level in range(depth):
        lines += [f"loop{level}:", f"B0:R-:W0:-:S02  LDG.E R{2 + level % 100}, [R4.64]  # {STALLS}"]
    for level in reversed(range(depth)):
        lines.append(f"B-:R-:W-:-:S05  @P{level % 6} BRA loop{level}  # wait=1")
    return write_kernel("\n".join([*lines, "EXIT"]))


def write_one_sample() -> Kernel:
    """A single sample."""
    return write_kernel("B-:R-:W0:-:S02  LDG.E R2, [R4.64]\nB0:R-:W-:-:S04  FADD R3, R2, R3  # long_scoreboard=1\nEXIT")


def write_many_samples() -> Kernel:
    """3.6 million samples on three instructions."""
    return write_kernel(
        "B-:R-:W0:-:S02  LDG.E R2, [R4.64]  # selected=600000\n"
        "B0:R-:W-:-:S04  FADD R3, R2, R3  # long_scoreboard=2400000/2000000\n"
        "B-:R-:W-:-:S05  EXIT  # wait=600000\n"
    )


def write_no_instruction_without_barriers(count: int) -> Kernel:
    """All six scoreboards waited for by every instruction, none of them ever set."""
    return write_kernel("\n".join([f"B012345:R-:W-:-:S15  NOP  # {STALLS}"] * count + ["EXIT"]))


# What costs the square of its size is hopeless at an eighth of it, too; all are deeper than Python's calls may be.
SHARE = 1 if IS_NIGHTLY else 8

WORST_CASES: dict[str, Callable[[], Kernel]] = {
    "chain of diamonds": lambda: write_diamonds(10_000 // SHARE),
    "long loop body of loads": lambda: write_long_loop(50_000 // SHARE),
    "long loop body of waits that end nothing": lambda: write_waiting_loop(10_000 // SHARE),
    "irreducible loops": lambda: write_irreducible(5_000 // SHARE),
    "1,000 functions that recur": lambda: write_recursion(1_000),
    "nest of 1,100 loops": lambda: write_nest(1_100),
    "one sample": write_one_sample,
    "3.6 million samples": write_many_samples,
    "waits for nothing": lambda: write_no_instruction_without_barriers(2_000),
}
