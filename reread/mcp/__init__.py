"""The gate and the runner as a server of the Model Context Protocol. Needs the extra `mcp`."""
