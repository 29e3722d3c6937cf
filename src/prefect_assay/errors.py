"""Every error of the package, in one tree below `AssayError`, split by what the caller does about it.

`InputError`: fix the input. `AccessError`: fix the token, its role or the address. `TransientError`: try again later.
`PaymentError`: nothing was paid; someone has to decide or to configure. `Stopped`: it ended, or nobody waits any
longer; repeating the request changes nothing. `OutcomeUnknown`: read the state, never repeat the request. Imports `foreign_text` alone.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Final, Self, TypedDict, TypeVar, Unpack

from prefect_assay.foreign_text import clean_text

E = TypeVar("E", bound=BaseException)

MESSAGE_MAX: Final = 2000
# Residues, also a part of them in a quoted value; no word of a message is written like this.
_RESIDUES: Final = re.compile(r"[A-Z]{20,}|[A-Za-z]{60,}")


def shortened(text: str, longest: int = MESSAGE_MAX) -> str:
    """A message without residues, and of bounded length: other packages quote whole requests in theirs."""
    text = _RESIDUES.sub(lambda match: f"[{len(match[0])} letters]", text)
    if len(text) <= longest:
        return text
    more = f" ... ({len(text):,} characters)"
    return text[: longest - len(more)] + more


@contextmanager
def short_messages() -> Iterator[None]:
    """Shorten, in place, the messages of an exception that passes, and of those that led to it."""
    try:
        yield
    except Exception as error:
        shorten(error)
        raise


def shorten(error: E) -> E:
    """Shorten the messages of an exception and of those that led to it, in place; returns it, such as for a log."""
    link: BaseException | None = error
    for _ in range(20):  # a chain may close on itself
        if link is None:
            break
        link.args = tuple(shortened(arg) if isinstance(arg, str) else arg for arg in link.args)
        link = link.__cause__ or link.__context__
    return error


class _Response(TypedDict, total=False):
    request_id: str | None
    status_code: int | None


class AssayError(Exception):
    """Root of all errors of this package.

    Attributes:
        retriable: the same call may succeed later without a change.
        request_id: the service's id of the request, if it answered.
        status_code: the HTTP status of the answer, if any.
    """

    retriable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, request_id: str | None = None, status_code: int | None = None
    ) -> None:
        message = shortened(clean_text(message))
        super().__init__(message)
        self.message = message
        self.request_id = request_id
        self.status_code = status_code

    def __str__(self) -> str:
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Prefect pickles exceptions: rebuild from the attributes, independent of the constructor.
        return _rebuild, (type(self), self.message, self.__dict__)


def _rebuild(cls: type[AssayError], message: str, attributes: dict[str, object]) -> AssayError:
    error = cls.__new__(cls, message)
    Exception.__init__(error, message)
    error.__dict__.update(attributes)
    return error


class InputError(AssayError):
    """The input is wrong; nothing was sent or accepted."""


class _Findings(InputError):
    """Collects every finding instead of stopping at the first."""

    headline: ClassVar[str]

    def __init__(self, findings: Sequence[str]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.whole)

    @property
    def whole(self) -> str:
        """The headline and every finding; the message of an error is shorter where they are many."""
        return "\n".join([f"{self.headline} ({len(self.findings)}):", *(f"  - {f}" for f in self.findings)])

    @classmethod
    def check(cls, findings: Sequence[str]) -> None:
        """Raise when there is at least one finding."""
        if findings:
            raise cls(findings)


class InvalidSequences(_Findings):
    """Designs cannot be ordered; each finding names file, line or sequence."""

    headline = "the designs cannot be used, and nothing was ordered"


class InvalidSpec(_Findings):
    """The specification breaks the service's rules; each finding names the field."""

    headline = "the experiment specification is not valid, and nothing was ordered"


class InvalidRequest(_Findings):
    """The request breaks the service's limits (contract 8); each finding names the field or parameter."""

    headline = "the request is not valid, and nothing was done"


class RequestRefused(InputError):
    """400, 415, 422, or a 409 that stays: `errors` are the service's messages, at least one; `code` is the machine-readable one, if any."""

    def __init__(
        self,
        message: str,
        *,
        errors: Sequence[str] = (),
        code: str | None = None,
        **response: Unpack[_Response],
    ) -> None:
        super().__init__(message, **response)
        self.errors = tuple(errors) or (message,)
        self.code = code

    @classmethod
    def of(cls, conflict: "Conflict") -> Self:
        """The refusal of a request that no other state of the service would allow."""
        return cls(
            conflict.message,
            code=conflict.code,
            request_id=conflict.request_id,
            status_code=conflict.status_code,
        )


