"""The costs of langgraph's SQLite checkpoints, in the lines of our own benchmark.

usage: python langgraph.py <directory for databases> <size>…
"""

import json
import os
import statistics
import sys
import time

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


def text(n):
    return f"{n} {'words of a message ' * 6}"


def median(runs, work):
    times = []
    for run in range(runs):
        begun = time.perf_counter_ns()
        work(run)
        times.append(time.perf_counter_ns() - begun)
    return statistics.median(times)


def agent(saver):
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [AIMessage("yes")]})
    graph.add_edge(START, "model")
    return graph.compile(checkpointer=saver)


def main(directory, sizes):
    for size in sizes:
        path = os.path.join(directory, f"langgraph-{size}.db")
        with SqliteSaver.from_conn_string(path) as saver:
            app = agent(saver)
            config = {"configurable": {"thread_id": "t"}}
            app.update_state(config, {"messages": [HumanMessage(text(n)) for n in range(size)]})
            few = 3 if size > 50_000 else 9
            out = {
                "append 1 of 200 B": median(
                    few, lambda n: app.invoke({"messages": [HumanMessage(text(1_000_000 + n))]}, config)
                ),
                "read whole path": median(few, lambda n: app.get_state(config)),
            }
            begun = time.perf_counter_ns()
            saver.delete_thread("t")
            out["delete the conversation"] = time.perf_counter_ns() - begun
        print(json.dumps({"size": size, "ns": out}), flush=True)
    path = os.path.join(directory, "langgraph-turns.db")
    with SqliteSaver.from_conn_string(path) as saver:
        app = agent(saver)
        config = {"configurable": {"thread_id": "t"}}
        for n in range(500):
            app.invoke({"messages": [HumanMessage(f"{n} {'words of a turn ' * 20}")]}, config)
    print(json.dumps({"turns": 500, "bytes": os.path.getsize(path)}), flush=True)


main(sys.argv[1], [int(size) for size in sys.argv[2:]])
