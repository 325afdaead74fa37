"""Protocols: who trains, who validates, who is asked, and what is reported."""
