"""Which processes wait for their turn at the service; the rate itself is in tests/e2e/test_request_rate.py."""

import pytest

from prefect_assay.blocks import request_rate


@pytest.fixture(autouse=True)
def _limited(monkeypatch):
    monkeypatch.setattr(request_rate, "_has_rate_limit", lambda _: True)


def test_a_process_that_looks_before_its_flow_starts_waits_for_its_turn(monkeypatch):
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "6f0c1c4e-8d2f-4d5e-9c5e-0f4b1f3f0f11")
    assert request_rate.get_request_limiter() is request_rate._wait_for_slot


def test_outside_of_runs_nobody_waits(monkeypatch):
    monkeypatch.delenv("PREFECT__FLOW_RUN_ID", raising=False)
    assert request_rate.get_request_limiter() is None
