"""Storage, clock, settings, locks, faults and refusals. It must not know HTTP or any rule of the service."""
