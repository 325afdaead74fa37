"""Are the queries still those that the index was calibrated for? Sketches of every day, and alarms, rarely false."""
