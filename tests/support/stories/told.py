"""Stories as parameters of a test: each is a function that reads as its own description."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.stories.judge import judge
from support.stories.world import Story, World

# How many experiments are measured, paid and archived in the end; None for all.
Tell = Callable[[Story], int | None]


@dataclass(frozen=True)
class Told:
    """A story, and the campaign that it is told of: options of `Story`."""

    tell: Tell
    options: dict[str, Any]


class Stories(dict[str, Told]):
    """The stories of a file, by name."""

    def of(self, **options: Any) -> Callable[[Tell], Tell]:
        """Add a function to the stories."""

        def add(tell: Tell) -> Tell:
            self[tell.__name__] = Told(tell, options)
            return tell

        return add

    def play(self, world: World, name: str) -> None:
        """Tell a story, and judge what became of its campaign."""
        told = self[name]
        with world.story(name.replace("_", "-"), **told.options) as campaign:
            measured = told.tell(campaign)
            assert campaign.all_traps_sprung()
            assert judge(campaign, measured=measured) == []
