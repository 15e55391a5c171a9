"""`--shuffle SEED` shuffles the tests, which reveals those that depend on others."""

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle")) is not None:
        random.Random(seed).shuffle(items)
