"""Arrays to and from files; the suffix decides the format."""
