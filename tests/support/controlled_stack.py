"""A stack of one machine whose parts a test stops, kills and starts again."""

from prefect_assay.local.stack import LocalStack


class ControlledStack(LocalStack):
    """`LocalStack`, with the failures that no user's command makes."""

    def start_server(self) -> None:
        """Start the Prefect server again on its database."""
        self._launch_server()
        self.wait_for_server()

    def start_receiver(self) -> None:
        """Start the webhook receiver."""
        self._launch_receiver()
        self.wait_for_receiver()

    def stop_receiver(self) -> None:
        """Stop the webhook receiver: deliveries fail."""
        self._parts.stop("receiver")

    def kill_runner(self) -> None:
        """SIGKILL what runs the flows, and all flow processes, like a crash of the machine."""
        for name in ("runner", "sweeper"):
            if self.running(name):
                self._parts.kill(name)
