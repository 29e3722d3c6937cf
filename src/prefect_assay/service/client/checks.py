"""Finds what the service would refuse before anything is sent, all findings at once (contract 4.1, 4.2 and 8).

Only what is certain is refused. The rules of a specification are in `service.models.spec_rules`; a `Request` made by hand is not
checked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prefect_assay.errors import InvalidRequest, InvalidSpec
from prefect_assay.service.client.http.address import is_address, is_loopback_url
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.identifiers import is_uuid
from prefect_assay.service.models.sequences import ProteinSequence, SequenceEntry
from prefect_assay.service.models.spec_rules import (
    check_concentrations,
    check_replicates,
    check_sequences,
    check_spec,
    quoted,
)
from prefect_assay.service.models.vocabulary import (
    MACHINE_RAILS,
    PAGE_LIMIT_MAX,
    SORT_COLUMNS_MAX,
    WEBHOOK_SECRET_MIN_LENGTH,
    ExperimentStatus,
)

_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[(),]')
_BROKEN_URL = re.compile(r"[\s\x00-\x1f\x7f]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ON_THIS_MACHINE: Final = "plain http to this machine reaches only a lab on it; give an https address"


def check_page(limit: int | None, offset: int | None, sort: object = None) -> None:
    """Check paging and sorting of a list (contract 4.1); InvalidRequest has every finding."""
    InvalidRequest.check(list(_page(limit, offset, sort)))


def check_creation(request: CreateRequest, payment_header: str | None) -> None:
    """Check a whole order (contract 4.2, CreateExpRequest and create rule 2).

    InvalidSpec if the specification is part of what is wrong, else InvalidRequest; with every finding.
    """
    around = [
        *text("name", request.name),
        *_find_payment_problems(request.payment_method, payment_header),
        *webhook_url(request.webhook_url),
        *webhook_secret(
            request.webhook_secret.get_secret_value() if request.webhook_secret is not None else None
        ),
    ]
    if request.auto_accept_quote and not request.experiment_spec.target_id:
        around.append("auto_accept_quote: needs a target_id; order without it and confirm the quote")
    inside = check_spec(request.experiment_spec)
    InvalidSpec.check([*inside, *around] if inside else [])
    InvalidRequest.check(around)


def check_entries(experiment_code: str, designs: Sequence[ProteinSequence | SequenceEntry]) -> None:
    """Check what is added to a draft (contract 4.3); InvalidRequest has every finding."""
    InvalidRequest.check([*text("experiment_code", experiment_code), *find_sequence_problems(designs)])


def check_changes(
    fields: Mapping[str, object], designs: Sequence[ProteinSequence | SequenceEntry] | None
) -> None:
    """Check the fields that a PATCH names (contract 4.2); InvalidRequest has every finding."""
    problems = [] if designs is None else list(find_sequence_problems(designs))
    for name, value in fields.items():
        match name:
            case "name":
                problems += text(name, value)
            case "target_id" if value is not None:
                problems += uuid("target_id", str(value))
            case "n_replicates" if isinstance(value, int):
                problems += check_replicates(value)
            case "antigen_concentrations" if isinstance(value, list):
                problems += check_concentrations(value)
            case "webhook_url" if isinstance(value, str):
                problems += webhook_url(value)
            case "status":
                problems += one_of("status", str(value), list(ExperimentStatus))
            case _:
                pass
    InvalidRequest.check(problems)


def find_sequence_problems(designs: Sequence[ProteinSequence | SequenceEntry]) -> Iterator[str]:
    """A line for each problem of a list of sequences (2.3, 2.4)."""
    if not designs:
        yield "sequences: empty; give at least one"
    yield from check_sequences([(design.name, design) for design in designs])


def text(field: str, value: object) -> Iterator[str]:
    """A field that must not be empty. White space may be enough for the service."""
    if not isinstance(value, str) or not value:
        yield f"{field}: empty"


def one_of(field: str, value: str, known: Sequence[str]) -> Iterator[str]:
    """A field with a closed vocabulary."""
    if value not in known:
        yield f"{field}: {quoted(value)}; {', '.join(known)} are possible"


def uuid(field: str, value: str) -> Iterator[str]:
    """A field that holds a uuid."""
    if not is_uuid(value):
        yield f"{field}: {quoted(value)} is not a uuid"


def webhook_url(url: str | None, field: str = "webhook_url") -> Iterator[str]:
    """HTTPS (contract 4.2). Plain http to this machine is left to `only_for_a_lab`."""
    if url is not None and not _is_local(url) and not _is_address(url, "https"):
        yield f"{field}: must be an https address"


def webhook_secret(secret: str | None, field: str = "webhook_secret") -> Iterator[str]:
    """At least 32 characters (contract 8). The value is never shown."""
    if secret is not None and len(secret) < WEBHOOK_SECRET_MIN_LENGTH:
        yield f"{field}: {len(secret)} characters; at least {WEBHOOK_SECRET_MIN_LENGTH} are needed"


def headers(delivery_headers: Mapping[str, str]) -> Iterator[str]:
    """Headers of deliveries. Their values may be credentials and are never shown."""
    for name, value in delivery_headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield f"headers: {quoted(name)} is not a header name"
        if not value.isprintable():
            yield f"headers: the value of {quoted(name)} is not fit for a header"


def only_for_a_lab(url: object, field: str = "webhook_url") -> tuple[str, ...]:
    """Findings unless the service runs on this machine, which only the client's address shows."""
    return (f"{field}: {_ON_THIS_MACHINE}",) if isinstance(url, str) and _is_local(url) else ()


def _is_local(url: str) -> bool:
    return _is_address(url, "http") and is_loopback_url(url)


def _is_address(url: str, *schemes: str) -> bool:
    return not _BROKEN_URL.search(url) and is_address(url, *schemes)


def _page(limit: int | None, offset: int | None, sort: object) -> Iterator[str]:
    if limit is not None and not 1 <= limit <= PAGE_LIMIT_MAX:
        yield f"limit: {limit}; 1 to {PAGE_LIMIT_MAX} are possible"
    if offset is not None and offset < 0:
        yield f"offset: {offset}; 0 and more are possible"
    count = _columns(str(sort)) if sort is not None else 1
    if count > SORT_COLUMNS_MAX:
        yield f"sort: {count} columns; at most {SORT_COLUMNS_MAX} are possible"


def _columns(sort: str) -> int:
    """Columns are separated by commas outside of brackets and quotes."""
    depth, count = 0, 1
    for part in _PARTS.findall(sort):
        depth += {"(": 1, ")": -1}.get(part, 0)
        count += part == "," and depth == 0
    return count


def _find_payment_problems(selected: str | None, header: str | None) -> Iterator[str]:
    """The selected rail is a machine rail, and header and body agree (4.2, create rule 2); no rail is `async_invoice`."""
    rails = sorted(MACHINE_RAILS)
    if selected is not None:
        yield from one_of("payment.method", str(selected), rails)
    if header is not None:
        yield from one_of("payment method header", str(header), rails)
    if selected is not None and header is not None and str(selected) != str(header):
        yield f"payment.method: {selected}, and the header says {header}; they must agree"
