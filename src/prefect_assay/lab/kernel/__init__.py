"""Storage, clock, settings, locks and the exception of a refusal. Knows no rule of the service."""
