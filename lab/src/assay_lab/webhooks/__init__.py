"""The updates feed, webhook configuration, the outbox, and signed delivery. It must not know experiments."""
