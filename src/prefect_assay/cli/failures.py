"""Errors of commands: a message on stderr or JSON on stdout, and an exit code that names the next step."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import typer

from prefect_assay.errors import (
    AccessError,
    AssayError,
    InputError,
    OutcomeUnknown,
    PaymentError,
    Stopped,
)
from prefect_assay.foreign_text import clean_text
from prefect_assay.service.network_variables import drop_unreadable_exceptions

INTERRUPTED: Final = 130
FAILED: Final = 1
RETRY_LATER: Final = 5
# The first match counts. docs/commands.md explains the codes; a test compares.
EXIT_CODES: Final[tuple[tuple[type[AssayError], int], ...]] = (
    (InputError, 2),
    (AccessError, 3),
    (PaymentError, 4),
    (Stopped, 4),
    (OutcomeUnknown, 6),
)


def exit_code(error: AssayError) -> int:
    """2 fix the input, 3 fix access, 4 pay or stop, 5 retry later, 6 check the outcome first, 1 everything else."""
    for kind, code in EXIT_CODES:
        if isinstance(error, kind):
            return code
    return RETRY_LATER if error.retriable else FAILED


@contextmanager
def report_errors(*, as_json: bool = False) -> Iterator[None]:
    """Turn this package's errors into a message and an exit code, Ctrl-C into 130, also at a question; others keep their traceback.

    The command and its children run with a NO_PROXY that httpx can read.
    """
    for entry in drop_unreadable_exceptions():
        print(
            f"Warning: NO_PROXY: the entry {entry!r} has no effect here; name the addresses", file=sys.stderr
        )
    try:
        yield
    except AssayError as error:
        if as_json:
            print(json.dumps({"error": describe_error(error)}, indent=2))
        else:
            print(f"Error: {clean_text(str(getattr(error, 'whole', error)))}", file=sys.stderr)
        raise SystemExit(exit_code(error)) from None
    except typer.Abort:  # Ctrl-C or Ctrl-D at a question
        print("\nStopped at the question: nothing was ordered or paid.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def refuse_ignored(options: Mapping[str, object], why: str) -> None:
    """Raise InputError for options that are given and that nothing would read; `why` completes the sentence."""
    ignored = ", ".join(name for name, value in options.items() if value is not None and value is not False)
    if ignored:
        raise InputError(f"{ignored} would be ignored: {why}; nothing was done")


def refuse_direction(is_higher_better: bool | None, why: str) -> None:  # noqa: FBT001
    """Raise InputError for the direction of a score where none is named; `why` completes the sentence."""
    refuse_ignored(
        {"--higher-is-better": is_higher_better or None, "--lower-is-better": is_higher_better is False}, why
    )


def describe_error(error: AssayError) -> dict[str, object]:
    """The error as JSON: type, message, every finding, and whether a retry may help."""
    findings = getattr(error, "findings", None) or getattr(error, "errors", None)
    return {
        "type": type(error).__name__,
        "message": error.message,
        "findings": list(findings) if findings else [],
        "retriable": error.retriable,
        "request_id": error.request_id,
        "status_code": error.status_code,
        "exit_code": exit_code(error),
    }
