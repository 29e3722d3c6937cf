"""Resolve the target and ask for the price. Both only read."""

from uuid import UUID

from prefect import task
from prefect_assay.blocks import AssayCredentials
from prefect_assay.tasks.policy import READ

from prefect_assay.client import AssayClient
from prefect_assay.errors import InvalidSpec
from prefect_assay.models.estimate import CostEstimate
from prefect_assay.models.spec import Assay, ExperimentSpec
from prefect_assay.models.target import Target
from prefect_assay.models.vocabulary import BINDING_TYPES


@task(name="resolve-target", **READ)
def resolve_target(credentials: AssayCredentials, assay: Assay) -> Target | None:
    """The catalog target that `assay.target` names by id, catalog number or exact name; None without one.

    Raises:
        InvalidSpec: a target is needed and missing, not wanted, unknown, or not unique.
    """
    if assay.experiment_type not in BINDING_TYPES:
        # contract 2.2: the other types reject a target
        InvalidSpec.check(
            [f"target: {assay.experiment_type} takes no target; leave it empty"] if assay.target else []
        )
        return None
    if not assay.target:
        raise InvalidSpec([f"target: {assay.experiment_type} needs one; name a catalog target"])
    with credentials.get_client() as client:
        return _find_target(client, assay.target.strip())


def _find_target(client: AssayClient, wanted: str) -> Target:
    candidates = [
        t for t in client.iter_targets(search=None if _is_uuid(wanted) else wanted) if _is_named(t, wanted)
    ]
    if not candidates and not _is_uuid(wanted):
        # the search covers names; a catalog number may need the whole list
        candidates = [t for t in client.iter_targets() if _is_named(t, wanted)]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise InvalidSpec(
            [f"target: {wanted!r} is not in the service's catalog; look it up under GET /targets"]
        )
    listed = ", ".join(f"{t.name} ({t.id})" for t in candidates[:5])
    raise InvalidSpec([f"target: {wanted!r} names {len(candidates)} targets: {listed}; use the id"])


def _is_named(target: Target, wanted: str) -> bool:
    names = (target.id, target.catalog_number, target.name)
    return wanted.casefold() in {n.casefold() for n in names if n}


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


@task(name="estimate-cost", **READ)
def estimate_cost(credentials: AssayCredentials, spec: ExperimentSpec) -> CostEstimate:
    """The service's price for a specification, in US cents without VAT (contract 2.5). Creates nothing."""
    with credentials.get_client() as client:
        return client.estimate(spec)
