"""What every client is asked, and how what it saw is told.

A client's script maps each scenario it can do to a function of the base URL. What the function returns, or the error it
ends with, is what the client saw: printed as a line a scenario, `saw NAME JSON`. The same line with and without a proxy between
means that the client cannot tell.

What is said is in `said.json`. Lines that begin with `upstream:` are orders to the scripted upstream.
"""

import concurrent.futures
import dataclasses
import json
import pathlib
import sys

SAID = json.loads((pathlib.Path(__file__).parent.parent / "said.json").read_text())
MODEL, TURNS, WEATHER = SAID["model"], SAID["turns"], SAID["weather"]
ABORT_AFTER = SAID["abort_after"]
# What the tool takes.
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def user(content):
    """What a person says, to OpenAI and Anthropic alike."""
    return {"role": "user", "content": content}


def turn(number):
    """What the person says in a turn of the session."""
    return SAID["turn"].format(number=number)


def weather(city: str) -> str:
    """The weather in a city."""
    return WEATHER


def run(scenarios, at_once=1):
    """Runs those that the command line names, all if it names none: `script BASE_URL [scenario…]`."""
    base, *names = sys.argv[1:]

    def see(name):
        try:
            saw = scenarios[name](base)
        except Exception as error:
            saw = failure(error)
        told = json.dumps(plain(saw), sort_keys=True, ensure_ascii=False)
        # Where it asked is not what it saw.
        return name, told.replace(base, "http://base")

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for name, told in pool.map(see, names or scenarios):
            print("saw", name, told, flush=True)


def failure(error):
    """What can be seen of an error: its class, its status, what the provider said."""
    body = getattr(error, "body", None)
    if body is None:
        body = getattr(error, "details", None)
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(error, "code", None)
    return {"error": type(error).__name__, "text": str(error), "status": status, "body": body}


def plain(value):
    """A value of a client as plain data."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", warnings=False)
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        # `google-genai` shows an answer's headers too, with those of its connection.
        shown = {name: inner for name, inner in value.items() if name != "sdk_http_response"}
        return {str(name): plain(inner) for name, inner in shown.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return repr(value)


def without(value, names):
    """Plain data without the fields of these names, at any depth: what a client makes itself is not what it saw."""
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    if isinstance(value, list):
        return [without(inner, names) for inner in value]
    return value


def until_left(events):
    """The first events of a stream, which is left then."""
    saw = [next(events) for _ in range(ABORT_AFTER)]
    events.close()
    return saw


def until_cut(events):
    """The events of a stream that breaks, and how it broke."""
    seen = []
    try:
        for event in events:
            seen.append(event)
    except Exception as error:
        return {"events": seen, "failure": failure(error)}
    return {"events": seen, "failure": None}
