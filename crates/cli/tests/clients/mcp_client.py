"""The official client in Python against `contexture mcp`: what it saw, as JSON."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str, database: str) -> None:
    server = StdioServerParameters(command=command, args=["mcp", "--db", database])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        first = await session.list_tools()
        again = await session.list_tools()
        names = [tool.name for tool in first.tools]
        found = await session.call_tool("search_conversations", {"query": "gloves"})
        # The client checks structured content against the tool's output schema by itself.
        content = json.loads(found.content[0].text)
        wrong = await session.call_tool("read_conversation", {"conversation": "nobodys"})
        wrong = wrong.model_dump(by_alias=True)
        listed = await session.list_resources()
        resource = await session.read_resource(listed.resources[0].uri)
        said = {
            "tools": len(names),
            "order": "same" if names == [tool.name for tool in again.tools] else "other",
            "conversation": content["hits"][0]["conversation"],
            "refused": wrong["isError"],
            "resource": resource.contents[0].text,
        }
        print(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))
