"""A world and a person with a browser for each of Prefect's two interfaces; without a browser the tests are skipped."""

import re

import pytest

from support.browser.screenshots import CHROMIUM, reason_not_to_click
from support.runs.world import a_world

NO_TASK = re.compile(r"422 POST http://\S+/api/task_runs/filter")


@pytest.fixture(scope="session", autouse=True)
def browser():
    if reason := reason_not_to_click():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(params=["v1", "v2"])
def person(request, world):
    from support.browser.people import INTERFACES, Person

    someone = Person(CHROMIUM, world.stack.ui_url, INTERFACES[request.param])
    someone.name = request.param
    yield someone
    someone.close()
    # Of an artifact that no task has made, V2 requests the task.
    unexpected = [wrong for wrong in someone.wrong if not any(part in wrong for part in someone.expected)]
    assert [wrong for wrong in unexpected if not NO_TASK.fullmatch(wrong)] == []
