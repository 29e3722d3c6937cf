"""The examples of docs/reference.md on jobs, run against a real server, lab and worker: one job in a sync flow, several in an async one."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path

import pytest

from prefect_assay.campaigns.runs.queries import run_filter
from prefect_assay.flows import sweep
from support.runs.world import EGFR, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(500)]

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## Jobs\n") : PAGE.index("\n## Client\n")]
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
OTHER = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
THIRD = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQ"


@pytest.fixture
def examples(world, tmp_path, monkeypatch):
    """The names that the page's examples define, with the blocks that they load saved under these names."""
    monkeypatch.chdir(tmp_path)
    Path("designs.fasta").write_text(f">binder\n{BINDER}\n>other\n{OTHER}\n")
    world.save_documented_blocks()
    found = {}
    assert EGFR in SECTION
    for code in re.findall(r"```python\n(.*?)```", SECTION, flags=re.DOTALL):
        exec(compile(code, "docs/reference.md", "exec"), found)
    return found


def paid_and_measured(world, campaign_ids):
    """Lab days pass, a person pays the invoices of these orders, and the sweep runs, until the jobs have ended.

    The examples name no webhook.
    """

    def ended():
        for campaign_id in campaign_ids:
            world.pay_invoices(campaign_id)
        world.advance(days=2)
        sweep(full_check_minutes=0)
        runs = jobs(world, campaign_ids)
        return len(runs) == len(campaign_ids) and all(run.state.name == "Completed" for run in runs)

    eventually(ended, seconds=400, what=f"the jobs {campaign_ids}")


@contextmanager
def meanwhile(work, *args):
    """Do this in another thread, with the settings of the test; its errors are the test's."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(copy_context().run, work, *args)
        yield
        done.result()


def jobs(world, campaign_ids):
    """The runs of these orders."""
    runs = world.api.read_flow_runs(flow_run_filter=run_filter(any_tags=["assay"]), limit=50)
    return [run for run in runs if run.parameters.get("campaign_id") in campaign_ids]


def test_the_examples_of_the_page_order_once_and_give_tables(world, examples):
    with meanwhile(paid_and_measured, world, ["binders-1"]):
        names = examples["measure"]()
    assert "binder" in names
    assert examples["measure"]() == names
    assert len(world.orders("binders-1")) == 1

    with meanwhile(paid_and_measured, world, ["melting-0", "melting-1"]):
        first, second = asyncio.run(examples["compare"]([f">third\n{THIRD}", f">binder\n{BINDER}"]))
    assert (set(first), set(second)) == ({"third"}, {"binder"})
    assert all(len(world.orders(campaign_id)) == 1 for campaign_id in ("melting-0", "melting-1"))
