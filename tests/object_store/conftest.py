"""One server for all tests here; each test has a bucket of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.object_store.store import KEYS, Lake, Server, server, use


@pytest.fixture(scope="session")
def s3() -> Iterator[Server]:
    if find_spec("moto") is None or find_spec("obstore") is None:
        pytest.fail("moto and obstore are not installed; run `make setup`")
    with server() as found:
        yield found


@pytest.fixture
def lake(s3: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Lake]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    # Whoever runs the tests may have a profile; none of them may use it.
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    s3.faults()
    yield use(s3, s3.make_bucket(f"lake-{uuid.uuid4().hex[:8]}"))
    s3.faults()