class AccessError(AssayError):
    """The token, its role or the address is wrong."""


class Unauthorized(AccessError):
    """401: the token is missing, unknown, expired or revoked."""


class Forbidden(AccessError):
    """403: the token's role or restrictions do not allow this."""


class OtherOrganization(AccessError):
    """The archive belongs to another organization than the token; nothing is ordered or paid until one of them is changed."""


class NotFound(AssayError):
    """404: it does not exist, or this token may not see it.

    `genuine` if the service said so in its own words (contract 2.12), and not a gateway in front of it.
    """

    genuine = False


class NotReady(NotFound):
    """404 that means "not yet": the quote or the invoice does not exist so far (contract 4.2)."""

    retriable = True


_NO_SUCH_CALL = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED, *range(300, 400)}
)


def is_absent(error: AssayError) -> bool:
    """Return True for a 404, 405 or 501, also a gateway's, or a redirect: there is no such record or call.

    A page to sign in at is often what stands where a service has no call.
    """
    return isinstance(error, NotFound) or error.status_code in _NO_SUCH_CALL


class Conflict(AssayError):
    """409: the state does not allow the request; `code` is the cause, if any, such as submit's `error_kind`."""

    def __init__(self, message: str, *, code: str | None = None, **response: Unpack[_Response]) -> None:
        super().__init__(message, **response)
        self.code = code


@dataclass(frozen=True)
class Candidate:
    """An experiment that may be the order, and what its record says against it or leaves open."""

    experiment_id: str
    code: str
    url: str | None
    why: str


class OrderMismatch(Conflict):
    """Whether an experiment with the order key is the order is not certain; nothing is ordered or paid.

    `candidates` are the experiments, for the person who decides.
    """

    candidates: tuple[Candidate, ...] = ()

    def __init__(
        self, message: str, *, candidates: tuple[Candidate, ...] = (), **response: Unpack[_Response]
    ) -> None:
        super().__init__(message, **response)
        self.candidates = candidates


class DecisionNeeded(AssayError):
    """Only a person can decide how to continue; nothing was ordered, confirmed or paid meanwhile.

    A run of a deployment asks with a form. Every other run ends with this error.

    Attributes:
        question: the `prefect_assay.orders.question.Question`, with its facts and choices.
    """

    def __init__(self, question: Any, **response: Unpack[_Response]) -> None:
        super().__init__(
            f"{question.text} Nothing was ordered, confirmed or paid meanwhile. Start the flow from its deployment to be "
            f"asked; the choices are {', '.join(question.decisions)}",
            **response,
        )
        self.question = question


class TransientError(AssayError):
    """The service or the network failed before the request took effect."""

    retriable = True


class ServiceUnavailable(TransientError):
    """5xx or no connection; never raised for a request that may have taken effect."""


class MixedAnswer(ServiceUnavailable):
    """The response names another experiment, quote, invoice or result than was asked for; it counts as not received."""


class OrderPending(ServiceUnavailable):
    """The service has named the experiment of an order and does not show it yet: the order stands, nothing is sent again."""


class ClockDiffers(TransientError):
    """The clocks of this machine and of the service differ by more than minutes; nothing was ordered or paid by machine."""


