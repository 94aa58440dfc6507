"""Moments for people, in their own time zone."""

from datetime import UTC, datetime, timedelta, tzinfo

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_moment(unix_ns: int, zone: tzinfo | None = None) -> str:
    """Day and minute.

    Args:
        unix_ns: since 1970.
        zone: None for the user's.

    >>> format_moment(1_763_733_720_000_000_000, UTC)
    '2025-11-21 14:02'
    """
    return f"{_convert(unix_ns, zone):%Y-%m-%d %H:%M}"


def format_moment_briefly(unix_ns: int, now_ns: int, zone: tzinfo | None = None) -> str:
    """The minute of a moment today, the day of an earlier one.

    Args:
        unix_ns: since 1970.
        now_ns: the present, since 1970.
        zone: None for the user's.

    >>> now_ns = 1_763_740_000_000_000_000
    >>> [format_moment_briefly(now_ns - hours * 3_600_000_000_000, now_ns, UTC) for hours in (1, 24, 24 * 365)]
    ['14:46', '20 Nov', '2024-11-21']
    """
    moment, now = _convert(unix_ns, zone), _convert(now_ns, zone)
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    if moment.year == now.year:
        return f"{moment.day} {_MONTHS[moment.month - 1]}"
    return f"{moment:%Y-%m-%d}"


def _convert(unix_ns: int, zone: tzinfo | None) -> datetime:
    moment = _EPOCH + timedelta(microseconds=unix_ns // 1000)
    try:
        return moment.astimezone(zone)
    except (OverflowError, OSError, ValueError):
        return moment  # what the system cannot convert is centuries away
