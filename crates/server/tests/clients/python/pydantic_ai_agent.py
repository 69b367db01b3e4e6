"""The `pydantic-ai` package: its agents over each provider."""

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

import scenarios
from scenarios import MODEL, SAID, TURNS


def responses(base):
    return OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=f"{base}/v1", api_key="sk-client"))


def chat(base):
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{base}/v1", api_key="sk-client"))


def anthropic(base):
    return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=base, api_key="sk-client"))


def google(base):
    return GoogleModel(MODEL, provider=GoogleProvider(base_url=base, api_key="client-key"))


def told(messages):
    """The messages without the times and ids that the package gives them."""
    return scenarios.without(scenarios.plain(messages), {"timestamp", "run_id", "conversation_id"})


def agent(model):
    return Agent(model, instructions="Be short.", tools=[scenarios.weather])


def ask(model, text):
    def run(base):
        done = agent(model(base)).run_sync(text)
        return [done.output, told(done.all_messages())]

    return run


def pieces(model, text):
    with agent(model).run_stream_sync(text) as streamed:
        yield from streamed.stream_text(delta=True, debounce_by=None)


def session(model):
    def run(base):
        talker, history, saw = agent(model(base)), [], []
        for number in range(TURNS):
            done = talker.run_sync(scenarios.turn(number), message_history=history)
            history = done.all_messages()
            saw.append([done.output, done.usage])
        return saw

    return run


def scenarios_of(name, model):
    return {
        f"{name}_plain": ask(model, SAID["plain"]),
        f"{name}_stream": lambda base: list(pieces(model(base), SAID["stream"])),
        f"{name}_tools": ask(model, SAID["tool"]),
        f"{name}_session": session(model),
        f"{name}_abort": lambda base: scenarios.until_left(pieces(model(base), SAID["abort"])),
        f"{name}_limited": ask(model, SAID["limited"]),
        f"{name}_failing": ask(model, SAID["failing"]),
        f"{name}_cut": lambda base: scenarios.until_cut(pieces(model(base), SAID["cut"])),
    }


scenarios.run(
    {
        **scenarios_of("responses", responses),
        **scenarios_of("chat", chat),
        **scenarios_of("anthropic", anthropic),
        **scenarios_of("google", google),
    }
)
