"""Asks the lab what schemathesis can think of, and holds it to its description.

schemathesis is imported here and only when a test runs: importing it and laying out its cases takes longer than
collecting all other tests, and every test process would pay for it.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, openapi
from schemathesis.config import FuzzConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, FuzzScenarioFinished, NonFatalError
from schemathesis.generation.drivers import CoverageGenerator
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.generation.overrides import Override
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.python.asgi import get_client
from schemathesis.specs.openapi.checks import ignored_auth

import requests
from assay_lab.api import load_document
from lab_support.schema_cases import made_real
from lab_support.states import Inhabited


class Probe:
    """A lab behind its own description, the partner-only part included.

    Args:
        lab: what is in it.
        app: the ASGI application of a lab in this process.
        base_url: the address of a lab elsewhere.
        token: may do everything.
        fresh_token: makes a token for a call that revokes the one it is made with.
    """

    def __init__(
        self,
        lab: Inhabited,
        *,
        app: Any = None,
        base_url: str | None = None,
        token: str,
        fresh_token: Callable[[], str],
    ) -> None:
        self._lab, self._token, self._fresh_token = lab, token, fresh_token
        self._schema = openapi.from_dict(load_document(partner=True))
        # Unknown query parameters are ignored, and the description says so: they make no request invalid.
        self._schema.config.generation.update(allow_extra_parameters=False)
        self._schema.app = app
        if base_url is not None:
            self._schema.config.update(base_url=base_url)
        self._session = requests.Session() if app is None else get_client(app)
        self._session.trust_env = False
        self._enforced: set[str] = set()

    def close(self) -> None:
        self._session.close()

    def systematic(self, operation_id: str, *, whole: int, every: int = 1) -> int:
        """Boundary values, missing and additional parts, wrong types, unknown methods; how many were asked.

        Args:
            operation_id: the call.
            whole: so many cases are taken one by one.
            every: of the others, each so manieth: lists have hundreds.
        """
        cases = CoverageGenerator(
            operation=self._schema.find_operation_by_id(operation_id),
            generation_modes=list(GenerationMode),
            generation_config=self._schema.config.generation,
            auth_storage=None,
            override=Override(),
            feedback=NO_FEEDBACK,
        )
        number = 0
        for case in _thinned(cases, whole, every):
            self.check(case)
            number += 1
        return number

    def random(self, operation_id: str, how: settings) -> None:
        """Valid and invalid requests."""
        operation = self._schema.find_operation_by_id(operation_id)
        cases = st.one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode])

        @how
        @given(case=cases)
        def ask(case: Any) -> None:
            self.check(case)

        ask()

    def walk(self, base_url: str, seconds: float) -> list[str]:
        """From call to call along the links of the description; everything that was found."""
        # Revoking ends the one token that the walk has; `check` asks it with others.
        schema = self._schema.exclude(path_regex="/tokens/revoke$")
        schema.config.update(base_url=base_url, headers={"Authorization": f"Bearer {self._token}"})
        # `check` proves it of each call; the requests it makes in between confuse the engine's own records.
        schema.config.checks.ignored_auth.enabled = False
        excused: dict[str, bool] = {}

        @schema.hook
        def map_case(_: Any, case: Any) -> Any:
            # Ids stay as the links have filled them in.
            excused[case.id] = bool(made_real(case, {}, self._lab.codes))
            return case

        @schema.hook
        def filter_failure(_: Any, failure: Any, case: Any, __: Any) -> bool:
            return not (isinstance(failure, RejectedPositiveData) and excused.get(case.id))

        failures: list[str] = []
        for event in from_schema(schema).fuzz(FuzzConfig(max_time=max(1, int(seconds)))):
            if isinstance(event, NonFatalError | FatalError):
                failures.append(str(event.info if isinstance(event, NonFatalError) else event.exception))
            if isinstance(event, FuzzScenarioFinished):
                failures += _failures(event.recorder)
        return failures

    def check(self, case: Any) -> None:
        """Send one request, and judge the answer."""
        label = case.operation.label
        excused = made_real(case, self._lab.ids, self._lab.codes)
        if label in self._enforced:
            excused.append(
                ignored_auth
            )  # one proof per call that the token matters; each is two more requests
        answer = case.call_and_validate(
            session=self._session, headers=self._headers(case), excluded_checks=excused
        )
        if answer.status_code < 300:
            self._enforced.add(label)

    def _headers(self, case: Any) -> dict[str, str]:
        revokes = case.operation.path.endswith("/tokens/revoke")
        return {"Authorization": f"Bearer {self._fresh_token() if revokes else self._token}"}


def _thinned(cases: Any, whole: int, every: int) -> Iterator[Any]:
    source = iter(cases)
    yield from islice(source, whole)
    yield from islice(source, 0, None, every)


def _failures(recorder: Any) -> list[str]:
    return [
        f"{recorder.cases[case_id].value.operation.label}: {check.failure_info.failure}\n"
        f"{check.failure_info.code_sample}"
        for case_id, checks in recorder.checks.items()
        for check in checks
        if check.failure_info
    ]
