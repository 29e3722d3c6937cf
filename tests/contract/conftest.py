"""Labs in the test's own process, as the lab's own tests have them."""

from lab_support.fixtures import core, hook, other, shared

__all__ = ["core", "hook", "other", "shared"]
