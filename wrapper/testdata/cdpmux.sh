#!/usr/bin/env bash
# Stands in for cdpmux: notes how `ensure` or `url` was called, and does as
# $STUB_ENSURE or $STUB_URL says.
printf '%s\0' "$@" >"$STUB_DIR/$1"
case $1 in
ensure) eval "${STUB_ENSURE-}" ;;
url) eval "${STUB_URL-}" ;;
esac
