"""Runs of a deployment that nobody serves, executed in the test's own process: each step when the test says so.

A run suspends, is answered, canceled and executed again as on a worker, without a worker's seconds. Its order names
no webhook: the receiver may wake a run as soon as it is suspended, by the updates of the order's own creation. That is
right, and tested elsewhere; here the test alone says when a run goes on.
"""

import threading
from contextlib import suppress
from contextvars import copy_context
from typing import Any
from uuid import uuid4

from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import Abort, Pause
from prefect.flow_engine import run_flow
from prefect.flows import Flow

from prefect_assay.flows import campaign
from support.runs.world import EGFR, World, start_run

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
_PROCESSES_MAX = 5
FLOWS: dict[str, Flow[..., Any]] = {"campaign": campaign}


class Held:
    """The test decides when a run goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = f"held-{uuid4().hex[:8]}"
        for flow in FLOWS:
            served = world.api.read_deployment_by_name(f"{flow}/assay-{flow}")
            world.api.create_deployment(
                flow_id=served.flow_id,
                name=self.name,
                entrypoint=served.entrypoint,
                path=served.path,
                parameter_openapi_schema=served.parameter_openapi_schema,
            )

    def experiment(self, campaign_id: str, *, target: str = EGFR, **changes: Any) -> FlowRun:
        """A run of a campaign of one design, paid by x402-exact."""
        mine = {
            "designs": f">design\n{DESIGN}\n",
            "assay": {"experiment_type": "affinity", "method": "bli", "target": target},
            "campaign_id": campaign_id,
            "webhook": None,
        }
        return self.start("campaign", **self.world.shared() | mine | changes)

    def start(self, flow: str, **parameters: Any) -> FlowRun:
        """A new run, not executed yet."""
        return start_run(self.world.api, f"{flow}/{self.name}", parameters)

    def execute(self, run: FlowRun, flow: str = "campaign") -> State[Any]:
        """As a runner does: one process's worth, and another one while the run has woken itself meanwhile."""
        for _ in range(_PROCESSES_MAX):
            self._once(run, flow)
            state = self.state(run)
            if state.name != "Resuming":
                return state
        raise AssertionError(f"{run.name} was woken {_PROCESSES_MAX} times and never rested")

    def wake(self, run: FlowRun, flow: str = "campaign") -> State[Any]:
        """Resume it, and execute it."""
        self.world.api.resume_flow_run(run.id)
        return self.execute(run, flow)

    def _once(self, run: FlowRun, flow: str) -> None:
        """In a thread of its own, because Prefect keeps a run's context there."""

        def go() -> None:
            with suppress(Exception, Abort, Pause):
                run_flow(FLOWS[flow], flow_run=self.world.run(run))

        thread = threading.Thread(target=copy_context().run, args=(go,))
        thread.start()
        thread.join()

    def state(self, run: FlowRun) -> State[Any]:
        """The run's state now."""
        return self.world.run(run).state

    def form(self, run: FlowRun) -> tuple[str, dict[str, Any]]:
        """What the form of a suspended run says, and its schema."""
        import json

        keys = self.state(run).state_details.run_input_keyset
        description = json.loads(self.world.api.read_flow_run_input(run.id, keys["description"]))
        return description, json.loads(self.world.api.read_flow_run_input(run.id, keys["schema"]))

    def answer(self, run: FlowRun, **values: Any) -> str:
        """Fill in the form, as the UI does, and execute the run again when it was accepted."""
        status = self.world.api.resume_flow_run(run.id, run_input=values).status.value
        if status == "ACCEPT":
            self.execute(run)
        return status

    def cancel(self, run: FlowRun) -> State[Any]:
        """As the UI, the command line and the API do."""
        self.world.api.set_flow_run_state(run.id, State(type=StateType.CANCELLING))
        return self.state(run)
