"""One installation per test process: starting one costs more than most tests. Campaign ids keep tests apart."""

import pytest

from support.world import a_world


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("world")) as made:
        yield made
