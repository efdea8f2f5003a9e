import pytest


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests read definitions again; those of the cache choose a folder of their own."""
    monkeypatch.setenv("PARTWISE_CACHE", "off")
