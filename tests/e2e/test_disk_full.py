"""A full disk under the archive: nothing is ordered twice, and all goes on with space."""

from datetime import timedelta

import pytest

from prefect_assay.archive import verify_versions
from prefect_assay.blocks import LocalArchive
from support.disk import fill, small_disk
from support.runs.sweeps import swept

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(500)]


@pytest.fixture
def archive(world, tmp_path, request):
    with small_disk(tmp_path / "disk", "4m") as folder:
        made = LocalArchive(root=str(folder))
        made.save(f"full-{tmp_path.name[:20].replace('_', '-')}", overwrite=True)
        yield made


def test_a_run_whose_archive_is_full_orders_nothing(world, held, archive, tmp_path):
    fill(tmp_path / "disk")
    run = held.experiment("full-before", archive=archive)
    state = held.execute(run)
    assert state.is_failed()
    assert "space" in state.message
    assert world.orders("full-before") == []


def test_an_order_that_could_not_be_recorded_is_found_when_there_is_space(
    world, held, archive, tmp_path, monkeypatch
):
    """The disk is full between the record of the sending and that of the order."""
    from prefect_assay.orders import create

    order_named = create._Ordering.order_named

    def full_meanwhile(*arguments, **more):
        fill(tmp_path / "disk")
        return order_named(*arguments, **more)

    monkeypatch.setattr(create._Ordering, "order_named", full_meanwhile)
    run = held.experiment("full-ordered", archive=archive)
    state = held.execute(run)
    assert state.name == "Suspended", state.message
    assert len(world.orders("full-ordered")) == 1
    monkeypatch.undo()
    (tmp_path / "disk" / "filler").unlink()
    assert str(run.id) in swept(timedelta(minutes=6), 60).woken
    assert held.execute(run).name == "Suspended"
    world.advance(days=16)
    assert held.wake(run).is_completed(), held.state(run).message
    assert len(world.orders("full-ordered")) == len(world.settlements("full-ordered")) == 1


def test_results_wait_for_space_and_are_archived_once(world, held, archive, tmp_path):
    run = held.experiment("full-results", archive=archive)
    assert held.execute(run).name == "Suspended"
    fill(tmp_path / "disk")
    world.advance(days=16)
    for later in (0, 6, 11):  # the full check, then the pauses of 5 and 10 minutes
        assert str(run.id) in swept(timedelta(minutes=later), 60).woken
        state = held.execute(run)
        assert state.name == "Suspended"
        assert "no space left; free some" in state.message
    named = swept(timedelta(minutes=12), 60).attention
    assert any(world.run(run).name in line and "no space left" in line for line in named), named
    (tmp_path / "disk" / "filler").unlink()
    assert str(run.id) in swept(timedelta(hours=1), 60).woken
    assert held.execute(run).is_completed(), held.state(run).message
    archived = verify_versions(archive.get_store(), "full-results")
    assert (archived.versions, archived.findings) == (1, ())
    assert len(world.orders("full-results")) == len(world.settlements("full-results")) == 1
