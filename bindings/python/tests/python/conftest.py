"""Databases for tests: each test with `address` runs on a file and on PostgreSQL."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import contexture
import pytest

# Started by `cargo xtask test`.
SERVER = os.environ.get("CONTEXTURE_TEST_POSTGRES")
# Full doses: `cargo xtask soak`.
SOAK = os.environ.get("CONTEXTURE_SOAK") == "1"

_numbers = itertools.count()


def _create_database() -> str:
    assert SERVER, "no PostgreSQL: run `cargo xtask test -p contexture-python`, which starts one"
    name = f"python_{os.getpid()}_{next(_numbers)}"
    psql = shutil.which("psql") or sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))[-1]
    make = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
    subprocess.run([psql, SERVER, "-q", "-c", make], check=True)
    address = SERVER.rsplit("/", 1)[0] + "/" + name
    contexture.Engine(address).migrate()
    return address


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own, on disk."""
    return str(tmp_path / "a.db") if request.param == "sqlite" else _create_database()


@pytest.fixture
def engine(address: str) -> Iterator[contexture.Engine]:
    with contexture.Engine(address) as engine:
        yield engine


@pytest.fixture
def memory() -> contexture.Engine:
    return contexture.Engine("memory:")


@pytest.fixture
def soak() -> bool:
    return SOAK


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The address of a SQLite file."""
    return str(tmp_path / "a.db")
