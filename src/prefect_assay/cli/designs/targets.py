"""`prefect-assay targets`: searches the service's catalog for what designs can be measured against."""

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.service import describe_service, open_service
from prefect_assay.service.assays import ASSAY_TYPES, BINDING_TYPES
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import Target

_SHOWN: Final = 50
_ID_WIDTH: Final = 36  # an id is copied in one piece


def show_targets(words: Sequence[str], *, account: str | None, as_json: bool) -> None:
    """Print the targets that have every word; exit code 1 without a match.

    Raises:
        ConfigurationError: no service is named.
        SystemExit: with 1, if no target matches.
    """
    with open_service(account) as service:
        targets = search_targets(service, words)
        service_line = describe_service(service, account)
    if as_json:
        print_json({"service": service_line, "targets": [_as_json(target) for target in targets]})
    else:
        make_plain_console().print(f"Catalog of {service_line}")
        _show_targets(targets, words)
    if not targets:
        raise SystemExit(FAILED)


def search_targets(service: AssayClient, words: Sequence[str]) -> list[Target]:
    """The targets with every word, in any case and order, in name, id, catalog number, vendor or UniProt id.

    Where no target has a word as it is written, `pdl1` also means PD-L1. Conjugated forms are found where no other target has the words.
    """
    search_words = " ".join(words).casefold().split()
    if not search_words:
        return list(service.targets.iterate())
    # The service looks for one text, in names and catalog numbers only.
    matches = [
        t for t in service.targets.iterate(search=max(search_words, key=len)) if _has_words(t, search_words)
    ]
    if matches:
        return matches
    for conjugated in (None, True):
        listed = list(service.targets.iterate(show_conjugated=conjugated))
        matches = [t for t in listed if _has_words(t, search_words)] or [
            t for t in listed if _has_words(t, search_words, loose=True)
        ]
        if matches:
            break
    return matches


def _has_words(target: Target, words: Sequence[str], *, loose: bool = False) -> bool:
    """Whether a target has all words; `loose` reads neither hyphens nor other signs within a word."""
    fields = (target.name, target.id, target.catalog_number, target.vendor_name, target.uniprot_id)
    text = " ".join(field for field in fields if field).casefold()
    if not loose:
        return all(word in text for word in words)
    parts = [_keep_letters(part) for part in text.split()]
    return all(any(_keep_letters(word) in part for part in parts) for word in words if _keep_letters(word))


def _keep_letters(text: str) -> str:
    return "".join(sign for sign in text if sign.isalnum())


def price_of(target: Target) -> str:
    """What the antigen adds to the price of a design, for people; without a price it is ordered by quote."""
    pricing: dict[str, Any] = target.pricing or {}
    design_cents, lots = pricing.get("price_per_sequence_cents"), pricing.get("lot_prices")
    if isinstance(design_cents, int):
        return f"{usd(design_cents)} a design"
    if isinstance(lots, list) and lots:
        parts = [f"{usd(lot.get('price_usdcent'))} for {lot.get('num_sequences')}" for lot in lots]
        return "\n".join(parts)
    return "has a price" if pricing else "by quote"


def measured_by() -> dict[str, list[str]]:
    """The assays that take a target, each with its methods; they are the same for every target of the catalog."""
    return {
        str(kind): [str(method) for method in ASSAY_TYPES[kind].methods] for kind in sorted(BINDING_TYPES)
    }


def _as_json(target: Target) -> dict[str, Any]:
    fields = target.model_dump(mode="json", exclude={"details"})
    return {**fields, "self_service": target.pricing is not None, "measured_by": measured_by()}


def _show_targets(targets: Sequence[Target], words: Sequence[str]) -> None:
    console = TerminalConsole(highlight=False)
    if not targets:
        console.print(
            f"No target of the catalog has {' '.join(words)!r}. Try fewer words; without words all are listed."
            if words
            else "The catalog is empty.",
            markup=False,
        )
        console.print("A target of your own: prefect-assay custom-target request --help", markup=False)
        return
    table = plain_table()
    table.add_column("Target", overflow="fold", min_width=_ID_WIDTH)
    table.add_column("Number", overflow="fold")
    table.add_column("Antigen's price", no_wrap=True)
    for target in targets[:_SHOWN]:
        name = Text(target.name or target.id)
        name.append(f"\n{target.id}", style="dim")
        table.add_row(name, Text(target.catalog_number or ""), Text(price_of(target)))
    console.print(table)
    if len(targets) > _SHOWN:
        console.print(f"… and {len(targets) - _SHOWN} more; add a word, or use --json")
    kinds = ", ".join(
        f"{kind} ({' or '.join(methods)})" if methods else kind for kind, methods in measured_by().items()
    )
    console.print(
        f"\nMeasured by {kinds}. The antigen's price is without the assay and VAT; "
        '`prefect-assay estimate FILE --target "…"` has the whole.',
        markup=False,
    )
