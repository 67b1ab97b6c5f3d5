#!/usr/bin/env bash
# Stands in for cdpmux: notes how `ensure` was called, and does as $STUB_ENSURE says.
printf '%s\0' "$@" >"$STUB_DIR/ensure"
eval "${STUB_ENSURE-}"
