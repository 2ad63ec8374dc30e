"""Live models, over real HTTP on this machine."""
