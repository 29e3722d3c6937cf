"""`method`: makes a client's method of an operation, so that each is defined once and served by both faces."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
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

    # `wraps` says that the signature is the operation's; a method has the client in front. Without this, help()
    # and autospecced mocks would take the first parameter for the client.
    own = Signature(
        [Parameter("self", Parameter.POSITIONAL_ONLY), *signature(make).parameters.values()],
        return_annotation=Signature.empty,
    )
    call.__dict__["__signature__"] = own
    return call
