"""`method`: makes a client's method of an operation, so that each is defined once and served by both faces."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
C = TypeVar("C")
X = TypeVar("X")
R = TypeVar("R")


def method(make: Callable[P, X], drive: Callable[[C, X], R]) -> Callable[Concatenate[C, P], R]:
    """A method with the parameters and the documentation of `make`, and the return type of `drive`.

    Args:
        make: builds an operation or a walk from the parameters; pure.
        drive: carries it out on a client.
    """

    @wraps(make)
    def call(client: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return drive(client, make(*args, **kwargs))

    return call
