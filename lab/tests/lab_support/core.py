"""A lab in the test's own process, without HTTP, and specifications to order from it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import LabSettings
from assay_lab.measure import CATALOG
from assay_lab.requests.core import Answer
from assay_lab.service.core import LabCore

EPOCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PRICED = next(target for target in CATALOG if (target["pricing"] or {}).get("type") == "per_sequence")
BY_LOT = next(target for target in CATALOG if (target["pricing"] or {}).get("type") == "per_broken_lot")
UNPRICED = next(target for target in CATALOG if target["pricing"] is None)
SEQUENCES = {"a": "MKTAYIAKQR", "b": "GSHMKLVFFA", "c": "ACDEFGHIKL"}


def lab_core(**settings: Any) -> LabCore:
    """A lab whose clock starts at EPOCH and stands until moved; threads are not started."""
    return LabCore(LabSettings(epoch=EPOCH, **{"allowed_hosts": ("lab", "testserver"), **settings}))


def spec(**changes: Any) -> dict[str, Any]:
    """A valid affinity specification; None removes a field."""
    whole = {
        "experiment_type": "affinity",
        "method": "bli",
        "target_id": PRICED["id"],
        "sequences": dict(SEQUENCES),
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def order(core: LabCore, specification: Mapping[str, Any] | None = None, **fields: Any) -> Answer:
    """POST /experiments."""
    body = {"experiment_spec": specification or spec(), "name": "test", **fields}
    return core.request("POST", "/experiments", json_body=body)


def get(core: LabCore, path: str, **query: str) -> Any:
    """The body of a GET."""
    return core.request("GET", path, query=query).body


def advance(core: LabCore, **span: float) -> None:
    """Move the default organization's clock."""
    from datetime import timedelta

    org_id = core.seeded.organization_id
    core.clock_driver.advance(org_id, core.lab.clock.now(org_id) + timedelta(**span))


def to_quote(core: LabCore, specification: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """An experiment whose quote is sent; its id."""
    experiment_id: str = order(core, specification, skip_draft=True, **fields).body["experiment_id"]
    advance(core, hours=1)
    return experiment_id


def refusal(core: LabCore, method: str, path: str, **request: Any) -> Refusal:
    """The refusal that a request meets."""
    with pytest.raises(Refusal) as caught:
        core.request(method, path, **request)
    return caught.value
