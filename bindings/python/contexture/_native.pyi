"""The native half: operations by name, JSON in and out. Use `contexture.Engine` instead."""

from collections.abc import Callable

__version__: str

def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def end_delivery() -> None: ...

class Engine:
    def __new__(cls, address: str, policies: bytes, skills: list[str]) -> Engine: ...
    def call(
        self,
        operation: str,
        place: tuple[str, str | None, str | None],
        document: bytes,
        attachment: bytes | None,
    ) -> tuple[bool, bytes, list[bytes]]: ...
    def start(
        self,
        operation: str,
        place: tuple[str, str | None, str | None],
        document: bytes,
        attachment: bytes | None,
        callback: Callable[[bool, bytes, list[bytes]], None],
    ) -> Task: ...
    def close(self) -> None: ...

class Task:
    def cancel(self) -> None: ...
