"""The methods of the client, each declared once from an operation of the core and served by both faces."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import SecretStr

from prefect_assay.service.client import operations
from prefect_assay.service.client.http.dates import sent_at
from prefect_assay.service.client.http.deadline import limit_connections
from prefect_assay.service.client.http.exchange import (
    DOWNLOAD_BYTES_MAX,
    Attempt,
    Download,
    RetryPolicy,
)
from prefect_assay.service.client.http.pagination import Walk
from prefect_assay.service.client.http.request import Answer, Operation
from prefect_assay.service.client.http.wire import Wire
from prefect_assay.service.models.service import SIMULATED_HEADER, SIMULATED_VALUE, WireWords

if TYPE_CHECKING:
    from prefect_assay.service.client.asynchronous import AsyncAssayClient
    from prefect_assay.service.client.sync import AssayClient

P = ParamSpec("P")
T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)
Transport = TypeVar("Transport")
Sleep = TypeVar("Sleep", bound=Callable[[float], Any])


class Method(Protocol[P, S_co, A_co]):
    """A method with the parameters P; its result is S on the synchronous face, A on the asynchronous one."""

    @overload
    def __get__(self, client: "AssayClient", owner: type | None = None, /) -> Callable[P, S_co]: ...
    @overload
    def __get__(self, client: "AsyncAssayClient", owner: type | None = None, /) -> Callable[P, A_co]: ...
    @overload
    def __get__(
        self, client: None, owner: "type[AssayClient]", /
    ) -> Callable[Concatenate["AssayClient", P], S_co]: ...
    @overload
    def __get__(
        self, client: None, owner: "type[AsyncAssayClient]", /
    ) -> Callable[Concatenate["AsyncAssayClient", P], A_co]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """What pyright compares with the member of a protocol, where it does not apply `__get__`."""


def value(make: Callable[P, Operation[T]]) -> Method[P, T, Coroutine[Any, Any, T]]:
    """The value of one operation."""
    return _method(make, "run")


def rows(make: Callable[P, Walk[Any, T]]) -> Method[P, Iterator[T], AsyncIterator[T]]:
    """The rows of a walk, fetched as they are consumed."""
    return _method(make, "walk")


def every(make: Callable[P, Walk[Any, T]]) -> Method[P, tuple[T, ...], Coroutine[Any, Any, tuple[T, ...]]]:
    """All rows of a walk."""
    return _method(make, "_all")


def first(make: Callable[P, Walk[Any, T]]) -> Method[P, T | None, Coroutine[Any, Any, T | None]]:
    """The first row of a walk, or None."""
    return _method(make, "_first")


def mapping(
    make: Callable[P, Walk[Any, tuple[str, T]]],
) -> Method[P, dict[str, T], Coroutine[Any, Any, dict[str, T]]]:
    """All rows of a walk, by their keys."""
    return _method(make, "_mapping")


def stream(make: Callable[P, Download]) -> Method[P, Iterator[bytes], AsyncIterator[bytes]]:
    """A file, piece by piece."""
    return _method(make, "_stream")


def pdf(make: Callable[P, operations.results.Pdf]) -> Method[P, bytes, Coroutine[Any, Any, bytes]]:
    """A whole PDF."""
    return _method(make, "_pdf")


def _method(make: Callable[P, Any], drive: str) -> Method[P, Any, Any]:
    """A function is a descriptor already; the types of its `__get__` are those of `Method`."""

    @wraps(make)
    def call(client: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(client, drive)(make(*args, **kwargs))

    # `wraps` gives the operation's signature, but a method has the client in front. Without this, help() and
    # autospecced mocks would take the first parameter for the client.
    call.__dict__["__signature__"] = Signature(
        [Parameter("self", Parameter.POSITIONAL_ONLY), *_parameters(make)]
    )
    return cast("Method[P, Any, Any]", call)


def _parameters(make: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters of `make`, with the options of a list one by one."""
    for parameter in signature(make).parameters.values():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            yield parameter
        else:
            for name, kind in get_type_hints(get_args(parameter.annotation)[0]).items():
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=kind)


