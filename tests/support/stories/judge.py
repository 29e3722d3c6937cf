"""What became of a story, by the records of others: the lab's, and the archive's. Never by a run's own word."""

from collections import Counter
from collections.abc import Iterator

from prefect_assay.archive import verify_versions
from prefect_assay.archive.read import read_latest
from support.crash.story import contradictions
from support.stories.world import Story


def judge(story: Story, *, measured: int | None = None) -> list[str]:
    """Everything that is wrong; empty if the campaign was ordered and paid once, and archived.

    Args:
        story: at its end.
        measured: how many experiments are to be measured, paid and archived; all of them by default.
    """
    expected = story.experiments if measured is None else measured
    return [
        *([] if story.all_traps_sprung() else ["a trap was never reached"]),
        *_judge_orders(story, complete=measured is None),
        *_judge_money(story, expected),
        *_judge_ledgers(story),
        *_judge_archive(story, expected),
    ]


def _judge_orders(story: Story, *, complete: bool) -> Iterator[str]:
    """Each design is in one order, and no other protein is in any."""
    ordered: Counter[str] = Counter()
    for order in story.orders():
        spec = story.get(f"/experiments/{order['id']}")["experiment_spec"]
        ordered.update(sequence["aa_string"] for sequence in spec["sequences"].values())
    planned = set(story.designs.values())
    yield from (f"an order holds {residues}, which is not planned" for residues in ordered.keys() - planned)
    yield from (f"{count} orders hold {residues}" for residues, count in ordered.items() if count > 1)
    if complete:
        yield from (f"{residues} is not ordered" for residues in planned - ordered.keys())
    confirmed = Counter(
        entry["path"]
        for entry in story.requests("POST", "/experiments/*/quote/confirm")
        if entry["status"] < 300
    )
    yield from (f"{count} times accepted: {path}" for path, count in confirmed.items() if count > 1)


def _judge_money(story: Story, expected: int) -> Iterator[str]:
    """Each invoice is paid once, by its amount and by the rail of the campaign."""
    paid = Counter(row["experiment_id"] for row in story.settlements())
    yield from (f"{count} payments for {experiment}" for experiment, count in paid.items() if count > 1)
    if len(paid) != expected:
        yield f"{len(paid)} experiments are paid, and {expected} were to be"
    for row in story.settlements():
        amount = story.get(f"/invoices/{row['invoice_id']}")["amount"]
        if row["amount_cents"] != amount:
            yield f"{row['amount_cents']} cents were paid for an invoice of {amount}"
        if story.rail != "async_invoice" and row["payment_method"] != story.rail:
            yield f"paid by {row['payment_method']}"


def _judge_ledgers(story: Story) -> Iterator[str]:
    """The ledgers of the orders, by themselves and next to the lab's records."""
    paid = [row["experiment_id"] for row in story.settlements()]
    known = set()
    for ledger in story.ledgers():
        state = ledger.read()
        order = state.ordered.experiment_id if state.ordered else None
        known |= {order, *state.surplus}
        mine = [experiment for experiment in paid if experiment == order]
        for wrong in contradictions(ledger, mine, by_machine=story.rail != "async_invoice"):
            yield f"the ledger {ledger.location}: {wrong}"
    yield from (
        f"no ledger knows the experiment {order['code']}"
        for order in story.orders()
        if order["id"] not in known
    )


def _judge_archive(story: Story, expected: int) -> Iterator[str]:
    """The results of every experiment that is done are archived, and the archive is clean."""
    done = [order for order in story.orders() if order["status"] == "done"]
    if len(done) != expected:
        yield f"{len(done)} experiments are done, and {expected} were to be"
    for order in done:
        version = read_latest(story.store, story.archive.prefix, order["name"].split()[0], order["code"])
        if version is None:
            yield f"the results of {order['code']} are not archived"
            continue
        if version.manifest.results_status != "all":
            yield f"the last version of {order['code']} has {version.manifest.results_status} results"
    for finding in verify_versions(story.store, story.archive.prefix).findings:
        if finding.kind == "incomplete" and story.state.stopped:
            continue  # the process of a canceled run is ended wherever it is, and no run follows it
        yield f"archive: {finding.kind} {finding.key}: {finding.detail}"
