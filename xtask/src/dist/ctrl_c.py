"""Starts a server in a terminal of its own, types Ctrl-C once it listens, and ends with the server's exit code."""

import os
import pty
import sys

pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while b"listening on" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"\x03")
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    # The terminal is gone with the last program in it.
    pass
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
