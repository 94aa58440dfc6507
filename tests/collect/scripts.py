"""Programs that behave badly, as a profiler or an application may."""

import sys
from pathlib import Path

FAMILY = """
import os, signal, sys, time
folder = sys.argv[1]
if os.fork() == 0:                     # a child that leaves the session and will not listen
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if os.fork() == 0:                 # its own child, whose parent ends at once
        open(folder + "/grandchild", "w").close()
        time.sleep(3600)
    if sys.argv[2] == "orphan":
        os._exit(0)
    open(folder + "/child", "w").close()
    time.sleep(3600)
open(folder + "/parent", "w").close()
"""

HANG = "time.sleep(3600)"
"""Added to the former: the command itself does not end either."""

STUBBORN = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(3600)
"""

ENDLESS = """
import os
while True:
    os.write(1, b"0123456789 step\\n" * 4000)
"""


def write_program(path: Path, body: str) -> str:
    """Make an executable Python program; its path."""
    path.write_text(f"#!{sys.executable} -S\n{body}")
    path.chmod(0o755)
    return str(path)
