"""One file per command of the program.

A module `reread/commands/NAME.py` defines `HELP` (one line), `configure(parser)` and
`run(args) -> int` (the exit status). It imports what it needs inside `run`, so that `--help`
stays quick.
"""
