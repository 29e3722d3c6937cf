"""The checks of `x402-conformance` of a 402 answer, on an invoice of the lab (`make conformance`)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from assay_lab.testing import LocalLab
from support.conformance.token_proxy import token_proxy
from support.lab.orders import booked, open_invoice

ENVIRONMENT = os.environ.get("ASSAY_CONFORMANCE_ENV", "")
CHECKS = ["P1", "P2", "P3", "P4", "P5", "P6", "P7"]

pytestmark = pytest.mark.conformance


def test_the_lab_asks_for_payment_as_x402_describes():
    program = Path(ENVIRONMENT) / "bin" / "x402conf"
    if not program.is_file():
        pytest.skip("make conformance installs x402-conformance, which is not here")
    # The suite sends one GET without a token; the service wants a POST with one.
    with LocalLab() as lab, token_proxy(lab.base_url, lab.token, method="POST") as address:
        invoice = open_invoice(lab, "x402-exact")
        url = f"{address}/api/v1/invoices/{invoice}/pay"
        done = subprocess.run(
            [program, "resource", url, "--fail-on-error"],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert booked(lab, invoice) == []
    assert done.returncode == 0, done.stdout + done.stderr
    report, _ = json.JSONDecoder().raw_decode(done.stdout)
    checks = [check for result in report["results"] for check in result["checks"]]
    assert sorted(check["check"].split()[0] for check in checks) == CHECKS
    assert [check["check"] for check in checks if not check["pass"]] == []
