"""Methods: a file each, named for what it recovers."""
