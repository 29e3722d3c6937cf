"""Blocks that are edited while a run waits: it orders and pays nothing in a second place, and says which block it needs.

The books of both laboratories, and of both organisations of the first one, are the judge.
"""

from datetime import datetime, timedelta

import pytest

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy, X402Wallet
from prefect_assay.client import AssayClient
from prefect_assay.lab.testing import LocalLab
from prefect_assay.models.tokens import Attenuation
from support.runs.sweeps import swept
from support.runs.world import UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

_SECOND_KEY = (
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # Anvil's second: worthless, too
)
_CAPS = {
    "accept_quotes": True,
    "per_experiment_cents": 2_000_000,
    "per_campaign_cents": 5_000_000,
    "machine_payments": True,
    "rolling_cents": 50_000_000,
}


@pytest.fixture(scope="module")
def elsewhere():
    """Another laboratory, with the same catalog."""
    with LocalLab() as lab:
        yield lab


@pytest.fixture(scope="module")
def second(world):
    """Another organisation of the same laboratory."""
    return world.stack.lab.seed("second")


@pytest.fixture
def edits(world, elsewhere, second):
    lab = world.stack.lab
    wallet = world.wallet.model_dump(include={"networks", "assets", "pay_to"})
    return {
        "another laboratory": (
            "credentials",
            AssayCredentials(base_url=elsewhere.base_url, token=elsewhere.token),
        ),
        "another organisation": ("credentials", AssayCredentials(base_url=lab.base_url, token=second.token)),
        "a token that may only read": (
            "credentials",
            AssayCredentials(base_url=lab.base_url, token=lab.viewer_token),
        ),
        "a revoked token": (
            "credentials",
            AssayCredentials(base_url=lab.base_url, token="assay_lab" + "x" * 30),
        ),
        "an address that is no service": (
            "credentials",
            AssayCredentials(base_url=world.stack.ui_url, token=lab.token),
        ),
        "another address of the service": (
            "credentials",
            AssayCredentials(base_url=lab.base_url.replace("127.0.0.1", "localhost"), token=lab.token),
        ),
        "another folder": ("archive", LocalArchive(root=str(world.folder / "another-archive"))),
        "another prefix": ("archive", LocalArchive(root=world.archive.root, prefix="elsewhere")),
        "another key": ("wallet", X402Wallet(private_key=_SECOND_KEY, **wallet)),
        "no machine payments": ("policy", SpendingPolicy(**_CAPS | {"machine_payments": False})),
        "lower caps": (
            "policy",
            SpendingPolicy(
                **_CAPS | {"per_experiment_cents": 1, "per_campaign_cents": 1, "rolling_cents": 1}
            ),
        ),
    }


class Story:
    """A run with blocks of its own, which waits for results or asks a person."""

    def __init__(self, world, held, elsewhere, second, name, **policy):
        self.world, self.held, self.name = world, held, name
        self.others = [(elsewhere.base_url, elsewhere.token), (world.stack.lab.base_url, second.token)]
        self.blocks = {
            "credentials": world.credentials.model_copy(),
            "policy": SpendingPolicy(**_CAPS | policy),
            "archive": world.archive.model_copy(),
            "wallet": world.wallet.model_copy(),
        }
        for parameter in self.blocks:
            self.save(parameter)

    def begin(self, **changes):
        self.run = self.held.experiment(self.name, **self.blocks | changes)
        return self.held.execute(self.run)

    def save(self, parameter, block=None):
        (block or self.blocks[parameter]).save(f"{self.name}-{parameter}", overwrite=True)

    def wake(self):
        return self.held.wake(self.run)

    def books(self):
        """Orders and payments here; elsewhere there is neither."""
        for address, token in self.others:
            with AssayClient(address, token) as other:
                assert list(other.iter_experiments(search=self.name)) == []
        return len(self.world.orders(self.name)), len(self.world.settlements(self.name))


@pytest.fixture
def story(world, held, elsewhere, second):
    return lambda name, **policy: Story(world, held, elsewhere, second, name, **policy)


WAITS = ["another laboratory", "another organisation", "a revoked token", "another folder", "another prefix"]


