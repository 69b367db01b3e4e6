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


def asks(name):
    return user(f'{name}\nupstream: again {CALLS} weather {{"city": "Paris"}}')


def headers(name):
    return {"x-contexture-conversation": name} if "_named" in name else {}


def openai_apis(base, name):
    asks_as = {"api_key": "sk-client", "default_headers": headers(name)}
    return [openai.OpenAI(base_url=f"{one}/v1", **asks_as) for one in base.split(",")]


def chat(name, stream, pause):
    tool = {"type": "function", "function": {"name": "weather", "parameters": CITY}}

    def run(base):
        apis = openai_apis(base, name)
        said, count = [asks(name)], 0
        while True:
            asked, count = {"model": MODEL, "messages": said, "tools": [tool]}, count + 1
            api = apis[count % len(apis)]
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
        apis = openai_apis(base, name)
        said, count = [asks(name)], 0
        while True:
            asked, count = {"model": MODEL, "input": said, "tools": [tool]}, count + 1
            api = apis[count % len(apis)]
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
        asks_as = {"api_key": "sk-client", "default_headers": headers(name)}
        apis = [anthropic.Anthropic(base_url=one, **asks_as) for one in base.split(",")]
        said, count = [asks(name)], 0
        while True:
            asked = {"model": MODEL, "max_tokens": 1000, "messages": said, "tools": [tool]}
            count += 1
            api = apis[count % len(apis)]
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
    for mode in ["whole", "streamed"]:
        for pause in [0, 5, 20, 50]:
            for name in [f"{kind}_{mode}_{pause}", f"{kind}_{mode}_{pause}_named"]:
                LOOPS[name] = loop(name, mode == "streamed", pause / 1000)

scenarios.run(LOOPS, at_once=4)
