"""One file per model adapter, beside the Chat Completions one in the kernel."""
