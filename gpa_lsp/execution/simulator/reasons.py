"""What a warp of the simulator can be waiting for, by number; the profiler's names for it."""

(
    SELECTED,
    NOT_SELECTED,
    WAIT,
    BRANCH_RESOLVING,
    NO_INSTRUCTIONS,
    LONG_SCOREBOARD,
    SHORT_SCOREBOARD,
    IMC_MISS,
    BARRIER,
    MEMBAR,
    MATH_PIPE_THROTTLE,
    LG_THROTTLE,
    MIO_THROTTLE,
    TEX_THROTTLE,
    DRAIN,
    DISPATCH_STALL,
) = range(16)

# In Nsight Compute's spelling, by number
REASONS = (
    "selected",
    "not_selected",
    "wait",
    "branch_resolving",
    "no_instructions",
    "long_scoreboard",
    "short_scoreboard",
    "imc_miss",
    "barrier",
    "membar",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "tex_throttle",
    "drain",
    "dispatch_stall",
)

REASON_COUNT = len(REASONS)
