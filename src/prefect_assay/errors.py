"""Every error of the package, in one tree, split by what the caller does about it.

    AssayError
    ├── InputError                 fix the input; nothing was sent or nothing was accepted
    │   ├── InvalidSequences       findings, each naming file, line or sequence
    │   ├── InvalidSpec            findings, each naming a field of the specification
    │   ├── InvalidRequest         findings, each naming a field or parameter that the service would refuse
    │   └── RequestRefused         400, 415, 422 of the service, with its accumulated messages
    ├── AccessError                fix the token, its role or the address
    │   ├── Unauthorized           401
    │   └── Forbidden              403
    ├── NotFound                   404
    │   └── NotReady               404 that means "not yet": no quote, no invoice
    ├── Conflict                   409
    │   └── OrderMismatch          an experiment carries the order key and is another one
    ├── TransientError             try again later
    │   ├── ServiceUnavailable     5xx, or no connection; never raised for a request that may have been handled
    │   └── RateLimited            429, with retry_after in seconds
    ├── PaymentError               nothing was paid; someone has to decide or to configure
    │   ├── PaymentsDisabled       machine payments are off in the policy, or no wallet is given
    │   ├── PaymentRefused         the guard refused the terms
    │   ├── PaymentFailed          the service refused the payment and says so
    │   └── BudgetExceeded         over a cap
    ├── Stopped                    the job ended without a result, and no retry will change that
    │   ├── ExperimentCanceled
    │   ├── QuoteRejected
    │   ├── QuoteExpired
    │   ├── ApprovalRejected
    │   ├── ApprovalExpired        nobody has answered in time
    │   └── Overdue                the deadline of the wait has passed
    ├── OutcomeUnknown             a request was sent and its answer was lost: look, never repeat
    │   ├── OrderOutcomeUnknown
    │   │   └── PartialOrder       the service failed after it created the experiment; adopt experiment_id
    │   └── PaymentOutcomeUnknown
    ├── UnexpectedAnswer           an answer that is not what the contract describes; the address or the version
    ├── ArchiveError               the archive is missing, unwritable or does not agree with its manifest
    │   └── ArchiveUnavailable     no connection, or the store is busy: the same call may succeed later
    ├── SignatureError             a webhook delivery that is not genuine
    │   └── MalformedDelivery      signed with a known secret, but not what the contract describes
    ├── CampaignFailed             no experiment of the campaign gave results; its report names the causes
    ├── CrashedTooOften            a run that has crashed again and again; look for the cause, then run it again
    └── ConfigurationError         a block, setting or extra is missing; the message names it
        └── BlockMissing           a block of a run was deleted; saved again under its name, it mends the run

This module must not import anything of the package.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self


class AssayError(Exception):
    """Root of all errors of this package.

    Attributes:
        retriable: whether the same call may succeed later without anything being changed.
        request_id: the service's id of the request, when there was an answer.
        status_code: the HTTP status of the answer, when there was one.
    """

    retriable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, request_id: str | None = None, status_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id
        self.status_code = status_code

    def __str__(self) -> str:
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Prefect pickles exceptions: rebuild from the attributes, whatever the constructor takes.
        return _rebuild, (type(self), self.message, self.__dict__)


def _rebuild(cls: type[AssayError], message: str, attributes: dict[str, object]) -> AssayError:
    error = cls.__new__(cls, message)
    Exception.__init__(error, message)
    error.__dict__.update(attributes)
    return error


class InputError(AssayError):
    """The input is wrong; nothing was ordered."""


class _Findings(InputError):
    """An input error that collects every finding instead of stopping at the first."""

    headline: ClassVar[str]

    def __init__(self, findings: Sequence[str]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            "\n".join([f"{self.headline} ({len(self.findings)}):", *(f"  - {f}" for f in self.findings)])
        )

    @classmethod
    def check(cls, findings: Sequence[str]) -> None:
        """Raise when there is at least one finding."""
        if findings:
            raise cls(findings)


class InvalidSequences(_Findings):
    """The designs cannot be ordered as they are; each finding names file, line or sequence."""

    headline = "the sequences cannot be ordered, and nothing was"


class InvalidSpec(_Findings):
    """The specification breaks rules of the service; each finding names the field."""

    headline = "the experiment specification is not valid, and nothing was ordered"


class InvalidRequest(_Findings):
    """The request breaks limits of the service (contract 8); each finding names the field or the parameter."""

    headline = "the request is not valid, and nothing was done"


class RequestRefused(InputError):
    """The service refused the request as wrong (400, 415, 422).

    Attributes:
        errors: every message of the service's accumulated answer, at least one.
        code: the machine-readable code, where the service gives one.
    """

    def __init__(
        self,
        message: str,
        *,
        errors: Sequence[str] = (),
        code: str | None = None,
        request_id: str | None = None,
        status_code: int | None = None,
    ) -> None:
        super().__init__(message, request_id=request_id, status_code=status_code)
        self.errors = tuple(errors) or (message,)
        self.code = code


class AccessError(AssayError):
    """The token, its role or the address is wrong."""


class Unauthorized(AccessError):
    """401: the token is missing, unknown, expired or revoked."""


class Forbidden(AccessError):
    """403: the token's role or restrictions do not allow this."""


