"""What happens as lab time passes: the state machine, milestones, measuring, the clock driver."""
