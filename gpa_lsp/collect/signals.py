"""Names of signals."""

import signal


def name_signal(number: int) -> str:
    """A signal's name.

    >>> name_signal(9), name_signal(250)
    ('SIGKILL', 'signal 250')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