class NotFound(AssayError):
    """404: it does not exist, or this token may not see it."""


class NotReady(NotFound):
    """404 that means "not yet": the quote or the invoice does not exist so far (contract 4.2)."""

    retriable = True


class Conflict(AssayError):
    """409: the thing is in another state than the request needs.

    Attributes:
        code: the machine-readable cause, where the service gives one, such as submit's `error_kind`.
    """

    code: str | None = None  # of the class: errors that an earlier version has pickled lack it

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        status_code: int | None = None,
    ) -> None:
        super().__init__(message, request_id=request_id, status_code=status_code)
        self.code = code


class OrderMismatch(Conflict):
    """An experiment carries the order key, and its specification is another one; nothing is ordered or paid."""


class TransientError(AssayError):
    """The service or the network failed before the request took effect; try again later."""

    retriable = True


class ServiceUnavailable(TransientError):
    """5xx or no connection."""


class RateLimited(TransientError):
    """429; `retry_after` is the number of seconds the service asks to wait, if it says so."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        request_id: str | None = None,
        status_code: int | None = 429,
    ) -> None:
        super().__init__(message, request_id=request_id, status_code=status_code)
        self.retry_after = retry_after


class PaymentError(AssayError):
    """Nothing was paid; someone has to decide or to configure."""


class PaymentsDisabled(PaymentError):
    """Machine payments are switched off, or the means to pay are not configured."""


class PaymentRefused(PaymentError):
    """The guard refused the payment terms; nothing was signed or sent."""


class PaymentFailed(PaymentError):
    """The service refused the payment and the invoice is still unpaid."""


class BudgetExceeded(PaymentError):
    """The amount is over a cap of the spending policy.

    Attributes:
        cap: the name of the cap that a sum has reached, where there is a sum: `rolling` or `campaign`.
        total_cents: what the sum would come to, this amount included.
        cap_cents: what it may come to.
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
    """The job ended without a result, and no retry will change that."""


class ExperimentCanceled(Stopped):
    """The experiment was canceled."""


class QuoteRejected(Stopped):
    """The quote was rejected."""


class QuoteExpired(Stopped):
    """The quote's validity passed before it was confirmed."""


class ApprovalRejected(Stopped):
    """A person declined the spending."""


class ApprovalExpired(Stopped):
    """Nobody has answered in time; nothing was done that waited for the answer."""


class Overdue(Stopped):
    """The deadline of the wait has passed."""


class OutcomeUnknown(AssayError):
    """A request was sent and its answer was lost: read the state, never repeat the request."""


class OrderOutcomeUnknown(OutcomeUnknown):
    """An experiment may or may not have been ordered; search by its order key before ordering again."""


class PartialOrder(OrderOutcomeUnknown):
    """The service failed after it created the experiment (contract 4.2, create rule 6): adopt it.

    Attributes:
        experiment_id: the experiment that exists.
        invoice_id: the provider's invoice id, when one was made before the failure.
    """

    def __init__(
        self,
        message: str,
        *,
        experiment_id: str,
        invoice_id: str | None = None,
        hosted_invoice_url: str | None = None,
        request_id: str | None = None,
        status_code: int | None = None,
    ) -> None:
        super().__init__(message, request_id=request_id, status_code=status_code)
        self.experiment_id = experiment_id
        self.invoice_id = invoice_id
        self.hosted_invoice_url = hosted_invoice_url


class PaymentOutcomeUnknown(OutcomeUnknown):
    """An invoice may or may not have been paid; read the invoice before anything else."""


class UnexpectedAnswer(AssayError):
    """An answer to a reading request that is no JSON or not what the contract describes."""


class ArchiveError(AssayError):
    """The archive is missing, unwritable or does not agree with its manifest."""


class ArchiveUnavailable(ArchiveError):
    """The store cannot be reached or is busy; writing again is always safe."""

    retriable = True


class SignatureError(AssayError):
    """A webhook delivery is not genuine, or cannot be proved to be; `reason` is one word for it, for counters."""

    reason: str = "signature"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or type(self).reason


class MalformedDelivery(SignatureError):
    """A delivery signed with a known secret whose body is not what the contract describes (contract 6)."""

    reason = "malformed"


class CampaignFailed(AssayError):
    """No experiment gave results; `report` is the `CampaignReport`, or None where results are stored as JSON."""

    def __init__(self, message: str, *, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class CrashedTooOften(AssayError):
    """A run has crashed too often in a row to be started again by itself; nothing is lost or repeated."""


class ConfigurationError(AssayError):
    """A block, a setting or an extra is missing or wrong; the message names it and the next step."""

    @classmethod
    def missing_extra(cls, extra: str, purpose: str) -> Self:
        """The error for an optional dependency that is not installed."""
        return cls(f"{purpose} needs an extra: pip install 'prefect-assay[{extra}]'")


class BlockMissing(ConfigurationError):
    """A block that a run needs was deleted.

    Attributes:
        parameter: the run's parameter.
        block: the block, as `type/name`.
    """

    retriable = True

    def __init__(self, message: str, *, parameter: str, block: str) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.block = block
