"""Names of signals, and what they mean."""

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


def describe_signal(number: int) -> str:
    """A signal's number, name and meaning.

    >>> describe_signal(11), describe_signal(250)
    ('signal 11 (SIGSEGV, segmentation fault)', 'signal 250')
    """
    meaning = (signal.strsignal(number) or "").lower() if number in set(signal.Signals) else ""
    return f"signal {number} ({name_signal(number)}, {meaning})" if meaning else f"signal {number}"
