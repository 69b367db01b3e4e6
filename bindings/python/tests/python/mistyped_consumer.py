"""A program that type checkers must refuse, at each line that says so and nowhere else."""

from __future__ import annotations

from contexture import AsyncEngine, Engine

engine = Engine(7)  # wrong: no address
chat = engine.open("c")
count: int = chat.append("hello")  # wrong: a Saved
chat.rewind(3)  # wrong: an id is a text
chat.compile(modell="gpt-4o")  # wrong: misspelt
text: str = chat.append("hello").head  # wrong: None on an empty branch
chat.notes.put("city", 7)  # wrong: a note is a text


async def use(other: AsyncEngine) -> None:
    saved = other.open("c").append("hello")  # wrong: not awaited
    print(saved)
