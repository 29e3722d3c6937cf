"""What befalls a campaign in two weeks, played with real processes and real kills.

Each story is a function that reads as its own description. The lab's journal and the archive judge every one: each design
is ordered once, each invoice paid once, every result archived, and the ledgers agree (`support/stories/judge.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support.stories.judge import judge
from support.stories.world import Story

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CREATE = "lab POST /api/v1/experiments$"
PAY = r"lab POST /api/v1/invoices/\*/pay"


@dataclass(frozen=True)
class Told:
    """A story, and the campaign that it is told of."""

    tell: Callable[[Story], int | None]  # how many experiments are measured in the end; None for all
    options: dict[str, Any]


STORIES: dict[str, Told] = {}


def story(**options: Any) -> Callable[[Callable[[Story], int | None]], Callable[[Story], int | None]]:
    """Add a function to the stories; the options are those of `Story`."""

    def add(tell: Callable[[Story], int | None]) -> Callable[[Story], int | None]:
        STORIES[tell.__name__] = Told(tell, options)
        return tell

    return add


@story()
def nothing_befalls_it(campaign: Story) -> None:
    """Two experiments, woken by webhooks alone."""
    campaign.start_and_wait()
    campaign.finish()


@story()
def killed_while_ordering(campaign: Story) -> None:
    """The order has reached the service, and its answer is lost with the process; its successor dies as well."""
    campaign.kill_at(f"after {CREATE}")
    campaign.kill_at(f"before {CREATE}")
    campaign.in_state(campaign.start(), "Crashed")
    campaign.sweep()
    campaign.sweep()
    campaign.finish()


@pytest.mark.parametrize("name", STORIES)
def test_story(world, name):
    told = STORIES[name]
    with world.story(name.replace("_", "-"), **told.options) as campaign:
        measured = told.tell(campaign)
        assert campaign.all_traps_sprung()
        assert judge(campaign, measured=measured) == []
