"""`method`: makes a client's method of an operation, so that each is defined once and served by both faces."""

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

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
    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY), *_parameters(make)]
    call.__dict__["__signature__"] = Signature(parameters)
    return call


def _parameters(make: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters of `make`, with the options of a list one by one."""
    for parameter in signature(make).parameters.values():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            yield parameter
        else:
            for name, kind in get_type_hints(get_args(parameter.annotation)[0]).items():
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=kind)
