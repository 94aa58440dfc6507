"""From which share on a line is worth a word, where the user's own threshold for hints does not decide."""

from gpa_lsp.lsp.settings import Settings

LEAST_SHARE_RATIO = 0.005
"""Below this share of a kernel's samples a line has nothing to say: a coloured line or a hover there would only be noise."""


def find_least_share(settings: Settings) -> float:
    """The least share of a line with colour or a hover; a user who wants hints on colder lines wants these there too.

    >>> find_least_share(Settings()), find_least_share(Settings(min_share_ratio=0.001))
    (0.005, 0.001)
    """
    return min(LEAST_SHARE_RATIO, settings.min_share_ratio)
