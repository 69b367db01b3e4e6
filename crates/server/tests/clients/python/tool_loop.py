"""Agents at full speed, by `openai` and `anthropic`: a loop of tool calls, with and without a name, streamed or not.

A scenario shows how many requests its loop made. Its name is the first line of the conversation.
"""

import time

import anthropic
import openai

import scenarios
from scenarios import CITY, MODEL, WEATHER, user

CALLS = 29


def asks(name):
    return user(f'{name}\nupstream: again {CALLS} weather {{"city": "Paris"}}')


def headers(name):
    return {"x-contexture-conversation": name} if "_named" in name else {}


def chat(name, stream, pause):
    tool = {"type": "function", "function": {"name": "weather", "parameters": CITY}}

    def run(base):
        api = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client", default_headers=headers(name))
        said, count = [asks(name)], 0
        while True:
            asked, count = {"model": MODEL, "messages": said, "tools": [tool]}, count + 1
            if stream:
                with api.chat.completions.stream(**asked) as events:
                    answer = [event for event in events] and events.get_final_completion()
            else:
                answer = api.chat.completions.create(**asked)
            message = answer.choices[0].message
            said.append(message)
            if not message.tool_calls:
                return count
            time.sleep(pause)
            for call in message.tool_calls:
                said.append({"role": "tool", "tool_call_id": call.id, "content": f"{WEATHER} {count}"})

    return run


def responses(name, stream, pause):
    tool = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}

    def run(base):
        api = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client", default_headers=headers(name))
        said, count = [asks(name)], 0
        while True:
            asked, count = {"model": MODEL, "input": said, "tools": [tool]}, count + 1
            if stream:
                with api.responses.stream(**asked) as events:
                    answer = [event for event in events] and events.get_final_response()
            else:
                answer = api.responses.create(**asked)
            said += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return count
            time.sleep(pause)
            for call in calls:
                output = {"call_id": call.call_id, "output": f"{WEATHER} {count}"}
                said.append({"type": "function_call_output", **output})

    return run


def messages(name, stream, pause):
    tool = {"name": "weather", "input_schema": CITY}

    def run(base):
        api = anthropic.Anthropic(base_url=base, api_key="sk-client", default_headers=headers(name))
        said, count = [asks(name)], 0
        while True:
            asked = {"model": MODEL, "max_tokens": 1000, "messages": said, "tools": [tool]}
            count += 1
            if stream:
                with api.messages.stream(**asked) as events:
                    answer = [event for event in events] and events.get_final_message()
            else:
                answer = api.messages.create(**asked)
            said.append({"role": "assistant", "content": answer.content})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return count
            time.sleep(pause)
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": f"{WEATHER} {count}"}
                for call in calls
            ]
            said.append(user(results))

    return run


LOOPS = {}
for kind, loop in {"chat": chat, "responses": responses, "anthropic": messages}.items():
    for mode, stream, pause in [
        ("whole", False, 0),
        ("whole_named", False, 0.005),
        ("streamed", True, 0.02),
        ("streamed_named", True, 0),
    ]:
        name = f"{kind}_{mode}"
        LOOPS[name] = loop(name, stream, pause)

scenarios.run(LOOPS)
