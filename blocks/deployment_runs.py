"""The deployments of our flows, and starting a run of one."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, cast

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import DeploymentResponse
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.blocks.run_parameters import check_parameters
from prefect_assay.errors import ConfigurationError

_REASON_MAX: Final = 200


def deployment_name(flow: str) -> str:
    """The name of a flow's deployment, one for each flow: lists show it in bold, and the flow small below it."""
    return f"assay-{flow}"


def deployment_of(flow: str) -> str:
    """The full name of a flow's deployment, as `campaign/assay-campaign`."""
    return f"{flow}/{deployment_name(flow)}"


def find_deployment(client: SyncPrefectClient, name: str) -> DeploymentResponse | None:
    """Read the deployment `flow/name`; None if Prefect does not have it."""
    try:
        return client.read_deployment_by_name(name)
    except ObjectNotFound:
        return None


def start_run(
    deployment: str,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> FlowRun:
    """Start a deployment as a top-level run, or find the run of the idempotency key; returns at once.

    Raises:
        ConfigurationError: the deployment does not exist, a block is not saved, or a parameter does not fit its schema.
        InputError: the parameters hold what Prefect's database does not keep, or are too large.
    """
    try:
        # Also in an async flow: a caller that must not block calls this in a thread.
        json_parameters = {name: as_parameter(value) for name, value in parameters.items()}
        check_parameters(json_parameters)
        run = cast("Any", run_deployment)(
            deployment,
            _sync=True,
            parameters=json_parameters,
            flow_run_name=name,
            tags=list(tags),
            idempotency_key=idempotency_key,
            as_subflow=False,
            timeout=0,
        )
    except ObjectNotFound as error:
        raise make_missing_deployment_error(deployment) from error
    except PrefectHTTPStatusError as error:
        if error.response.status_code not in {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}:
            raise
        raise ConfigurationError(
            f"Prefect does not start {deployment}, and nothing was ordered: {_explain_refusal(error.response)}"
        ) from None  # its message quotes the request
    return cast("FlowRun", run)


def _explain_refusal(response: httpx.Response) -> str:
    """Why Prefect refuses a run, without the values that it quotes."""
    detail = response.json().get("detail") if response.status_code == HTTPStatus.CONFLICT else None
    if isinstance(detail, str):
        field, quoted, reason = detail.partition("Failure reason: ")
        # The reason begins with the value, and may be as long.
        return field + quoted + (reason if len(reason) <= _REASON_MAX else reason.rpartition("'")[2].strip())
    errors = response.json().get("exception_detail") or [{}]
    return str(errors[0].get("msg") or f"HTTP {response.status_code}")


def make_missing_deployment_error(name: str) -> ConfigurationError:
    """The error of a deployment that Prefect does not have, with the next step."""
    here = (
        " It also runs in one process, with: prefect-assay run --here" if name.startswith("campaign/") else ""
    )
    return ConfigurationError(f"there is no deployment {name}; create it with: prefect-assay deploy.{here}")
