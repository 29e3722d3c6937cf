"""Storage, clock, settings, locks, faults and refusals: what every other room builds on.

It must not know HTTP or any rule of the service.
"""
