"""Keeps the executor of a peer warm: {"code": …} a line in, {"seconds": …} a line out.

python executor.py jupyter|smolagents
"""
# mypy: ignore-errors

import json
import os
import sys
import time


def jupyter():
    """Return what runs code in a kernel that stays."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")

    def run(code):
        reply = client.execute_interactive(code, timeout=60, output_hook=lambda message: None)
        if reply["content"]["status"] != "ok":
            raise SystemExit(str(reply["content"]))

    def close():
        client.stop_channels()
        manager.shutdown_kernel(now=True)

    return run, close


def smolagents():
    """Return what runs code in smolagents' own interpreter, with all imports allowed."""
    from smolagents.local_python_executor import LocalPythonExecutor

    executor = LocalPythonExecutor(additional_authorized_imports=["*"])
    executor.send_tools({})

    return executor, lambda: None


def main():
    """Run from the command line."""
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run, close = {"jupyter": jupyter, "smolagents": smolagents}[sys.argv[1]]()
    for line in sys.stdin:
        began = time.perf_counter()
        run(json.loads(line)["code"])
        said.write(json.dumps({"seconds": time.perf_counter() - began}) + "\n")
        said.flush()
    close()


if __name__ == "__main__":
    main()
