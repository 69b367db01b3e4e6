"""Notes, pins and standing rules: what a model is shown whatever else is left out."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import contexture
import pytest
from contexture import Conflict, Engine, InvalidInput, NotFound
from scripted import answer

POLICY: dict[str, Any] = {"limit_tokens": 2000, "compact": "manifest", "memory": {"of": "user"}}


def test_notes_are_written_shown_and_deleted(engine: Engine) -> None:
    chat = engine.open("c", resource="ada")
    assert [*chat.notes.items()] == [] and chat.notes.get("city") is None
    assert chat.notes.put("city", "Rome", description="where she lives", importance=80) == "created"
    assert chat.notes.put("city", "Oslo") == "updated"
    assert chat.notes.put("city", "Oslo") == "unchanged"
    note = chat.notes.get("city")
    assert note is not None
    assert (note.value, note.description, note.importance, note.updates) == ("Oslo", "where she lives", 80, 2)
    assert [earlier["value"] for earlier in note.earlier] == ["Rome"]
    # Notes of a resource are those of all of its conversations, and nobody else's.
    assert [one.key for one in engine.open("d", resource="ada").notes.items()] == ["city"]
    assert [*engine.open("e", resource="bob").notes.items()] == []
    chat.append("Where do I live?")
    assert "Oslo" in chat.compile(model="gpt-4o", to="openai-chat", policy=POLICY).payload_json.decode()
    chat.notes.delete("city")
    with pytest.raises(NotFound) as raised:
        chat.notes.delete("city")
    assert raised.value.code == "no_note"
    with pytest.raises(NotFound) as raised:
        engine.open("c").on("no-such").notes.get("city")
    assert raised.value.code == "not_found"


def test_a_conversation_without_a_resource_has_notes_of_its_own(engine: Engine) -> None:
    chat, other = engine.open("c"), engine.open("d")
    chat.notes.put("city", "Rome")
    other.notes.of("owner").put("tone", "formal")
    for one, shown, hidden in [(chat, "Rome", "formal"), (other, "Where", "Rome")]:
        one.append("Where do I live?")
        payload = one.compile(model="gpt-4o", to="openai-chat", policy=POLICY).payload_json.decode()
        assert shown in payload and hidden not in payload
    owner = {**POLICY, "memory": {"of": "owner"}}
    assert "formal" in chat.compile(model="gpt-4o", to="openai-chat", policy=owner).payload_json.decode()


def test_notes_expire_and_have_scopes(engine: Engine) -> None:
    chat = engine.open("c")
    chat.append("Hello")
    path = chat.notes.of("path")
    path.put("draft", "text", expires=1)
    chat.notes.of("owner").put("tone", "formal", expires=timedelta(days=7))
    chat.notes.put("own", "x", expires=timedelta(hours=1))
    assert chat.notes.put("own", expires="never") == "updated"
    assert [(one.key, one.expires) for one in chat.notes.items()] == [("own", None)]
    (tone,) = engine.open("d").notes.of("owner").items()
    assert tone.expires is not None and set(tone.expires) == {"at"}
    (draft,) = path.items()
    assert draft.expires == {"answers": 1}
    # Only those of the path go back with it.
    chat.rewind(beginning=True)
    assert [*path.items()] == [] and len([*chat.notes.items()]) == 1
    chat.switch_branch("main")
    chat.record(chat.compile(model="gpt-4o", to="openai-chat"), answer("Hi."))
    assert path.get("draft") is None


@pytest.mark.parametrize(
    ("key", "more"),
    [("k", {}), ("", {"value": "x"}), ("k", {"value": "x", "importance": 101}), ("k", {"value": "x" * 1_000_000}), ("k", {"value": "x", "expires": "soon"})],
)  # fmt: skip
def test_notes_that_are_not_valid_are_refused(memory: Engine, key: str, more: dict[str, Any]) -> None:
    chat = memory.open("c")
    with pytest.raises((InvalidInput, NotFound)) as raised:
        chat.notes.put(key, **more)
    assert raised.value.code in ("invalid_note", "memory_full", "no_note", "bad_body"), raised.value.code
    with pytest.raises(InvalidInput):
        [*chat.notes.of("nobody").items()]
    assert [*chat.notes.items()] == []


def test_pinned_messages_are_sent_whatever_is_left_out(engine: Engine) -> None:
    chat = engine.open("c")
    saved = chat.append("The code word is marmalade. " + "lorem ipsum " * 30)
    chat.record(chat.compile(model="gpt-4o", to="openai-chat", policy=POLICY), answer("Noted."))
    assert chat.pins() == []
    assert chat.pin(saved.messages[0]) == saved.items and chat.pin(node=saved.items[0]) == saved.items
    for turn in range(20):
        chat.append(f"Question {turn}? " + "lorem ipsum " * 40)
        chat.record(chat.compile(model="gpt-4o", to="openai-chat", policy=POLICY, window=3000, reserve=500), answer(f"Answer {turn}."))
    assert chat.compactions(), "nothing was left out"
    chat.append("What is the code word?")
    sent = chat.compile(model="gpt-4o", to="openai-chat", policy=POLICY, window=3000, reserve=500).payload["messages"]
    assert any(message["content"].startswith("The code word is marmalade. lorem") for message in sent)
    assert any(entry.pinned for entry in chat.log().entries)
    assert chat.unpin(saved.messages[0]) == [] and chat.unpin(saved.messages[0]) == []
    for unknown in ({"message": "no-such"}, {"node": "0" * 32}):
        with pytest.raises(NotFound):
            chat.pin(**unknown)
    for wrong in ({}, {"message": "m", "node": "0" * 32}):
        with pytest.raises(InvalidInput):
            chat.pin(**wrong)


def test_rules_are_listed_dropped_and_restored(engine: Engine) -> None:
    chat = engine.open("c")
    chat.append("Always answer in German. Where is my parcel?")
    (rule,) = chat.rules()
    assert rule.text == "Always answer in German." and rule.express and not rule.dropped and rule.turn == 1
    assert chat.drop_rule(rule) and not chat.drop_rule(rule.id)
    assert chat.rules()[0].dropped
    assert chat.restore_rule(rule.id) and not chat.rules()[0].dropped
    with pytest.raises(NotFound):
        chat.drop_rule("no-such")


def test_branches_move_only_from_the_head_that_is_expected(engine: Engine) -> None:
    chat = engine.open("c")
    first, second = chat.append("one"), chat.append("two")
    assert second.head is not None
    with pytest.raises(Conflict) as raised:
        chat.move_branch(None, expected_head=first.head or "")
    assert raised.value.code == "head_moved" and raised.value.members["actual"] == second.head
    assert chat.move_branch(first.head, expected_head=second.head).head == first.head
    assert len(chat.messages()) == 1 and [branch.name for branch in chat.branches()] == ["main"]
    chat.append("three")
    assert [item.item["content"][0]["text"] for item in chat.items()] == ["one", "three"]
    # What was left stays, and a branch leads there again.
    assert len(chat.create_branch("kept", at=second.head).messages()) == 2


def test_requests_are_matched_to_what_is_stored(engine: Engine) -> None:
    chat = engine.open("c")
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rome?"}]
    first = chat.ingest({"model": "gpt-4o", "messages": history}, format="openai-chat", resource="ada")
    # The system prompt is no item: it is kept with the request, and sent again.
    assert (first.branch, first.opened, len(first.items)) == ("main", False, 1)
    assert chat.compile(model="gpt-4o", to="openai-chat").payload["messages"] == history
    assert chat.ingest({"model": "gpt-4o", "messages": history}, format="openai-chat").items == []
    chat.record(None, answer("Sunny."))
    history += [{"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Oslo?"}]
    second = chat.ingest({"model": "gpt-4o", "messages": history}, format="openai-chat")
    assert (second.branch, len(second.items)) == ("main", 1)
    history[1] = {"role": "user", "content": "Lima?"}
    third = chat.ingest({"model": "gpt-4o", "messages": history}, format="openai-chat")
    assert third.opened and third.branch != "main" and len(chat.on("main").messages()) == 3
    for wrong, member in (({"messages": 7}, "messages"), ({"id": "x", "choices": []}, "request")):
        with pytest.raises(InvalidInput, match=member):
            chat.ingest(wrong, format="openai-chat")


def test_asyncio_has_the_same(file: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(file) as engine:
            chat = await engine.open("c")
            await asyncio.gather(*(chat.notes.put(f"key {n}", "x") for n in range(20)))
            assert [one.key async for one in chat.notes.items()] == sorted(f"key {n}" for n in range(20))
            saved = await chat.append("Never call before noon.")
            assert await chat.pin(saved.messages[0]) == await chat.pins()
            assert [rule.text for rule in await chat.rules()] == ["Never call before noon."]

    asyncio.run(run())