@pytest.mark.parametrize("edit", WAITS)
def test_a_run_that_has_paid_waits_for_the_block_and_goes_on_when_it_is_saved_again(
    world, story, edits, edit
):
    mine = story(f"paid-{edit.replace(' ', '-')}")
    assert mine.begin().name == "Suspended"
    assert mine.books() == (1, 1)
    parameter, block = edits[edit]
    mine.save(parameter, block)
    world.advance(days=16)
    state = mine.wake()
    assert state.name == "Suspended", state.message
    named = f"{block.get_block_type_slug()}/{mine.name}-{parameter}"
    (artifact,) = world.artifacts(mine.run, f"assay-block-{parameter}")
    assert named in artifact.data
    report = swept(minutes=60)
    assert any(named in line for line in report.attention), report.attention
    assert str(mine.run.id) not in report.woken
    assert mine.books() == (1, 1)

    mine.save(parameter)
    assert str(mine.run.id) in swept(minutes=60).woken
    assert mine.held.execute(mine.run).is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


@pytest.mark.parametrize(
    "edit",
    [
        "a token that may only read",
        "another address of the service",
        "another key",
        "no machine payments",
        "lower caps",
    ],
)
def test_a_run_that_has_paid_does_not_need_more(world, story, edits, edit):
    mine = story(f"read-{edit.replace(' ', '-')}")
    assert mine.begin().name == "Suspended"
    mine.save(*edits[edit])
    world.advance(days=16)
    assert mine.wake().is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


def test_an_archive_that_was_moved_as_a_whole_is_the_same(world, story):
    mine = story("moved")
    mine.blocks["archive"] = LocalArchive(root=str(world.folder / "before-the-move"))
    mine.save("archive")
    assert mine.begin().name == "Suspended"
    (world.folder / "before-the-move").rename(world.folder / "after-the-move")
    mine.save("archive", LocalArchive(root=str(world.folder / "after-the-move")))
    world.advance(days=16)
    assert mine.wake().is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


def test_an_address_that_is_no_service_is_tried_again(world, story, edits):
    mine = story("no-service")
    assert mine.begin().name == "Suspended"
    mine.save(*edits["an address that is no service"])
    world.advance(days=16)
    state = mine.wake()
    assert state.name == "Suspended", state.message
    assert world.artifacts(mine.run, "assay-block-") == []
    mine.save("credentials")
    assert str(mine.run.id) in swept(timedelta(hours=1), 60).woken
    assert mine.held.execute(mine.run).is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


def test_a_token_expires_and_another_one_of_the_organisation_takes_its_place(world, story):
    lab = world.stack.lab
    mine = story("rotated")
    soon = datetime.fromisoformat(lab.clock()["now"]) + timedelta(days=2)
    made = world.service.attenuate_token(lab.token, Attenuation(expires_at=soon), "rotated")
    mine.save("credentials", AssayCredentials(base_url=lab.base_url, token=made.token))
    assert mine.begin().name == "Suspended"
    assert mine.books() == (1, 1)
    world.advance(days=16)
    assert mine.wake().name == "Suspended"
    assert len(world.artifacts(mine.run, "assay-block-credentials")) == 1
    mine.save("credentials")
    assert str(mine.run.id) in swept(minutes=60).woken
    assert mine.held.execute(mine.run).is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


@pytest.mark.parametrize("edit", [*WAITS, "a token that may only read"])
def test_an_approved_quote_is_accepted_where_it_was_given_or_nowhere(world, story, edits, edit):
    """Its experiment exists, and the person's answer comes after the edit."""
    mine = story(f"quote-{edit.replace(' ', '-')}", accept_quotes=False)
    mine.begin(target=UNPRICED)
    world.advance(days=3)
    mine.wake()
    assert mine.books() == (1, 0)
    parameter, block = edits[edit]
    mine.save(parameter, block)
    assert mine.held.answer(mine.run, decision="approve") == "ACCEPT"
    state = mine.held.state(mine.run)
    assert state.name == "Suspended", state.message
    assert mine.books() == (1, 0)
    mine.save(parameter)
    assert str(mine.run.id) in swept(minutes=60).woken
    mine.held.execute(mine.run)
    world.advance(days=30)
    assert mine.wake().is_completed(), mine.held.state(mine.run).message
    assert mine.books() == (1, 1)


@pytest.mark.parametrize("edit", ["another key", "no machine payments", "lower caps", "another folder"])
def test_an_approved_payment_is_made_once_with_the_blocks_of_then(world, story, edits, edit):
    """The order is placed; its payment was asked for, because of the cap of all payments."""
    mine = story(f"pay-{edit.replace(' ', '-')}", rolling_cents=1)
    mine.begin()
    assert mine.books() == (1, 0)
    parameter, block = edits[edit]
    mine.save(parameter, block)
    assert mine.held.answer(mine.run, decision="approve") == "ACCEPT"
    paid = 1 if edit == "another key" else 0
    assert mine.books() == (1, paid), mine.held.state(mine.run).message
    mine.save(parameter)
    assert mine.books() == (1, paid)
