"""The figures of the page, one file per question they answer; each gives charts, or none where the run has no data."""
