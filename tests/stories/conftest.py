"""One installation for each test process: starting one takes longer than most stories."""

import pytest

from support.stories.world import a_world


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """Executions are forks of a warm process, so that they start in milliseconds and die at named points."""
    with a_world(tmp_path_factory.mktemp("stories")) as made:
        yield made
