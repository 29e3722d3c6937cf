"""Changing an experiment: PATCH, and the POST of the earlier interface variant (contract 4.2 and 9.4).

Which of the two a service speaks shows in its answer: 405 says that the path exists and the method does not, so that
nothing was done, and only then the other is tried. A 404 is no such sign, because both variants answer it for an
experiment that does not exist; nor is any answer after which something may have been done. `status` is a field of the
earlier variant only: with it POST is sent at once, which the current interface answers with 405.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.client.checks import check_changes, only_for_a_lab
from prefect_assay.client.decoding import once
from prefect_assay.client.http.request import UNSET, Answer, Operation, Unset, segment
from prefect_assay.client.operations.sequences import entry
from prefect_assay.errors import AssayError, InvalidRequest
from prefect_assay.models.experiment import Modified
from prefect_assay.models.sequences import Sequence as Design
from prefect_assay.models.vocabulary import ExperimentStatus, snake_case

_READ_AGAIN: Final = "Read the experiment before anything else"
# contract 9.4: what the earlier variant can change
_EARLIER: Final = frozenset(
    {"description", "n_replicates", "name", "parameters", "sequences", "status", "target_id"}
)


def modify(
    experiment_id: str,
    *,
    name: str | Unset = UNSET,
    description: str | Unset = UNSET,
    target_id: str | Unset | None = UNSET,
    antigen_concentrations: Sequence[float] | Unset = UNSET,
    n_replicates: int | Unset = UNSET,
    parameters: Mapping[str, Any] | Unset = UNSET,
    sequences: Sequence[Design] | Unset = UNSET,
    webhook_url: str | Unset | None = UNSET,
    status: ExperimentStatus | str | Unset = UNSET,
) -> Operation[Modified]:
    """PATCH /experiments/{id}, once; only the fields that are named. None clears the target or the webhook.

    `sequences` replaces the whole list. A service of the earlier variant is told by POST instead, and only such a one can
    change `status`.

    Raises:
        InvalidRequest: with every finding; nothing was sent, or the earlier variant cannot change this.
        Conflict: the field cannot change any more in this status (contract 4.2, PATCH rule 1).
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    designs = None if isinstance(sequences, Unset) else tuple(sequences)
    fields: dict[str, object] = {
        "name": name,
        "description": description,
        "target_id": target_id,
        "antigen_concentrations": antigen_concentrations
        if isinstance(antigen_concentrations, Unset)
        else list(antigen_concentrations),
        "n_replicates": n_replicates,
        "parameters": parameters if isinstance(parameters, Unset) else dict(parameters),
        "sequences": UNSET if designs is None else [entry(d) for d in designs],
        "webhook_url": webhook_url,
        "status": status if isinstance(status, Unset) else str(snake_case(status)),
    }
    # an empty object when nothing is named: the body is required (contract 4.2)
    named = {field: value for field, value in fields.items() if value is not UNSET}
    check_changes(named, designs)

    path = f"/experiments/{segment(experiment_id)}"
    if "status" in named:
        return replace(_earlier(path, named, designs), failed=_no_earlier)

    def instead(answer: Answer) -> Operation[Modified] | None:
        return _earlier(path, named, designs) if answer.status == HTTPStatus.METHOD_NOT_ALLOWED else None

    only_local = only_for_a_lab(named.get("webhook_url"))
    patch = once("PATCH", path, Modified, _READ_AGAIN, named, unless_local=only_local)
    return replace(patch, instead=instead)


def _earlier(
    path: str, named: Mapping[str, object], designs: tuple[Design, ...] | None
) -> Operation[Modified]:
    """POST /experiments/{id} with the fields that the earlier variant has (contract 9.4)."""
    InvalidRequest.check(list(_unsayable(named, designs)))
    body = dict(named)
    if designs is not None:
        body["sequences"] = [{"fasta": f">{design.name}\n{design.aa_string}\n"} for design in designs]
    return once("POST", path, Modified, _READ_AGAIN, body)


def _no_earlier(answer: Answer) -> AssayError | None:
    if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
        return None
    return InvalidRequest(
        [
            "status: this service speaks the current interface, which cannot change it; use submit or confirm_quote"
        ]
    )


def _unsayable(named: Mapping[str, object], designs: tuple[Design, ...] | None) -> Iterator[str]:
    """What would be lost on the way: better nothing is changed than half of it."""
    for field in named.keys() - _EARLIER:
        yield f"{field}: this service speaks the earlier interface, which cannot change it"
    for design in designs or ():
        if design.control or design.metadata:
            yield (
                f"sequences[{design.name!r}]: this service speaks the earlier interface, which takes neither controls "
                "nor metadata"
            )
