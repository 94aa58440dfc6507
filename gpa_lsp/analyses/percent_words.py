"""Percent in the sentences of analyses. Tables and bars carry ratios, which the renderers write."""


def say_percent(ratio: float) -> str:
    """A ratio in whole percent; what is more than nothing is never said to be nothing, nor what is less than all to be all.

    >>> say_percent(0.8149), say_percent(0.002), say_percent(0.9996), say_percent(1.0)
    ('81 %', '<1 %', '>99 %', '100 %')
    """
    if 0 < ratio < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= ratio < 1 else f"{100 * ratio:.0f} %"