class RateLimited(TransientError):
    """429; `retry_after` is the service's delay in seconds, if any."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, **response: Unpack[_Response]
    ) -> None:
        response.setdefault("status_code", 429)
        super().__init__(message, **response)
        self.retry_after = retry_after


class PaymentError(AssayError):
    """Nothing was paid."""


class PaymentsDisabled(PaymentError):
    """Machine payments are off in the policy, or the wallet is missing."""


class PaymentRefused(PaymentError):
    """The guard refused the payment terms; nothing was signed or sent."""


class PaymentFailed(PaymentError):
    """The service refused the payment and the invoice is still unpaid."""


class PayByHand(PaymentFailed):
    """No machine can pay the invoice, because it is not known for certain which one it is; a person can, at its page."""


class BudgetExceeded(PaymentError):
    """The amount is over a cap of the spending policy, or over `spend_up_to_usd`.

    Attributes:
        cap: the cap of a sum, `rolling` or `campaign`; None for the cap of one payment.
        total_cents: the sum with this amount.
        cap_cents: the cap of the sum.
    """

    def __init__(
        self,
        message: str,
        *,
        cap: str | None = None,
        total_cents: int | None = None,
        cap_cents: int | None = None,
    ) -> None:
        super().__init__(message)
        self.cap = cap
        self.total_cents = total_cents
        self.cap_cents = cap_cents


class Stopped(AssayError):
    """It ended, or nobody waits any longer; repeating the request changes nothing."""


class ExperimentCanceled(Stopped):
    """The experiment was canceled."""


class ApprovalRejected(Stopped):
    """A person declined the spending."""


class ApprovalExpired(Stopped):
    """The question expired; what needed the answer was not done."""


class OrderStopped(Stopped):
    """A person has canceled the order: it is not ordered, accepted or paid any more. What was sent before stays sent."""


class Overdue(Stopped):
    """The deadline of the wait has passed; the experiment is still running, and you can wait again."""


class OutcomeUnknown(AssayError):
    """A request was sent and its response was lost."""


class OrderOutcomeUnknown(OutcomeUnknown):
    """An experiment may or may not have been ordered; search by its order key before ordering again."""


class OrderNotVisible(OrderOutcomeUnknown):
    """What was ordered cannot be seen with these credentials: their token or address is another one by now."""


class PartialOrder(OrderOutcomeUnknown):
    """The service failed after it created the experiment (contract 4.2, create rule 6): adopt it.

    `invoice_id` is the provider's, if the invoice was created before the failure.
    """

    def __init__(
        self,
        message: str,
        *,
        experiment_id: str,
        invoice_id: str | None = None,
        hosted_invoice_url: str | None = None,
        **response: Unpack[_Response],
    ) -> None:
        super().__init__(message, **response)
        self.experiment_id = experiment_id
        self.invoice_id = invoice_id
        self.hosted_invoice_url = hosted_invoice_url


class PaymentOutcomeUnknown(OutcomeUnknown):
    """An invoice may or may not have been paid; read the invoice before anything else."""


class UnexpectedAnswer(AssayError):
    """The response is not JSON or not what the contract describes: check the address and the version."""


class ArchiveError(AssayError):
    """The archive is missing, unwritable or does not agree with its manifest."""


class ArchiveUnavailable(ArchiveError):
    """The store cannot be reached or is busy; writing again is always safe."""

    retriable = True


class NewerFormat(ArchiveError):
    """A later version of this package has written a file in a format that this version does not read."""

    def __init__(self, location: str, number: int, known: int) -> None:
        super().__init__(
            f"{location} has format {number}, and this version of prefect-assay reads formats up to {known}: a later version "
            "wrote it. Nothing was changed, ordered or paid; upgrade prefect-assay here (pip install --upgrade "
            "prefect-assay), and run it again"
        )
        self.location, self.number, self.known = location, number, known

    def __reduce__(self) -> tuple[type[Self], tuple[str, int, int]]:
        """Keep it readable where it was pickled with a run's state."""
        return type(self), (self.location, self.number, self.known)


class SignatureError(AssayError):
    """A webhook delivery is not proved genuine; `reason` is one word, for counters."""

    reason: str = "signature"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or type(self).reason


class MalformedDelivery(SignatureError):
    """A delivery with a valid signature and a body that breaks contract 6."""

    reason = "malformed"


class CampaignFailed(AssayError):
    """No experiment gave results; `report` is the `CampaignReport`, or None if results are stored as JSON."""

    def __init__(self, message: str, *, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class JobFailed(AssayError):
    """The campaign behind an experiment job is over without complete results, was canceled, or did not begin."""


class DesignerFailed(AssayError):
    """A designer failed, proposed nothing, or nothing that can be read; nothing was ordered. Correct it, then retry."""


class LoopFailed(AssayError):
    """A round of a loop gave nothing to go on with; `report` is the `LoopReport`, or None if stored as JSON."""

    def __init__(self, message: str, *, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class ConfigurationError(AssayError):
    """A block, setting or extra is missing or wrong; the message names it and the next step."""

    @classmethod
    def missing_extra(cls, extra: str, purpose: str) -> Self:
        """A missing optional dependency."""
        return cls(f"{purpose} needs an extra: in a checkout, run pip install '.[{extra}]'")

    @classmethod
    def missing_lab(cls, purpose: str) -> Self:
        """The local lab is not installed; it is a distribution of its own."""
        return cls(
            f"{purpose} needs the local lab, a package of its own in the folder lab/ of the repository: in a checkout, run "
            "pip install ./lab"
        )


class MissingBlock(ConfigurationError, InputError):
    """No saved block has the name that was given; nothing was done."""


class CertificatesUnreadable(ConfigurationError):
    """Certificates that a variable of the environment names cannot be read now; a run that has ordered waits for them."""

    retriable = True
