"""When to believe an answer: trials with labelled images, thresholds, and which ways to search gain."""
