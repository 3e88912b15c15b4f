"""Arrays in, arrays out: mathematics with a textbook name."""
