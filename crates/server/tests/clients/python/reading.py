"""Histories with a long output, asked for a line of it: `openai`, `anthropic` and `google-genai`, whole and streamed.

What is seen of each: the texts of two turns, the calls, the tokens that were written.
"""

import anthropic
import openai
from google import genai
from google.genai import types

import scenarios
from scenarios import SAID

READS, LINE, LINES = SAID["reads"], SAID["line"], SAID["lines"]
LONG = "\n".join(LINE.format(number=number) for number in range(LINES))
SCHEMA = {"type": "object", "properties": {}}


def user(content):
    return {"role": "user", "content": content}


def chat(stream):
    def run(base):
        api = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client")
        tools = [{"type": "function", "function": {"name": "ls", "parameters": SCHEMA}}]
        call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        said = [
            user("List it."),
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": LONG},
            {"role": "assistant", "content": "There it is."},
        ]
        saw = []
        for text in [READS, "Thanks."]:
            said.append(user(text))
            asked = {"model": "gpt-4.1", "messages": said, "tools": tools}
            if stream:
                with api.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                    answer = [event for event in events] and events.get_final_completion()
            else:
                answer = api.chat.completions.create(**asked)
            message = answer.choices[0].message
            said.append({"role": "assistant", "content": message.content})
            saw.append([message.content, len(message.tool_calls or []), answer.usage.completion_tokens])
        return saw

    return run


def responses(stream):
    def run(base):
        api = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client")
        tools = [{"type": "function", "name": "ls", "parameters": SCHEMA, "strict": False}]
        said = [
            user("List it."),
            {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": LONG},
            {"role": "assistant", "content": "There it is."},
        ]
        saw = []
        for text in [READS, "Thanks."]:
            said.append(user(text))
            asked = {"model": "gpt-4.1", "input": said, "tools": tools}
            if stream:
                with api.responses.stream(**asked, store=False) as events:
                    answer = [event for event in events] and events.get_final_response()
            else:
                answer = api.responses.create(**asked)
            said += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            saw.append([answer.output_text, len(calls), answer.usage.output_tokens])
        return saw

    return run


def messages(stream):
    def run(base):
        api = anthropic.Anthropic(base_url=base, api_key="sk-client")
        tools = [{"name": "ls", "input_schema": SCHEMA}]
        said = [
            user("List it."),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}]},
            user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}]),
            {"role": "assistant", "content": "There it is."},
        ]
        saw = []
        for text in [READS, "Thanks."]:
            said.append(user(text))
            asked = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": said, "tools": tools}
            if stream:
                with api.messages.stream(**asked) as events:
                    answer = [event for event in events] and events.get_final_message()
            else:
                answer = api.messages.create(**asked)
            said.append({"role": "assistant", "content": answer.content})
            texts = [block.text for block in answer.content if block.type == "text"]
            calls = [block for block in answer.content if block.type == "tool_use"]
            saw.append(["".join(texts), len(calls), answer.usage.output_tokens])
        return saw

    return run


def contents(stream):
    def run(base):
        api = genai.Client(api_key="client", http_options=types.HttpOptions(base_url=base))
        tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name="ls")])]
        off = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(tools=tools, automatic_function_calling=off)
        call = types.Part.from_function_call(name="ls", args={})
        output = types.Part.from_function_response(name="ls", response={"output": LONG})
        said = [
            types.UserContent("List it."),
            types.ModelContent(call),
            types.UserContent(output),
            types.ModelContent("There it is."),
        ]
        saw = []
        for text in [READS, "Thanks."]:
            said.append(types.UserContent(text))
            asked = {"model": "gemini-2.5-flash", "contents": said, "config": config}
            if stream:
                chunks = list(api.models.generate_content_stream(**asked))
            else:
                chunks = [api.models.generate_content(**asked)]
            parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
            said.append(types.ModelContent(parts))
            texts = [part.text for part in parts if part.text]
            calls = [part for part in parts if part.function_call]
            usage = chunks[-1].usage_metadata
            saw.append(["".join(texts), len(calls), usage.candidates_token_count])
        return saw

    return run


CLIENTS = {"chat": chat, "responses": responses, "messages": messages, "contents": contents}
scenarios.run(
    {
        f"{name}-{mode}": client(mode == "streamed")
        for name, client in CLIENTS.items()
        for mode in ["whole", "streamed"]
    }
)
