"""The `anthropic` package."""

import anthropic

import scenarios
from scenarios import CITY, MODEL, SAID, TURNS, WEATHER, user

TOOL = {"name": "weather", "description": "The weather in a city.", "input_schema": CITY}


def client(base, retries=2):
    return anthropic.Anthropic(base_url=base, api_key="sk-client", max_retries=retries)


def ask(api, messages, **more):
    return api.messages.create(model=MODEL, max_tokens=1000, messages=messages, **more)


def message(text, retries=2):
    return lambda base: ask(client(base, retries), [user(text)])


def stream(base):
    return list(ask(client(base), [user(SAID["stream"])], stream=True))


def tools(base):
    api, messages, saw = client(base), [user(SAID["tool"])], []
    for _ in range(2):
        answer = ask(api, messages, tools=[TOOL])
        saw.append(answer)
        messages.append({"role": "assistant", "content": answer.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": WEATHER}
            for block in answer.content
            if block.type == "tool_use"
        ]
        messages.append(user(results))
    return saw


def tools_stream(base):
    with client(base).messages.stream(
        model=MODEL, max_tokens=1000, messages=[user(SAID["tool"])], tools=[TOOL]
    ) as events:
        return [event for event in events] + [events.get_final_message()]


def session(base):
    """With marks for the cache, as agents set them."""
    api, messages, saw = client(base), [], []
    system = [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}]
    for number in range(TURNS):
        messages.append(user(scenarios.turn(number)))
        answer = ask(api, messages, system=system)
        messages.append({"role": "assistant", "content": answer.content})
        saw.append([answer.content, answer.usage])
    return saw


def abort(base):
    return scenarios.until_left(ask(client(base), [user(SAID["abort"])], stream=True))


def cut(base):
    return scenarios.until_cut(ask(client(base), [user(SAID["cut"])], stream=True))


scenarios.run(
    {
        "models": lambda base: list(client(base).models.list()),
        "count": lambda base: client(base).messages.count_tokens(model=MODEL, messages=[user(SAID["plain"])]),
        "plain": message(SAID["plain"]),
        "stream": stream,
        "tools": tools,
        "tools_stream": tools_stream,
        "session": session,
        "abort": abort,
        "limited_once": message(SAID["limited_once"]),
        "limited": message(SAID["limited"], retries=1),
        "failing": message(SAID["failing"], retries=1),
        "lost_once": message(SAID["lost_once"]),
        "cut": cut,
    }
)
