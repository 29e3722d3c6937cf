"""Each way in which Prefect copies or loads a flow gives one that keeps the promises of `DurableFlow`."""

import copy
import inspect
from pathlib import Path

import cloudpickle
import prefect
import pytest
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import PREFECT_FLOWS_DEFAULT_RETRIES, temporary_settings

from prefect_assay.errors import ConfigurationError
from prefect_assay.flows import campaign, design_build_test, experiment
from prefect_assay.runs.durable import DurableFlow, durable_flow

FLOWS = [experiment, campaign, design_build_test]
SOURCE = """
from prefect_assay.runs.durable import DurableFlow, durable_flow
from prefect_assay.flows import campaign

slow = campaign.with_options(timeout_seconds=60)

@durable_flow(name="own")
def own(count: int = 1) -> int:
    return count
"""


def keeps_its_promises(flow, known):
    """It names a stored parameter of a newer version, pins its retries, and can be started."""
    assert isinstance(flow, DurableFlow)
    assert callable(flow.start)
    assert flow.validate_parameters(known).keys() == known.keys()
    with pytest.raises(ConfigurationError, match="does not know of_a_newer_version"):
        flow.validate_parameters({**known, "of_a_newer_version": 1})
    assert flow.retries == 0


@durable_flow(name="counted")
def counted(count: int = 1) -> int:
    return count


class Subclass(DurableFlow):
    """A user's own."""


class Holder:
    @durable_flow(name="method")
    def method(self, count: int = 1) -> int:
        return count


def from_source(tmp_path):
    (tmp_path / "own_flows.py").write_text(SOURCE)
    return prefect.flow.from_source(source=str(tmp_path), entrypoint="own_flows.py:own")


def deployed(_):
    entrypoint = counted.to_deployment("copied").entrypoint
    path, _, name = entrypoint.rpartition(":")
    return load_flow_from_entrypoint(f"{Path(__file__).parent / Path(path).name}:{name}")


WAYS = {
    "with_options": lambda _: counted.with_options(name="renamed"),
    "with_options twice": lambda _: counted.with_options(name="a").with_options(name="b", timeout_seconds=3),
    "copy": lambda _: copy.copy(counted),
    "cloudpickle": lambda _: cloudpickle.loads(cloudpickle.dumps(counted)),
    "subclass": lambda _: Subclass(counted.fn).with_options(name="again"),
    "from_source": from_source,
    "to_deployment": deployed,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_flow_keeps_its_promises(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with temporary_settings({PREFECT_FLOWS_DEFAULT_RETRIES: 3}):  # a site's, for all its flows
        keeps_its_promises(WAYS[way](tmp_path), {"count": 2})


def test_a_bound_method_keeps_its_promises():
    bound = Holder().method
    assert isinstance(bound, DurableFlow)
    assert callable(bound.start)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_options_change_what_they_name_and_nothing_else(flow):
    changed = flow.with_options(name="renamed", timeout_seconds=60)
    assert type(changed) is type(flow)
    assert (changed.name, changed.timeout_seconds) == ("renamed", 60)
    assert flow.name != "renamed"
    assert changed.fn is flow.fn
    assert changed.on_crashed_hooks == flow.on_crashed_hooks
    assert inspect.signature(changed) == inspect.signature(flow)


def test_a_subclass_stays_one():
    assert type(Subclass(counted.fn).with_options(name="x")) is Subclass
