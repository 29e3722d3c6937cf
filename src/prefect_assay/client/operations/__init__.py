"""The operations of the service as data: one request and how its answer is read. No I/O."""
