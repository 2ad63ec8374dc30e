"""How each peer is driven: `with_NAME.build(url, tools, check, root)` returns `ask(task) -> bool`.

The files run in the peer's environment by `main.py`; nothing in this process imports them. What
`ask` returns is the peer's own word: it regards the run as finished.
"""
