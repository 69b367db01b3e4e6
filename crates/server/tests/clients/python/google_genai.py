"""The `google-genai` package."""

from google import genai
from google.genai import types

import scenarios
from scenarios import MODEL, SAID, TURNS

NO_CALLING = types.AutomaticFunctionCallingConfig(disable=True)


def client(base):
    """To be held as long as it is used: it closes its connections when it goes."""
    retries = types.HttpRetryOptions(attempts=2, initial_delay=0.01, max_delay=0.02, jitter=0.001)
    options = types.HttpOptions(base_url=base, retry_options=retries)
    return genai.Client(api_key="client-key", http_options=options)


def content(text):
    def ask(base):
        api = client(base)
        return api.models.generate_content(model=MODEL, contents=text)

    return ask


def stream_of(api, text):
    return api.models.generate_content_stream(model=MODEL, contents=text)


def models(base):
    api = client(base)
    return list(api.models.list())


def count(base):
    api = client(base)
    return api.models.count_tokens(model=MODEL, contents=SAID["plain"])


def stream(base):
    api = client(base)
    return list(stream_of(api, SAID["stream"]))


def tools(base):
    """The package calls the function by itself."""
    api = client(base)
    chat = api.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[scenarios.weather]))
    return [chat.send_message(SAID["tool"]), chat.get_history()]


def tools_stream(base):
    config = types.GenerateContentConfig(tools=[scenarios.weather], automatic_function_calling=NO_CALLING)
    api = client(base)
    return list(api.models.generate_content_stream(model=MODEL, contents=SAID["tool"], config=config))


def session(base):
    api, saw = client(base), []
    chat = api.chats.create(model=MODEL)
    for number in range(TURNS):
        answer = chat.send_message(scenarios.turn(number))
        saw.append([answer.text, answer.usage_metadata])
    return saw


def abort(base):
    api = client(base)
    saw = scenarios.until_left(stream_of(api, SAID["abort"]))
    api.close()
    return saw


def cut(base):
    api = client(base)
    return scenarios.until_cut(stream_of(api, SAID["cut"]))


scenarios.run(
    {
        "models": models,
        "count": count,
        "plain": content(SAID["plain"]),
        "stream": stream,
        "tools": tools,
        "tools_stream": tools_stream,
        "session": session,
        "abort": abort,
        "limited_once": content(SAID["limited_once"]),
        "limited": content(SAID["limited"]),
        "failing": content(SAID["failing"]),
        "lost_once": content(SAID["lost_once"]),
        "cut": cut,
    }
)
