"""What a program does with conversations: append, read, go back, search, keep values, move them."""

from __future__ import annotations

import dataclasses
import pickle
from collections import UserDict
from typing import Any

import contexture
import pytest
from contexture import Conflict, Engine, InvalidInput, NotFound
from scripted import answer


def test_append_takes_every_shape(engine: Engine) -> None:
    chat = engine.open("shapes")

    @dataclasses.dataclass
    class Said:
        role: str
        content: str

    shapes: list[Any] = [
        "a text",
        {"role": "user", "content": "chat completions"},
        [{"role": "user", "content": [{"type": "text", "text": "anthropic"}]}],
        {"role": "user", "parts": [{"text": "gemini"}]},
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "ai sdk"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "an item"}]},
        Said("user", "a dataclass"),
        UserDict(role="user", content="a mapping"),
        answer("an SDK's object").choices[0].message,
        ({"role": "user", "content": text} for text in ("a generator",)),
        b'[{"role": "user", "content": "bytes"}]',
    ]
    for shape in shapes:
        saved = chat.append(shape)
        assert len(saved.items) == 1 and saved.head == saved.items[0], shape
    texts = [part["text"] for message in chat.messages() for part in message["parts"]]
    assert texts == [
        "a text", "chat completions", "anthropic", "gemini", "ai sdk", "an item",
        "a dataclass", "a mapping", "an SDK's object", "a generator", "bytes",
    ]  # fmt: skip


def test_append_once_by_key_and_head(engine: Engine) -> None:
    chat = engine.open("once")
    first = chat.append("hello", key="turn-1", expected_head="")
    assert chat.append("hello", key="turn-1").items == first.items
    with pytest.raises(Conflict) as raised:
        chat.append("late", expected_head="")
    assert raised.value.code == "head_moved"
    assert raised.value.members == {"expected": None, "actual": first.head}
    assert raised.value.hint is not None
    assert chat.info().items == 1
    assert first.head is not None
    chat.append("next", expected_head=first.head)


def test_branches_and_checkpoints(engine: Engine) -> None:
    chat = engine.open("trip", title="A trip", resource="ada", metadata={"channel": "mail"})
    one = chat.append({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "one"}]})
    assert chat.checkpoint("start").node == one.head
    chat.append("two")
    with pytest.raises(Conflict):
        chat.checkpoint("start")
    moved = chat.checkpoint("start", move=True)
    assert moved.moved_from == one.head
    other = chat.create_branch("by-train", at=one.head)
    other.append("another two")
    assert len(other.messages()) == len(chat.messages()) == 2
    assert [branch.name for branch in chat.branches() if branch.active] == ["main"]

    back = chat.rewind("m1")
    assert back.active and back.head == one.head
    assert len(chat.messages()) == 1
    assert chat.restore("start").messages == 2
    assert chat.rewind(beginning=True).head is None
    with pytest.raises(InvalidInput):
        chat.rewind("m1", beginning=True)
    assert chat.switch_branch("main").name == "main"
    chat.delete_branch("by-train")
    chat.delete_checkpoint("start")
    assert chat.checkpoints() == []
    log = chat.log()
    assert log.entries[0].text == "another two" or log.entries[0].text == "two"
    assert "one" in str(log)


def test_metadata_lists_and_deletion(engine: Engine) -> None:
    for number in range(5):
        engine.open(f"c{number}", resource="ada" if number % 2 else None).append(f"text {number}")
    assert sorted(one.id for one in engine.conversations(page=2)) == [f"c{n}" for n in range(5)]
    assert sorted(one.id for one in engine.conversations(resource="ada")) == ["c1", "c3"]
    chat = engine.open("c0")
    info = chat.update(title="New", metadata={"a": 1, "b": None})
    assert (info.title, info.metadata) == ("New", {"a": 1})
    with pytest.raises(Conflict) as raised:
        chat.update(title="Newer", version=info.version + 7)
    assert raised.value.code == "version_conflict"
    assert chat.update(title="").title is None
    engine.delete("c0")
    with pytest.raises(NotFound):
        chat.messages()
    with pytest.raises(NotFound):
        engine.open("c0", existing=True)


def test_owners_do_not_see_each_other(engine: Engine) -> None:
    engine.for_owner("acme/ada").open("secret").append("the password is swordfish")
    other = engine.for_owner("acme/bob")
    with pytest.raises(NotFound):
        other.open("secret", existing=True)
    assert list(other.conversations()) == []
    assert len(other.search("swordfish")) == 0


def test_pages_have_everything_once(engine: Engine) -> None:
    chat = engine.open("long")
    for start in range(0, 60, 20):
        chat.append([{"role": "user", "content": f"number {n}"} for n in range(start, start + 20)])
    texts = [one.item["content"][0]["text"] for one in chat.items(page=7)]
    assert texts == [f"number {n}" for n in range(60)]
    newest = [one.item["content"][0]["text"] for one in chat.items(last=17, page=5)]
    assert newest == [f"number {n}" for n in range(43, 60)]
    page = chat.messages(limit=25)
    older = chat.messages(limit=50, after=page.next)
    assert len(page) + len(older) == 60 and older.next is None
    with pytest.raises(InvalidInput):
        chat.messages(after="not a cursor")


