import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Histories come in blocks, so that they spread over the cores and a failing seed is named."""
    if "seeds" in metafunc.fixturenames:
        many = metafunc.config.getoption("--histories")
        blocks = [range(low, min(low + 50, many)) for low in range(0, many, 50)]
        metafunc.parametrize("seeds", blocks, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
