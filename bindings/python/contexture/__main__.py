"""`python -m contexture`: the program, with its arguments, streams, signals and exit code."""

import os
import sys

from contexture._program import find_program


def _run() -> None:
    program = find_program()
    words = [program, *sys.argv[1:]]
    if os.name != "nt":
        # Takes this process's place, so nothing has to be passed on.
        os.execv(program, words)
    # Windows has no such call; a console sends Ctrl-C to both, and this one must outlive the other.
    import signal
    import subprocess

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(words))


if __name__ == "__main__":
    _run()
