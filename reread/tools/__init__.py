"""One file per tool that the model may call: `tool(session) -> Tool`. A file here is a power."""
