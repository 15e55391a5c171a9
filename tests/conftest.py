"""`--shuffle SEED` shuffles the tests, which reveals those that depend on others.

Files are shuffled, and the tests in each file: mixing the tests of all files would make every
fixture of a file again and again.
"""

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle")) is not None:
        chance = random.Random(seed)
        place = {path: chance.random() for path in dict.fromkeys(item.path for item in items)}
        chance.shuffle(items)
        items.sort(key=lambda item: place[item.path])