class Methods(Generic[Transport, Sleep]):
    """The operations of the service as methods, and what both faces are made with."""

    whoami = value(operations.tokens.whoami)
    tokens = value(operations.tokens.tokens)
    iter_tokens = rows(operations.tokens.iter_tokens)
    attenuate_token = value(operations.tokens.attenuate_token)
    revoke_token = value(operations.tokens.revoke_token)
    mint_token = value(operations.tokens.mint_token)

    health = value(operations.service.health)
    health_db = value(operations.service.health_db)
    openapi = value(operations.service.openapi)
    feedback = value(operations.service.feedback)

    webhooks = value(operations.updates.webhooks)
    create_webhook = value(operations.updates.create_webhook)
    update_webhook = value(operations.updates.update_webhook)
    delete_webhook = value(operations.updates.delete_webhook)

    targets = value(operations.targets.targets)
    iter_targets = rows(operations.targets.iter_targets)
    target = value(operations.targets.target)
    custom_targets = value(operations.targets.custom_targets)
    iter_custom_targets = rows(operations.targets.iter_custom_targets)
    custom_target = value(operations.targets.custom_target)
    request_custom_target = value(operations.targets.request_custom_target)

    estimate = value(operations.experiments.estimate)
    create = value(operations.experiments.create)
    experiments = value(operations.experiments.experiments)
    iter_experiments = rows(operations.experiments.iter_experiments)
    list_states = mapping(operations.states.list_states)
    experiment = value(operations.experiments.experiment)
    submit = value(operations.experiments.submit)
    modify = value(operations.experiments.modify)

    add_sequences = value(operations.sequences.add_sequences)
    sequences = value(operations.sequences.sequences)
    iter_sequences = rows(operations.sequences.iter_sequences)
    sequence = value(operations.sequences.sequence)
    experiment_sequences = value(operations.sequences.experiment_sequences)
    iter_experiment_sequences = rows(operations.sequences.iter_experiment_sequences)

    quote = value(operations.billing.quote)
    quote_pdf = pdf(operations.results.quote_pdf)
    confirm_quote = value(operations.billing.confirm_quote)
    quotes = value(operations.billing.quotes)
    iter_quotes = rows(operations.billing.iter_quotes)
    quote_by_id = value(operations.billing.quote_by_id)
    confirm_quote_by_id = value(operations.billing.confirm_quote_by_id)
    reject_quote = value(operations.billing.reject_quote)
    invoice = value(operations.billing.invoice)
    invoices = value(operations.billing.invoices)
    iter_invoices = rows(operations.billing.iter_invoices)
    invoice_by_id = value(operations.billing.invoice_by_id)
    invoice_pdf = pdf(operations.results.invoice_pdf)
    find_invoice = first(operations.billing.find_invoice)
    pay = value(operations.billing.pay)

    results = every(operations.results.results)
    result = value(operations.results.result)
    result_summaries = value(operations.results.result_summaries)
    iter_result_summaries = rows(operations.results.iter_result_summaries)

    updates = value(operations.updates.updates)
    iter_updates = rows(operations.updates.iter_updates)
    experiment_updates = every(operations.updates.experiment_updates)

    documents = rows(operations.results.documents)
    download = stream(operations.results.download)

    _http_client: ClassVar[Any]  # httpx.Client or httpx.AsyncClient
    _pause: ClassVar[Any]  # the sleep of this face

    def __init__(
        self,
        base_url: str,
        token: SecretStr | str | None,
        *,
        words: WireWords | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        transport: Transport | None = None,
        policy: RetryPolicy | None = None,
        max_download: int = DOWNLOAD_BYTES_MAX,
        sleep: Sleep | None = None,
        pace: Callable[[], None] | None = None,
    ) -> None:
        self._wire = Wire.of(base_url, token, words or WireWords(), timeout)
        self._policy = policy or RetryPolicy(repeats=retries)
        self._max_download = max_download
        self._sleep = sleep or self._pause
        self._pace = pace
        self._service_time: datetime | None = None
        self._is_simulated = False
        self._http = self._http_client(transport=transport, **self._wire.options())
        limit_connections(self._http)

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1` and without a trailing slash."""
        return self._wire.base_url

    @property
    def service_time(self) -> datetime | None:
        """The clock of the service at its last answer, by its `Date`; None before one says."""
        return self._service_time

    @property
    def is_simulated(self) -> bool:
        """Return True if the service's last answer says that it is a local lab, where orders cost nothing.

        False before the first answer, and for every service that does not say so: the contract has no such header. Read
        it after a successful call, because a gateway that answers in place of a lab does not know.
        """
        return self._is_simulated

    def _note_answer(self, attempt: Attempt, answer: Answer) -> Answer:
        if attempt.url is None:  # a file may come from another host, which says nothing about the service
            self._service_time = sent_at(answer.headers) or self._service_time
            self._is_simulated = answer.headers.get(SIMULATED_HEADER.lower()) == SIMULATED_VALUE
        return answer

    def _pace_of(self, attempt: Attempt) -> Callable[[], None] | None:
        """What to wait for before an attempt: not for a file of another host, and not for an order or a payment."""
        return self._pace if attempt.with_token and attempt.request.repeatable else None

    def _max_bytes(self, file: Download) -> int:
        return self._max_download if file.max_bytes is None else file.max_bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"
