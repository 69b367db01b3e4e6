"""The command that comes with the package."""

from __future__ import annotations

import os
import sys
import sysconfig

__all__ = ["find_program"]


def find_program() -> str:
    """Return the path of the program that was installed with this package.

    Raises FileNotFoundError, which names the places that were searched.
    """
    name = "contexture" + (sysconfig.get_config_var("EXE") or "")
    places = _script_folders()
    for place in places:
        program = os.path.join(place, name)
        if os.path.isfile(program):
            return program
    raise FileNotFoundError(f"no {name} in {', '.join(places)}: install contexture again")


def _script_folders() -> list[str]:
    folders = [sysconfig.get_path("scripts")]
    # `pip install --user`.
    folders.append(sysconfig.get_path("scripts", scheme=_user_scheme()))
    # `pip install --target` and `--prefix` put the scripts beside the packages, or where an installation has them.
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders.append(os.path.join(packages, "bin"))
    folders.append(os.path.normpath(os.path.join(packages, "..", "..", "..", "bin")))
    return folders


def _user_scheme() -> str:
    # Python 3.9 does not say it, and has these names.
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return f"{os.name}_user"
