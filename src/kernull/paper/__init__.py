"""What belongs to the paper alone; nothing else in the package imports it."""
