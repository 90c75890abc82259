"""The lab: real network drivers in virtual machines, watched by ringside. See docs/lab.md."""
