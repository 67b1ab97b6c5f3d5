"""What steps.mjs is for Node: one JSON line per step of steps.txt on stdout.

A step that fails is printed with its error and ends the run.
"""

import json
import os
import struct
import time
import traceback

STEP_LIMIT_S = 20


def done(name, got):
    print(json.dumps({"step": name, "ok": True, "got": got}), flush=True)


def skip(name):
    """Print a step that the client has no means for."""
    done(name, "-")


def failed(name):
    print(json.dumps({"step": name, "ok": False, "error": traceback.format_exc()}), flush=True)
    os._exit(1)  # whatever still runs: threads, tasks


def step(name, run):
    """Run one step; what run returns is printed as got."""
    try:
        done(name, run())
    except Exception:
        failed(name)


def until(what, condition):
    """Poll for what no event announces."""
    end = time.monotonic() + STEP_LIMIT_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"no {what}")


def size(png):
    """Width and height from a PNG's header."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", f"not a PNG: it starts with {png[:8]!r}"
    return list(struct.unpack(">II", png[16:24]))
