"""Orders: created once, paid once, waited for, although the service has no idempotency key (docs/ordering.md).

`create` and `find` order, `ledger` remembers, `payments` pays, `next_action` decides what comes next. Knows no Prefect.
"""
