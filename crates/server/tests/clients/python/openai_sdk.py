"""The `openai` package: responses and chat completions."""

import openai

import scenarios
from scenarios import CITY, MODEL, SAID, TURNS, WEATHER, user

TOOL = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {**CITY, "additionalProperties": False},
    "strict": True,
}
CHAT_TOOL = {"type": "function", "function": {name: value for name, value in TOOL.items() if name != "type"}}


def client(base, retries=2):
    return openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client", max_retries=retries)


def responses(text, retries=2):
    return lambda base: client(base, retries).responses.create(model=MODEL, input=text)


def responses_stream(base):
    return list(client(base).responses.create(model=MODEL, input=SAID["stream"], stream=True))


def responses_tools(base):
    api, said, saw = client(base), [user(SAID["tool"])], []
    for _ in range(2):
        answer = api.responses.create(model=MODEL, input=said, tools=[TOOL])
        saw.append(answer)
        said += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        for call in calls:
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": WEATHER})
    return saw


def responses_tools_stream(base):
    with client(base).responses.stream(model=MODEL, input=SAID["tool"], tools=[TOOL]) as stream:
        return [event for event in stream] + [stream.get_final_response()]


def responses_session(base):
    api, said, saw = client(base), [], []
    for number in range(TURNS):
        said.append(user(scenarios.turn(number)))
        answer = api.responses.create(model=MODEL, input=said)
        said += answer.output
        saw.append([answer.output_text, answer.usage])
    return saw


def responses_abort(base):
    return scenarios.until_left(client(base).responses.create(model=MODEL, input=SAID["abort"], stream=True))


def responses_cut(base):
    return scenarios.until_cut(client(base).responses.create(model=MODEL, input=SAID["cut"], stream=True))


def chat(text, retries=2):
    return lambda base: client(base, retries).chat.completions.create(model=MODEL, messages=[user(text)])


def chat_stream(base):
    return list(
        client(base).chat.completions.create(
            model=MODEL,
            messages=[user(SAID["stream"])],
            stream=True,
            stream_options={"include_usage": True},
        )
    )


def chat_tools(base):
    api, messages, saw = client(base), [user(SAID["tool"])], []
    for _ in range(2):
        answer = api.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        saw.append(answer)
        message = answer.choices[0].message
        messages.append(message)
        for call in message.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER})
    return saw


def chat_tools_stream(base):
    return list(
        client(base).chat.completions.create(
            model=MODEL, messages=[user(SAID["tool"])], tools=[CHAT_TOOL], stream=True
        )
    )


def chat_session(base):
    api, messages, saw = client(base), [{"role": "system", "content": "Be short."}], []
    for number in range(TURNS):
        messages.append(user(scenarios.turn(number)))
        answer = api.chat.completions.create(model=MODEL, messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        saw.append([answer.choices[0].message.content, answer.usage])
    return saw


def chat_abort(base):
    stream = client(base).chat.completions.create(
        model=MODEL, messages=[user(SAID["abort"])], stream=True
    )
    return scenarios.until_left(stream)


def chat_cut(base):
    stream = client(base).chat.completions.create(model=MODEL, messages=[user(SAID["cut"])], stream=True)
    return scenarios.until_cut(stream)


scenarios.run(
    {
        "models": lambda base: list(client(base).models.list()),
        "responses_plain": responses(SAID["plain"]),
        "responses_stream": responses_stream,
        "responses_tools": responses_tools,
        "responses_tools_stream": responses_tools_stream,
        "responses_session": responses_session,
        "responses_abort": responses_abort,
        "responses_limited_once": responses(SAID["limited_once"]),
        "responses_limited": responses(SAID["limited"], retries=1),
        "responses_failing": responses(SAID["failing"], retries=1),
        "responses_lost_once": responses(SAID["lost_once"]),
        "responses_cut": responses_cut,
        "chat_plain": chat(SAID["plain"]),
        "chat_stream": chat_stream,
        "chat_tools": chat_tools,
        "chat_tools_stream": chat_tools_stream,
        "chat_session": chat_session,
        "chat_abort": chat_abort,
        "chat_limited_once": chat(SAID["limited_once"]),
        "chat_limited": chat(SAID["limited"], retries=1),
        "chat_failing": chat(SAID["failing"], retries=1),
        "chat_lost_once": chat(SAID["lost_once"]),
        "chat_cut": chat_cut,
    }
)
