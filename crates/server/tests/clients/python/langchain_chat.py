"""The `langchain-openai` and `langchain-anthropic` packages, alone and under an agent of `langgraph`."""

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import scenarios
from scenarios import ABORT_AFTER, MODEL, SAID, TURNS

weather = tool(scenarios.weather)


def responses(base):
    return ChatOpenAI(model=MODEL, base_url=f"{base}/v1", api_key="sk-client", use_responses_api=True)


def chat(base):
    return ChatOpenAI(model=MODEL, base_url=f"{base}/v1", api_key="sk-client", stream_usage=True)


def anthropic(base):
    return ChatAnthropic(model=MODEL, base_url=base, api_key="sk-client")


def told(message):
    """A message without the id that the package gives it."""
    seen = message.model_dump(mode="json")
    if str(seen.get("id")).startswith(("lc_", "run-")):
        del seen["id"]
    return seen


def ask(model, text):
    return lambda base: told(model(base).invoke(text))


def stream(model):
    return lambda base: [told(chunk) for chunk in model(base).stream(SAID["stream"])]


def cut(model):
    return lambda base: scenarios.until_cut(told(chunk) for chunk in model(base).stream(SAID["cut"]))


def abort(model):
    def run(base):
        chunks = model(base).stream(SAID["abort"])
        saw = [told(next(chunks)) for _ in range(ABORT_AFTER)]
        chunks.close()
        return saw

    return run


def tools(model):
    """An agent: the model, its tools, and the way back."""

    def run(base):
        bound = model(base).bind_tools([weather])
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [bound.invoke(state["messages"])]})
        graph.add_node("tools", ToolNode([weather]))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        state = graph.compile().invoke({"messages": [HumanMessage(SAID["tool"])]})
        # The first was given an id by the graph, and so was the output.
        return [told(message) for message in state["messages"] if isinstance(message, AIMessage)]

    return run


def session(model):
    def run(base):
        api, messages, saw = model(base), [], []
        for number in range(TURNS):
            messages.append(HumanMessage(scenarios.turn(number)))
            answer = api.invoke(messages)
            messages.append(answer)
            saw.append([answer.text, answer.usage_metadata])
        return saw

    return run


def scenarios_of(name, model):
    return {
        f"{name}_plain": ask(model, SAID["plain"]),
        f"{name}_stream": stream(model),
        f"{name}_tools": tools(model),
        f"{name}_session": session(model),
        f"{name}_abort": abort(model),
        f"{name}_limited_once": ask(model, SAID["limited_once"]),
        f"{name}_failing": ask(model, SAID["failing"]),
        f"{name}_lost_once": ask(model, SAID["lost_once"]),
        f"{name}_cut": cut(model),
    }


scenarios.run(
    {
        **scenarios_of("responses", responses),
        **scenarios_of("chat", chat),
        **scenarios_of("anthropic", anthropic),
    }
)
