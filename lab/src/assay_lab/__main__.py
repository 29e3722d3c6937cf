"""`assay-lab`: start the local lab and print one JSON line with its address and tokens."""

import argparse
import os
import secrets
from pathlib import Path
from typing import Any

from assay_lab.errors import ConfigurationError
from assay_lab.kernel import times
from assay_lab.kernel.settings import LabSettings, read_clock
from assay_lab.web.server import run_server
from assay_lab.words import WireWords

# Secrets come from the environment rather than from the command line, which other users can see.
TOKEN_VARIABLE = "ASSAY_LAB_TOKEN"  # noqa: S105 - a variable's name
PARTNER_TOKEN_VARIABLE = "ASSAY_LAB_PARTNER_TOKEN"  # noqa: S105 - a variable's name
VIEWER_TOKEN_VARIABLE = "ASSAY_LAB_VIEWER_TOKEN"  # noqa: S105 - a variable's name
SIM_TOKEN_VARIABLE = "ASSAY_LAB_SIM_TOKEN"  # noqa: S105 - a variable's name


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="assay-lab", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--base-url", help="address for links, where it differs from host and port")
    parser.add_argument("--database", type=Path, help="SQLite file; without it a temporary one")
    parser.add_argument(
        "--clock", default="manual", help="at the first start: manual, auto or scaled:SECONDS_PER_DAY"
    )
    parser.add_argument("--epoch", help="lab time at the first start, ISO 8601; without it the real time")
    parser.add_argument(
        "--seed", default="lab", help="decides every experiment's lab window, and a landscape's noise"
    )
    parser.add_argument("--landscape", help="measure from this table, or from gb1, which is bundled")
    parser.add_argument(
        "--landscape-missing",
        choices=("unknown", "none", "model"),
        default="unknown",
        help="what becomes of a design that the landscape does not have",
    )
    parser.add_argument("--landscape-kd-noise", type=float, default=0.1, help="decades of K_D, per replicate")
    parser.add_argument(
        "--landscape-tm-noise", type=float, default=0.35, help="degrees Celsius, per replicate"
    )
    parser.add_argument(
        "--allow-http-webhooks", action="store_true", help="webhooks to private and loopback hosts, by http"
    )
    parser.add_argument("--real-time-retries", action="store_true", help="webhook back-off in real seconds")
    parser.add_argument("--webhook-timeout", type=float, default=5.0, help="seconds a receiver may take")
    parser.add_argument("--provider-word", default="provider")
    parser.add_argument("--service-word", default="Service")
    parser.add_argument("--allow-host", action="append", default=[], help="a further host name of the lab")
    parser.add_argument("--deployment-secret", help="signs webhooks that have no secret of their own")
    parser.add_argument("--until-input-ends", action="store_true", help="stop when standard input closes")
    return parser


def _read_settings(options: argparse.Namespace) -> LabSettings:
    try:
        mode, seconds_per_day = read_clock(options.clock)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    settings: dict[str, Any] = {
        "database": options.database,
        "words": WireWords(provider=options.provider_word, service=options.service_word),
        "clock_mode": mode,
        "seconds_per_day": seconds_per_day,
        "seed": options.seed,
        "epoch": times.parse(options.epoch) if options.epoch else None,
        "landscape": options.landscape,
        "landscape_missing": options.landscape_missing,
        "landscape_kd_noise": options.landscape_kd_noise,
        "landscape_tm_noise": options.landscape_tm_noise,
        "allow_http_webhooks": options.allow_http_webhooks,
        "retry_on_real_clock": options.real_time_retries,
        "webhook_timeout_seconds": options.webhook_timeout,
        "allowed_hosts": tuple(options.allow_host),
        "member_token": os.environ.get(TOKEN_VARIABLE),
        "viewer_token": os.environ.get(VIEWER_TOKEN_VARIABLE),
        "partner_token": os.environ.get(PARTNER_TOKEN_VARIABLE),
        "sim_token": os.environ.get(SIM_TOKEN_VARIABLE) or secrets.token_urlsafe(24),
    }
    if options.deployment_secret:
        settings["deployment_secret"] = options.deployment_secret
    return LabSettings(**settings)


def main() -> None:
    """Entry point."""
    options = _make_parser().parse_args()
    try:
        run_server(
            _read_settings(options),
            host=options.host,
            port=options.port,
            public_url=options.base_url,
            until_input_ends=options.until_input_ends,
        )
    except ConfigurationError as error:
        raise SystemExit(f"the local lab did not start: {error}") from error


if __name__ == "__main__":
    main()
