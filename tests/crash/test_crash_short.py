"""A short look at crashes for every test run: ordering and paying alone. `make crash` looks long, and at campaigns."""

from collections import Counter
from itertools import islice

import pytest

from prefect_assay.service.models.experiment import CreateRequest
from support.crash.story import RAILS, ROUTES, Schedule, judge, play, points_between, random_schedule

STEP = 12  # of the points, one in so many; both rails and routes begin at another one


@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize("route", ROUTES)
def test_killed_between_the_steps_of_order_and_pay(core, clean, play_all, route, rail):
    points = points_between(clean(route, rail))
    assert len(points) >= 20
    first = 2 * ROUTES.index(route) + 4 * RAILS.index(rail)
    schedules = [
        Schedule(f"at-{route}-{rail}-{execution}-{number}", route, rail, kills={execution: number})
        for execution, number in islice(_numbered(points), first, None, STEP)
    ]
    for story in play_all(core, schedules):
        assert len(story.killed_at()) == 1


def _numbered(points):
    """By number: a ledger's points carry the campaign's name, which differs from story to story."""
    reached = Counter()
    for execution, _ in points:
        yield execution, reached[execution]
        reached[execution] += 1


def test_random_kills_and_faults(core, play_all):
    play_all(core, [random_schedule(1, number, "short", points=40) for number in range(8)])


def test_the_judge_sees_a_second_settlement_and_a_second_order(core):
    """What would be wrong is found: a payer without a guard, an orderer without a key."""
    story = play(core, Schedule("judged", "self-service", RAILS[0]))
    assert judge(core, story) == []
    core.service.experiments.create(CreateRequest.model_validate(core.start(story.schedule)["request"]))
    assert any("neither the order nor a recorded surplus" in wrong for wrong in judge(core, story))
    wrong = play(core, Schedule("judged-too", "self-service", RAILS[0]))
    wrong.executions[0] = wrong.executions[0].__class__(0, (), ("credential a", "credential b"))
    assert judge(core, wrong) == ["2 different credentials were sent for one invoice"]
