"""Make a virtual environment with the libraries that the bundled server needs: ``make_environment.py FOLDER REQUIREMENTS``."""

import subprocess
import sys
import venv
from pathlib import Path


def main(folder: Path, requirements: Path) -> int:
    """Make it, in place of one that is there."""
    sys.stdout.write(f"Making a Python environment in {folder}\n")
    sys.stdout.flush()
    venv.create(folder, with_pip=True, clear=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    # -I: it runs where the person is, who may have a folder named pip.
    command = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "-r", str(requirements)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
