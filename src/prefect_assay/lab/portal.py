"""The browser pages behind the links of the API: an experiment, a quote, an invoice, a data package.

No bearer token: the unguessable key in the address opens the page, as with a real provider's hosted pages.
"""

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import (
    acceptance,
    documents,
    experiments,
    invoices,
    measuring,
    pages,
    pages_frame,
    payment,
    records,
)
from prefect_assay.lab.core import Lab
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.store import Db, Row, load


def _core(request: Request) -> LabCore:
    core: LabCore = request.app.state.core
    return core


Core = Annotated[LabCore, Depends(_core)]
router = APIRouter()


def _found(row: Row | None) -> Row:
    if row is None:
        raise Refusal(404, "no such page")
    return row


def _experiment(lab: Lab, db: Db, experiment_id: str) -> tuple[Row, dict[str, Any]]:
    row = _found(db.one("SELECT * FROM experiments WHERE id = ?", experiment_id))
    return row, experiments.record(lab, db, row) | {"eta": row["eta"]}


def _experiment_page(lab: Lab, key: str) -> str:
    with lab.store.transaction() as db:
        found = _found(db.one("SELECT id FROM experiments WHERE portal_key = ?", key))
        row, record = _experiment(lab, db, found["id"])
        updates = db.all(
            "SELECT id, type, name, description, created_at AS timestamp FROM updates"
            " WHERE experiment_id = ? ORDER BY seq",
            row["id"],
        )
        measuring.measure_released(db, row["org_id"], row["id"])
        results = db.all("SELECT * FROM results WHERE experiment_id = ? ORDER BY position", row["id"])
        return pages.experiment_page(record, updates, [records.result(lab, result) for result in results])


def _quote_page(lab: Lab, key: str) -> str:
    with lab.store.transaction() as db:
        quote = load(_found(db.one("SELECT * FROM quotes WHERE portal_key = ?", key)), "line_items")
        _, record = _experiment(lab, db, quote["experiment_id"])
        return pages.quote_page(_public(quote), record)


def _invoice_page(lab: Lab, key: str) -> str:
    with lab.store.transaction() as db:
        invoice = _found(db.one("SELECT * FROM invoices WHERE portal_key = ?", key))
        _, record = _experiment(lab, db, invoice["experiment_id"])
        view = invoices.view(lab, invoice) | {"amount_cents": invoice["amount_cents"]}
        view |= {"payment_method": invoice["payment_method"], "paid_at": invoice["paid_at"]}
        return pages.invoice_page(view, record)


def _public(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("portal_key", "seq", "org_id")}


async def _page(core: LabCore, make: Callable[[Lab, str], str], key: str) -> Response:
    return HTMLResponse(await run_in_threadpool(make, core.lab, key), headers=pages_frame.headers())


@router.get("/experiments/{key}/")
async def experiment_page(core: Core, key: str) -> Response:
    """Progress, updates and results."""
    return await _page(core, _experiment_page, key)


@router.get("/quotes/{key}/")
async def quote_page(core: Core, key: str) -> Response:
    """A quote, with buttons."""
    return await _page(core, _quote_page, key)


@router.get("/invoices/{key}/")
async def invoice_page(core: Core, key: str) -> Response:
    """A hosted invoice, with a button."""
    return await _page(core, _invoice_page, key)


@router.get("/invoices/{key}/pdf")
async def invoice_pdf(core: Core, key: str) -> Response:
    """The invoice as a file."""
    content = await run_in_threadpool(documents.hosted_invoice, core.lab, key)
    return Response(content, media_type=documents.MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@router.get("/packages/{key}/")
async def package(core: Core, key: str) -> Response:
    """The data package of a result (`data_package_url`)."""

    def fetch() -> tuple[str, bytes] | None:
        with core.lab.store.transaction() as db:
            return measuring.package(db, key)

    found = await run_in_threadpool(fetch)
    if found is None:
        raise Refusal(404, "no such page")
    disposition = f'attachment; filename="{found[0]}"'
    return Response(found[1], media_type="application/zip", headers={"Content-Disposition": disposition})


async def _act(core: LabCore, action: Callable[[], None]) -> Response:
    await run_in_threadpool(action)
    core.lab.changed()
    return RedirectResponse("./", status_code=303)


@router.post("/quotes/{key}/accept")
async def accept(core: Core, key: str) -> Response:
    """Accept the quote, as `quote/confirm` does."""

    def action() -> None:
        with core.lab.store.transaction() as db:
            quote = _found(db.one("SELECT * FROM quotes WHERE portal_key = ?", key))
            now = core.lab.clock.now(quote["org_id"])
            acceptance.accept(core.lab, db, quote, now, purchase_order_number=None, notes=None)

    return await _act(core, action)


@router.post("/quotes/{key}/reject")
async def reject(core: Core, key: str, request: Request) -> Response:
    """Reject the quote; the form may carry a reason and feedback."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))

    def action() -> None:
        with core.lab.store.transaction() as db:
            quote = _found(db.one("SELECT * FROM quotes WHERE portal_key = ?", key))
            reason, feedback = form.get("reason", ["other"])[0], form.get("feedback", [None])[0]
            acceptance.reject(db, quote, reason, feedback, core.lab.clock.now(quote["org_id"]))

    return await _act(core, action)


@router.post("/invoices/{key}/pay")
async def pay(core: Core, key: str) -> Response:
    """A person pays the hosted invoice."""

    def action() -> None:
        with core.lab.store.transaction() as db:
            invoice = _found(db.one("SELECT * FROM invoices WHERE portal_key = ?", key))
            if invoice["status"] not in payment.PAYABLE:
                raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
            payment.settle(core.lab, db, invoice, core.lab.clock.now(invoice["org_id"]))

    return await _act(core, action)
