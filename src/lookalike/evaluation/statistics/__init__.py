"""What a mean is worth: bootstrap intervals, paired differences, the spread over seeds."""
