"""The command `loop`: its options, which it shares with `run`, starting a loop, and its rounds for `status`."""
