"""Agents at full speed, by `openai` and `anthropic`: a loop of tool calls, with and without a name, streamed or not.

A scenario shows how many requests its loop made. Its name is the first line of the conversation. Where the base URL is a list
of several, with commas between, each request of a loop goes to the next of them.
"""

import time

import anthropic
import openai

import scenarios
from scenarios import CITY, MODEL, WEATHER, user

CALLS = 29


def openai_api(base, **options):
    return openai.OpenAI(base_url=f"{base}/v1", **options)


def anthropic_api(base, **options):
    return anthropic.Anthropic(base_url=base, **options)


# Each asks with what was said, adds the answer to it, and returns the calls in the answer.


def ask_chat(api, said, stream):
    tool = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
    asked = {"model": MODEL, "messages": said, "tools": [tool]}
    if stream:
        with api.chat.completions.stream(**asked) as events:
            answer = [event for event in events] and events.get_final_completion()
    else:
        answer = api.chat.completions.create(**asked)
    message = answer.choices[0].message
    said.append(message)
    return message.tool_calls


def ask_responses(api, said, stream):
    tool = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}
    asked = {"model": MODEL, "input": said, "tools": [tool]}
    if stream:
        with api.responses.stream(**asked) as events:
            answer = [event for event in events] and events.get_final_response()
    else:
        answer = api.responses.create(**asked)
    said += answer.output
    return [item for item in answer.output if item.type == "function_call"]


def ask_messages(api, said, stream):
    tool = {"name": "weather", "input_schema": CITY}
    asked = {"model": MODEL, "max_tokens": 1000, "messages": said, "tools": [tool]}
    if stream:
        with api.messages.stream(**asked) as events:
            answer = [event for event in events] and events.get_final_message()
    else:
        answer = api.messages.create(**asked)
    said.append({"role": "assistant", "content": answer.content})
    return [block for block in answer.content if block.type == "tool_use"]


# Each tells the model what its calls gave.


def tell_chat(calls, text):
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call in calls]


def tell_responses(calls, text):
    return [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call in calls]


def tell_messages(calls, text):
    return [user([{"type": "tool_result", "tool_use_id": call.id, "content": text} for call in calls])]


KINDS = {
    "chat": (openai_api, ask_chat, tell_chat),
    "responses": (openai_api, ask_responses, tell_responses),
    "anthropic": (anthropic_api, ask_messages, tell_messages),
}


def loop(kind, name, stream, pause):
    connect, ask, tell = KINDS[kind]
    headers = {"x-contexture-conversation": name} if name.endswith("_named") else {}

    def run(base):
        apis = [connect(one, api_key="sk-client", default_headers=headers) for one in base.split(",")]
        said = [user(f'{name}\nupstream: again {CALLS} weather {{"city": "Paris"}}')]
        count = 0
        while True:
            count += 1
            calls = ask(apis[count % len(apis)], said, stream)
            if not calls:
                return count
            time.sleep(pause)
            said += tell(calls, f"{WEATHER} {count}")

    return run


LOOPS = {}
for kind in KINDS:
    for mode in ["whole", "streamed"]:
        for pause in [0, 5, 20, 50]:
            for name in [f"{kind}_{mode}_{pause}", f"{kind}_{mode}_{pause}_named"]:
                LOOPS[name] = loop(kind, name, mode == "streamed", pause / 1000)

scenarios.run(LOOPS, at_once=4)
