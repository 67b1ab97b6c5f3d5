#!/usr/bin/env bash
# Auto-generated browser-use guard: stands behind the wrappers in PATH
# cdpmux-wrapper-format: 1
printf '%s\n' "ERROR: no browser-use wrapper of cdpmux is on PATH" \
  "Do not run the raw tool: it would drive another browser. Write the wrapper (cdpmux wrapper write) and take the PATH of: cdpmux wrapper path" >&2
exit 1
