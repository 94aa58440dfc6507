"""The terms of the field that users read, what each means, and the words that are not used for it.

Every text a user reads keeps to it: ``tests/house/test_words.py`` looks through all of them.
"""

from msgspec import Struct


class Term(Struct, frozen=True, kw_only=True):
    """A term of the field."""

    name: str  # as it is written, in the singular
    meaning: str  # one sentence for somebody who meets it for the first time
    not_said: tuple[str, ...] = ()  # regular expressions of what is not written instead, case ignored
    is_plain: bool = False  # English that needs no explanation where it is read


# All terms
TERMS = (
    Term(
        name="stalled on",
        meaning="What a warp waits for before it can issue its next instruction; the profiler files the sample under that next instruction.",
        not_said=(
            r"who waits",
            r"\bwaiters?\b",
            r"\bwaits? for (data|an|a|the|room|it|its)\b",
            r"\bis waited for\b",
            r"\bare waited for\b",
        ),
    ),
    Term(
        name="stalled instruction",
        meaning="The instruction that could not issue: where the profiler counts the stall, not where it comes from.",
        not_said=(r"\bvictims?\b",),
    ),
    Term(
        name="cause",
        meaning="The instruction whose result, or whose use of a unit, the stalled instruction is stalled on.",
        not_said=(r"\bculprits?\b", r"\bto blame\b"),
    ),
    Term(
        name="attribution",
        meaning="Moving each stall from the stalled instruction to the instructions that caused it.",
        not_said=(r"\bblamers?\b", r"\bblamed?\b"),
    ),
    Term(
        name="not-issued samples",
        meaning="Samples taken in a cycle in which the scheduler issued no instruction at all: the part that hurts.",
        not_said=(r"samples without issue", r"\bwithout issue\b", r"latency samples"),
    ),
    Term(
        name="iteration",
        meaning="One pass through the body of a loop as it was written in the source.",
        not_said=(r"\bturns?\b(?! (on|off|out|into)\b)",),
    ),
    Term(
        name="unroll factor",
        meaning="How many iterations one pass through the unrolled body does.",
        not_said=(r"\bcopies of (the|a) (loop|body)",),
    ),
    Term(
        name="in flight",
        meaning="Issued, and not yet completed: a load whose data has not arrived.",
        not_said=(r"\bunder ?way\b",),
    ),
    Term(
        name="issue earlier",
        meaning="To move a load up, away from the first use of its value, so that other work covers its latency.",
        not_said=(r"\bask(ed|s)? for (results|values|data)?\s*earlier", r"\basked for as early\b"),
    ),
    Term(
        name="suggestion",
        meaning="A change to the code, the launch or the build that the advice estimates.",
        not_said=(r"\bremed(y|ies)\b",),
    ),
    Term(
        name="does not apply",
        meaning="An optimizer that found nothing to suggest, with the reason.",
        not_said=(r"nothing to say", r"\bsilences?\b", r"\bhear it out\b"),
    ),
    Term(
        name="wavefront",
        meaning="One pass of an access through the L1 or shared-memory pipeline; a conflict-free request of four bytes per lane takes one.",
    ),
    Term(name="sector", meaning="32 aligned bytes: the unit in which caches and DRAM move data."),
    Term(name="request", meaning="One memory instruction of one warp, as a cache receives it."),
    Term(
        name="divergence",
        meaning="Threads of a warp take different paths, so the warp executes each path with part of its lanes.",
        not_said=(r"\bbranch(es)? parts?\b", r"\bparts? (the|its|their) (threads|warp|lanes)\b"),
    ),
    Term(
        name="ceiling",
        meaning="The most a unit can sustain: a line of the roofline chart.",
        not_said=(r"\broofs?\b",),
    ),
    Term(name="headroom", meaning="How many times faster the kernel could run before it meets the nearest ceiling."),
    Term(name="occupancy", meaning="Resident warps of a multiprocessor, as a share of the most it can hold."),
    Term(
        name="wave",
        meaning="The blocks that are resident on the GPU at the same time; the last, partly filled wave is the tail.",
    ),
    Term(
        name="operational intensity",
        meaning="Operations per byte moved at one level of the memory.",
        not_said=(r"\barithmetic intensity\b",),
    ),
    Term(
        name="again",
        meaning="Plain English for a second time.",
        is_plain=True,
        not_said=(r"\banew\b", r"\blikewise\b", r"\bits own matter\b", r"\bas (it|they) (is|are) now\b"),
    ),
    Term(
        name="unchanged",
        meaning="Plain English for what a change leaves as it was.",
        is_plain=True,
        not_said=(r"\bstays? as (it|they|he) (is|are|was|were)\b", r"\bleft as (it|they) (is|are)\b"),
    ),
    Term(
        name="unknown",
        meaning="Not in the profile, and not guessed.",
        is_plain=True,
        not_said=(r"\bnobody (knows|can know|has)\b", r"\bnot to be known\b"),
    ),
    Term(
        name="basis",
        meaning="How a figure was computed, from which counts.",
        not_said=(r"what this rests on", r"\brests? on\b"),
    ),
)
