"""The control surface's part on machine payments: what the rails offer, and faults of the pay path."""

from dataclasses import asdict, fields
from typing import Final

from fastapi import APIRouter, Request, Response

from prefect_assay.lab.payment_faults import PaymentFault
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.sim_base import Core, answer, body, known

router = APIRouter()
_FIELDS: Final = tuple(item.name for item in fields(PaymentFault) if item.name != "hits")


@router.get("/mpp")
async def mpp(core: Core) -> Response:
    """What the lab offers on the mpp-spt rail: method, network_id and so on."""
    terms = asdict(core.lab.settings.mpp)
    del terms["secret"]
    return answer(terms)


@router.get("/payment-faults")
async def payment_faults(core: Core) -> Response:
    """All payment faults asked for, with their hits."""
    return answer({"items": core.lab.payment_faults.view()})


@router.post("/payment-faults")
async def add_payment_fault(core: Core, request: Request) -> Response:
    """`{action, rail?, count?, after?, organization_id?, invoice_id?}`; without a count it lasts until dropped."""
    wanted = await body(request)
    known(wanted, *_FIELDS)
    if "action" not in wanted:
        raise Refusal(400, "action: required")
    core.lab.payment_faults.add(PaymentFault(**wanted))
    return answer({"items": core.lab.payment_faults.view()})


@router.delete("/payment-faults")
async def clear_payment_faults(core: Core) -> Response:
    """Drop the payment faults, and no others."""
    core.lab.payment_faults.clear()
    return answer({})