def test_search_finds_words_with_their_surroundings(engine: Engine) -> None:
    chat = engine.open("support", resource="ada")
    for text in ("Hello", "My order W8342 has not arrived", "Thank you"):
        chat.append(text)
    engine.open("other").append("Another order")
    page = engine.search("order W8342", around=1)
    assert page.hits[0].conversation == "support"
    assert "W8342" in str(page.hits[0].snippet)
    assert page.hits[0].nearby is not None
    assert page.hits[0].nearby.before[0].text == "Hello"
    assert [hit.conversation for hit in engine.search("order", resource="ada")] == ["support"]
    assert len(chat.search("arrived")) == 1
    assert len(chat.on("main").search("Another")) == 0
    first = engine.search("order", limit=1)
    assert len(engine.search("order", limit=1, after=first.next)) == 1


def test_values_are_written_by_compare_and_set(engine: Engine) -> None:
    values = engine.open("values").values
    assert values.get("a") is None
    assert values.put("a", b"\x00\xff", version=0) == 1
    with pytest.raises(Conflict):
        values.put("a", b"", version=0)
    assert values.put("a", b"two", version=1) == 2
    for number in range(5):
        values.put(f"list/{number}", bytes([number]))
    assert [value.data[0] for value in values.items("list/", page=2)] == [0, 1, 2, 3, 4]
    values.delete("a")
    assert values.get("a") is None
    blob = values.put_blob(b"x" * 100_000)
    assert values.put_blob(b"x" * 100_000) == blob
    assert values.read_blob(blob) == b"x" * 100_000
    with pytest.raises(NotFound):
        engine.open("elsewhere").values.read_blob(blob)


def test_export_comes_back_equal(engine: Engine, memory: Engine) -> None:
    chat = engine.open("moved")
    chat.append(["one", "two"] and [{"role": "user", "content": "one"}])
    chat.create_branch("side").append("two")
    lines = chat.export_lines()
    assert memory.import_lines(lines) == ["moved"]
    assert memory.open("moved", existing=True).export_lines() == lines
    with pytest.raises(Conflict):
        memory.import_lines(lines)
    request = chat.export("openai-chat")
    imported = memory.import_session(request, conversation="again")
    assert imported.imported[0].items == 1
    assert memory.import_session(request, conversation="again").imported[0].new == 0


def test_mistakes_say_what_is_expected(memory: Engine) -> None:
    chat = memory.open("c")
    cases: list[tuple[Any, str, str]] = [
        (lambda: Engine("redis://ada:secret@host"), "unsupported_database", "memory:"),
        (lambda: Engine("memory:", policies={"p": {"windw": 3}}), "bad_body", "windw"),
        (lambda: Engine("memory:", policies={"p": {"redact": True}}), "bad_body", "policies.p.redact"),
        (lambda: Engine("memory:", policies={"p": {"skills": ["/x"]}}), "bad_body", "policies.p.skills"),
        (lambda: Engine("memory:", policies={"p": {"compact": "summary"}}), "bad_body", "policies.p.compact"),
        (lambda: memory.open("a b"), "bad_name", "a b"),
        (lambda: chat.append({"rolle": "user"}), "bad_message", "messages[0]"),
        (lambda: chat.append([]), "bad_body", "nothing to append"),
        (lambda: chat.append(7), "bad_message", "int"),
        (lambda: chat.append({"role": "user", "content": "\ud800"}), "bad_message", "surrogate"),
        (lambda: chat.append({"role": "user", "content": float("nan")}), "bad_message", "float"),
        (lambda: chat.append(b"[{]"), "bad_body", "key"),
        (lambda: chat.compile(model="gpt-4o", policy="nobody"), "bad_body", "policy"),
        (lambda: chat.compile(model="no-such-model"), "unknown_model", "no-such-model"),
        (lambda: memory.search("x", kind="poem"), "bad_body", "poem"),
        (lambda: memory.usage("moon"), "bad_body", "moon"),
        (lambda: memory.migrate(), "bad_body", "PostgreSQL"),
    ]
    for call, code, words in cases:
        with pytest.raises(contexture.Error) as raised:
            call()
        assert raised.value.code == code, raised.value
        assert words in str(raised.value), raised.value
        assert "secret" not in str(raised.value)
    assert "secret" not in repr(Engine("postgres://ada:secret@host/db"))


def test_results_show_themselves_and_travel(memory: Engine) -> None:
    chat = memory.open("c", title="A title")
    saved = chat.append("hello")
    assert repr(saved).startswith("Saved(branch='main', head='")
    assert pickle.loads(pickle.dumps(saved)) == saved
    assert repr(chat) == "Conversation('c', engine=Engine('memory:', owner='local'))"
    assert "title" in dir(chat.info())
    with pytest.raises(AttributeError, match="no member"):
        saved.no_such_member  # noqa: B018
    with pytest.raises(AttributeError, match="not changed"):
        saved.branch = "other"
    error = pickle.loads(pickle.dumps(NotFound("gone", code="not_found", members={"name": "c"})))
    assert (error.code, error.members, error.detail) == ("not_found", {"name": "c"}, "gone")
