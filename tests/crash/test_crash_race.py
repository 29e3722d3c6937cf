"""`make crash`: two runs race for one order and are killed meanwhile, at one Prefect server or at two.

The lab's books are the judge.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.crash.limits import END, SEED
from support.crash.process import KILLED
from support.crash.story import RAILS, ROUTES, End, Schedule, Story, judge

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

ROUNDS_MAX = 20
POINTS = 110  # about as many as there are until the payment
RACES = 3


@pytest.fixture(scope="module")
def twin(flow, tmp_path_factory):
    """A second process; both run at the same moment."""
    with flow.process.twin(tmp_path_factory.mktemp("twin") / "crashes") as process:
        yield process


@pytest.mark.parametrize("number", range(RACES))
@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("servers", [1, 2])
def test_two_runs_of_one_campaign_order_and_pay_once(
    flow, twin, servers, route, rail, number, record_property
):
    import time

    if time.time() > END:
        pytest.skip("the time is up")
    began = time.monotonic()
    draw = random.Random(f"{SEED}/{servers}/{route}/{rail}/{number}")
    kills = [draw.randrange(POINTS), draw.randrange(POINTS) if draw.random() < 0.5 else None]
    archive = ("folder", "s3")[number % 2]
    schedule = Schedule(f"race-{servers}-{SEED}-{route}-{rail}-{number}", route, rail, archive=archive)
    processes = [flow.process, twin] if servers == 1 else [server.process for server in flow.servers]
    stories = race(flow, processes, schedule, kills, servers)
    executions = [e for story in stories for e in story.executions]
    together = Story(schedule, ends=[story.end for story in stories], executions=executions)
    together.known = set().union(*(story.known for story in stories))
    together.questions = [q for story in stories for q in story.questions]
    killed = sum(e.code == KILLED for e in executions)
    wrong = [found for found in judge(flow, together) if not found.startswith("ends as")]
    record_property("crash", (1, 1, killed, len(wrong), together.surplus, time.monotonic() - began))
    assert wrong == [], f"{kills}: {[str(story) for story in stories]}"
    ends = {story.end for story in stories}
    # A token that a killed process has sent cannot be sent again by another: then a person decides, in both runs.
    assert ends == {End.DONE} or (rail == "mpp-spt" and ends == {End.ASKS}), [str(s) for s in stories]


def race(flow, processes, schedule, kills, servers):
    """Execute two runs of one campaign side by side until both have ended or ask in vain."""
    jobs = [flow.start(schedule, at=n if servers > 1 else 0) for n, _ in enumerate(processes)]
    stories = [Story(schedule) for _ in processes]
    going = set(range(len(jobs)))
    kills = list(kills)

    def execute(n):
        kill, kills[n] = kills[n], None
        return flow.execute(jobs[n], kill, processes[n])

    for _ in range(ROUNDS_MAX):
        with ThreadPoolExecutor(len(jobs)) as pool:
            ended = dict(zip(sorted(going), pool.map(execute, sorted(going)), strict=True))
        flow.lab.advance(until="idle")
        for n, execution in ended.items():
            story = stories[n]
            story.executions.append(execution)
            end, error, message = flow.look(jobs[n], execution)
            story.ends.append(end)
            story.messages += [message] if message else []
            if end is End.ASKS:
                story.questions.append(error)
            if end is End.DONE or not goes_on(flow, jobs, n, schedule, story):
                going.discard(n)
        if not going:
            break
    for job, story in zip(jobs, stories, strict=True):
        story.known = flow.known(job)
    return stories


def goes_on(flow, jobs, n, schedule, story):
    """Wake it, start it again, or answer it, as a person who has looked at the invoice."""
    if story.end is not End.ASKS:
        jobs[n] = flow.again(jobs[n], schedule, story.end)
        return True
    orders = [e.id for e in flow.service.experiments.iterate(search=schedule.campaign_id)]
    paid = any(s["experiment_id"] in orders for s in flow.lab.settlements())
    if not paid and schedule.rail == "mpp-spt":
        return False
    return flow.answer(jobs[n], "paid" if paid else "pay_again")
