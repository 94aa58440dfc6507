"""What a collector says of its sampling beside the samples themselves; profiles and reports carry it alike."""

from msgspec import Struct


class Sampling(Struct, frozen=True, kw_only=True):
    """How stalls were sampled, and what of it is in no row of samples: of a launch, or of the whole run. None is unknown, not zero."""

    period_cycles: int | None = None  # SM cycles between two samples of a scheduler
    # taken and lost, by hardware or collector; nobody knows at which instruction they were
    dropped_samples: int | None = None
    foreign_samples: int | None = None  # of code that belongs to no launch of the profile, known by number only
    total_samples: int | None = None  # the collector's own count of everything: in rows, foreign and dropped
    is_simulated: bool = False  # a model of the GPU says so, and nothing was measured
    # why no time that the model gives such launches was checked; empty where some were, and where it was measured
    unchecked: str = ""


class Aggregate(Struct, frozen=True, kw_only=True):
    """Launches of one kernel that a collector has added up into one record."""

    launches: int | None  # how many, at least 1; None when the collector does not know
