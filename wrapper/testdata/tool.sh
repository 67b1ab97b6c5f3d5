#!/usr/bin/env bash
# Stands in for the real browser-use: notes in $STUB_DIR how it was called, and
# does as $STUB_DO says. --reload is only noted, with $STUB_RELOAD done.
if [ "${1-}" = --reload ]; then
  printf '%s %s\n' "$BU_NAME" "$BU_CDP_WS" >>"$STUB_DIR/reloads"
  eval "${STUB_RELOAD-}"
  exit 0
fi
printf '%s\0' "$@" >"$STUB_DIR/args"
env -0 >"$STUB_DIR/env"
cat >"$STUB_DIR/stdin" || exit 3
echo run >>"$STUB_DIR/calls"
eval "${STUB_DO-}"
