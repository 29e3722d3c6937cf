"""Storage, clock, settings, locks, faults and refusals: what every other room builds on.

It must not know HTTP or any rule of the service.
"""

__all__ = ["clock", "concurrency", "faults", "refusals", "schedule", "settings", "store", "tables", "times"]
