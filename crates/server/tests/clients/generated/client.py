"""Generates a client for Python from a description of the API, imports all of it, and calls a server with it.

Arguments: the file of the description, and the base URL of the server. What it prints is one object: the operations that
the client has, by tag, and what was said while it was generated.
"""

import importlib
import json
import pkgutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path

description, base = sys.argv[1:]


def generate():
    command = [sys.executable, "-m", "openapi_python_client", "generate"]
    command += ["--path", description, "--meta", "none", "--output-path", "contexture_client"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


said = generate()
sys.path.insert(0, str(Path.cwd()))

import contexture_client  # noqa: E402

operations = {}
for module in pkgutil.walk_packages(contexture_client.__path__, "contexture_client."):
    importlib.import_module(module.name)
    parts = module.name.split(".")
    if parts[1] == "api" and len(parts) == 4:
        operations.setdefault(parts[2], []).append(parts[3])

from contexture_client import Client, models  # noqa: E402
from contexture_client.api.branches import create_branch, delete_branch, list_branches  # noqa: E402
from contexture_client.api.branches import list_checkpoints, set_checkpoint  # noqa: E402
from contexture_client.api.compile_ import compile_conversation  # noqa: E402
from contexture_client.api.conversations import create_conversation, show_conversation  # noqa: E402
from contexture_client.api.messages import append_messages, list_items  # noqa: E402
from contexture_client.api.search import search_items  # noqa: E402
from contexture_client.api.transfer import export_conversation, import_conversations  # noqa: E402
from contexture_client.types import File  # noqa: E402

client = Client(base_url=base)
called = set()


def call(module, *args, status, **named):
    """Calls an operation, and returns what its answer was read as."""
    answer = module.sync_detailed(*args, client=client, **named)
    assert answer.status_code == status, (module.__name__, answer.status_code, answer.content)
    called.add(module.__name__.rsplit(".", 1)[1])
    return answer.parsed


made = call(create_conversation, status=201, body=models.NewConversationDocument(id="from-python", title="Python"))
assert made.id == "from-python" and made.version == 1, made
part = models.UiPart(type_="text", text="Where is my parcel?")
message = models.UiMessage(id="m1", role=models.UiRole.USER, parts=[part])
answered = models.MessageItem(type_=models.MessageItemType.MESSAGE, role=models.ItemRole.ASSISTANT, content="It arrives today.")
body = models.AppendDocument(messages=[message], items=[answered])
saved = call(append_messages, "from-python", status=201, body=body)
assert saved.messages[0] == "m1" and len(saved.items) == 2, saved
items = call(list_items, "from-python", status=200).items
assert [item.kind for item in items] == [models.ItemKind.USER, models.ItemKind.ASSISTANT], items
assert isinstance(items[0].item, models.MessageItem), items[0]
assert items[1].origin is models.Origin.MODEL, items[1]
call(set_checkpoint, "from-python", "asked", status=200)
call(create_branch, "from-python", status=201, body=models.NewBranchDocument(name="aside"))
branches = call(list_branches, "from-python", status=200).branches
assert [branch.name for branch in branches] == ["main", "aside"], branches
call(delete_branch, "from-python", "aside", status=204)
checkpoints = call(list_checkpoints, "from-python", status=200).checkpoints
assert [checkpoint.name for checkpoint in checkpoints] == ["asked"], checkpoints
request = models.CompileRequest(to=models.ProviderFormat.OPENAI_CHAT, model="gpt-5.4")
compiled = call(compile_conversation, "from-python", status=200, body=request)
assert compiled.payload.to_dict()["messages"][0]["content"] == "Where is my parcel?", compiled
hits = call(search_items, status=200, query="parcel").hits
assert [hit.conversation for hit in hits] == ["from-python"], hits
missing = call(show_conversation, "nowhere", status=404)
assert missing.code is models.ProblemCode.NOT_FOUND, missing

# Lines of JSON are no type of the generator's: the bytes are there as they came.
lines = export_conversation.sync_detailed("from-python", client=client).content
refused = call(import_conversations, status=409, body=File(payload=BytesIO(lines)))
assert refused.code == "already_exists", refused

print(json.dumps({"operations": operations, "called": sorted(called), "said": said}))
