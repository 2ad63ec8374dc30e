"""One file per built-in lifecycle hook."""
