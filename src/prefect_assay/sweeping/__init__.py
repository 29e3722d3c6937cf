"""What the sweep does: the updates feed, watermarks, stuck and stranded runs, cancellations."""
