"""What a collector says of its sampling beside the samples themselves; profiles and reports carry it alike."""

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How stalls were sampled, and what of it is in no row of samples: of a launch, or of the whole run. None is unknown, not zero.

    Attributes:
        period_cycles: SM cycles between two samples of a scheduler.
        dropped_samples: taken and lost, by hardware or collector; nobody knows at which instruction they were.
        foreign_samples: of code that belongs to no launch of the profile, known by number only.
        total_samples: the collector's own count of everything: in rows, foreign and dropped.
        is_simulated: a model of the GPU says so, and nothing was measured.
        unchecked: why no time that the model gives such launches was checked; empty where some were, and where it was measured.
    """

    period_cycles: int | None = None
    dropped_samples: int | None = None
    foreign_samples: int | None = None
    total_samples: int | None = None
    is_simulated: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Launches of one kernel that a collector has added up into one record.

    Attributes:
        launches: how many, at least 1; None when the collector does not know.
    """

    launches: int | None
