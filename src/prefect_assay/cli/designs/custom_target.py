"""`prefect-assay custom-target`: requests an antigen that the catalog lacks, and follows the service's decision."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.service import open_service
from prefect_assay.errors import AssayError, ConfigurationError, InputError, is_absent
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import CustomTarget, CustomTargetStatus
from prefect_assay.service.words import in_words

_FASTA: Final = ">"


def request_target(
    name: str,
    *,
    product_id: str,
    sequence: str | None,
    pdb_id: str | None,
    account: str | None,
    as_json: bool,
) -> None:
    """Request a target once, and print how to follow it.

    Raises:
        InputError: something is missing or wrong; nothing was sent.
        Conflict: you have requested this product id before, or the catalog has it.
        OutcomeUnknown: the answer was lost; `custom-target status` shows whether the request arrived.
    """
    if sequence is None and pdb_id is None:
        raise InputError(
            "give --sequence or --pdb-id: the service has to know which protein it is; nothing was sent"
        )
    if sequence is not None and sequence.startswith(_FASTA):
        raise InputError(
            "--sequence takes residues, not FASTA: leave out the line that begins with '>'; nothing was sent"
        )
    with open_service(account) as service, _explain_absence():
        requested = service.custom_targets.request(name, product_id, sequence, pdb_id)
    if as_json:
        print_json(requested.model_dump(mode="json"))
        return
    console = make_plain_console()
    console.print(
        f"Requested: {requested.name or name}, {requested.id} ({_describe_state(requested)}). Nothing was ordered."
    )
    console.print(f"Next: prefect-assay custom-target status {requested.id}")


def show_requests(request_id: str | None, *, account: str | None, as_json: bool) -> None:
    """Print one request, or all of the organization: the decision, its reason, and how to measure against the target.

    Raises:
        NotFound: there is no such request.
    """
    with open_service(account) as service:
        if request_id:
            requests = [service.custom_targets.get(request_id)]
        else:
            with _explain_absence():
                requests = list(service.custom_targets.iterate())
        names = {one.id: _target_of(service, one) for one in requests}
    if as_json:
        print_json({"requests": [one.model_dump(mode="json") for one in requests]})
        return
    if not requests:
        make_plain_console().print("No target was requested yet: prefect-assay custom-target request --help")
        return
    table = plain_table("Target", "State", "Request")
    for one in requests:
        table.add_row(f"{one.name or ''}\n{one.product_id or ''}", _describe_state(one), one.id)
    TerminalConsole(highlight=False).print(table)
    for line in _next_steps(requests, names):
        make_plain_console().print(line)


def _next_steps(requests: list[CustomTarget], names: dict[str, str | None]) -> Iterator[str]:
    for one in requests:
        target = names[one.id]
        if target is not None:
            yield f"Measure against {one.name or target}: prefect-assay estimate designs.fasta --target {shlex.quote(target)}"


def _target_of(service: AssayClient, request: CustomTarget) -> str | None:
    """What `--target` takes for an approved request: the id of the catalog's target, or the product id."""
    if request.status != CustomTargetStatus.APPROVED:
        return None
    if request.target_id is not None:
        return request.target_id
    number = request.product_id
    if number is None:
        return None
    return next((t.id for t in service.targets.iterate(search=number) if t.catalog_number == number), None)


def _describe_state(request: CustomTarget) -> str:
    state = in_words(request.status) if request.status else "no state"
    return f"{state}: {request.reason}" if request.reason else state


@contextmanager
def _explain_absence() -> Iterator[None]:
    """Turn a missing call into an error with the next step: the contract does not have these calls."""
    try:
        yield
    except AssayError as error:
        if not is_absent(error):
            raise
        raise ConfigurationError(
            "this service has no calls for targets of your own; ask its staff to add yours to the catalog, and find it "
            "with: prefect-assay targets"
        ) from error
