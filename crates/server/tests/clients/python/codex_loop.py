"""The Codex CLI at full speed: a loop of commands, with and without a name; see `tool_loop.py`.

Codex asks one server. Where there are several, a relay of ours gives each request to the next of them.
"""

import http.client
import http.server
import itertools
import threading
import urllib.parse

import scenarios
from codex_cli import Codex

CALLS = 29
# Of one connection; what is passed on has its own framing.
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


def relay(bases):
    """Passes each request on to the next of the servers. Returns the relay's base URL."""
    turns = itertools.cycle(bases)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            server = http.client.HTTPConnection(urllib.parse.urlsplit(next(turns)).netloc)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            server.close()

        do_GET = do_POST = pass_on

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def loop(name, pause):
    command = f"sleep {pause / 1000}; echo one" if pause else "echo one"
    order = f'{name}\nupstream: again {CALLS} exec_command {{"cmd": "{command}", "yield_time_ms": 5000}}'
    named = f'http_headers = {{ "x-contexture-conversation" = "{name}" }}' if name.endswith("_named") else ""

    def run(base):
        bases = base.split(",")
        codex = Codex(relay(bases) if len(bases) > 1 else base, named)
        items = [event.get("item", {}) for event in codex.turn(order) if event.get("type") == "item.completed"]
        # One request more than there are commands.
        return 1 + sum(item.get("type") == "command_execution" for item in items)

    return run


LOOPS = {}
for pause in [0, 5, 20, 50]:
    for name in [f"codex_{pause}", f"codex_{pause}_named"]:
        LOOPS[name] = loop(name, pause)

scenarios.run(LOOPS)
