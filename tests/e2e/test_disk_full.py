"""The disk under the archive is full while an order is made, and when its results are due: all goes on with space, once."""

from datetime import timedelta

import pytest

from prefect_assay.archive import verify_versions
from prefect_assay.blocks import LocalArchive
from prefect_assay.orders import create
from support.disk import fill, small_disk
from support.runs.sweeps import swept

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(500)]


def test_an_order_and_its_results_wait_for_space(world, held, tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk", "4m") as folder:
        archive = LocalArchive(root=str(folder))
        archive.save("full", overwrite=True)
        filler = tmp_path / "disk" / "filler"
        order_named = create._Ordering.order_named

        def full_meanwhile(*arguments, **more):
            """Between the record of the sending and that of the order."""
            fill(tmp_path / "disk")
            return order_named(*arguments, **more)

        monkeypatch.setattr(create._Ordering, "order_named", full_meanwhile)
        run = held.experiment("full", archive=archive)
        state = held.execute(run)
        assert state.name == "Suspended", state.message
        assert len(world.orders("full")) == 1
        monkeypatch.undo()
        filler.unlink()
        assert str(run.id) in swept(timedelta(minutes=6), 60).woken
        assert held.execute(run).name == "Suspended"

        fill(tmp_path / "disk")
        world.advance(days=16)
        for later in (7, 13, 18):  # the full check, then the pauses of 5 and 10 minutes
            assert str(run.id) in swept(timedelta(minutes=later), 60).woken
            assert "no space left; free some" in held.execute(run).message
        problems = swept(timedelta(minutes=19), 60).attention
        assert any(world.run(run).name in line and "no space left" in line for line in problems), problems
        filler.unlink()
        assert str(run.id) in swept(timedelta(hours=2), 60).woken
        assert held.execute(run).is_completed(), held.state(run).message
        archived = verify_versions(archive.get_store(), "full")
        assert (archived.versions, archived.findings) == (1, ())
        assert len(world.orders("full")) == len(world.settlements("full")) == 1
