"""What the sweep does: waking and restarting runs, reading the updates feed, finding problems and open money."""
