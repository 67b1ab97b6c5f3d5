# shellcheck shell=bash
# What the scripts share. Sourced, never run: it goes to the repository's root,
# puts .cache/bin (what scripts/setup installed) ahead in PATH, and offers say
# and die. Works with bash 3.2, which is what macOS has.
set -euo pipefail

CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.cache/bin:$PATH"

# Go 1.21 to 1.25 fetches by itself the Go that go.mod asks for, unless the machine says "local".
case ${GOTOOLCHAIN:-local} in local) export GOTOOLCHAIN=auto ;; esac

# Go refuses to build where git exists but cannot read the repository (another owner's checkout).
git rev-parse HEAD >/dev/null 2>&1 || export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

say() { printf '%s\n' "$*" >&2; }

die() {
  say "${0##*/}: $*"
  exit 1
}

# find_browser prints the path of a Chrome or Chromium, looking where cdpmux looks.
find_browser() {
  if [ -n "${CDPMUX_CHROME:-}" ]; then
    command -v "$CDPMUX_CHROME" || die "CDPMUX_CHROME=$CDPMUX_CHROME is not a program: correct it or unset it"
    return
  fi
  local name path
  for name in google-chrome-stable google-chrome chromium chromium-browser chrome \
    /opt/google/chrome/chrome /usr/lib/chromium/chromium \
    /usr/lib/chromium-browser/chromium-browser /usr/lib64/chromium-browser/chromium-browser \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
    "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
    path=$(command -v "$name") || continue
    # Ubuntu's chromium is a snap, which could not read our profiles, and its
    # chromium-browser a script that only asks to install it.
    case $path in /snap/*) continue ;; esac
    [ "$(head -c 2 "$path")" = '#!' ] && grep -q 'snap install' "$path" && continue
    printf '%s\n' "$path"
    return
  done
  return 1
}

# static_checks looks at all the code without running any of it.
static_checks() {
  say "== gofmt, vet, build"
  local unformatted
  unformatted=$(gofmt -l cmd lifecycle proxy routing wrapper)
  [ -z "$unformatted" ] || die "not formatted, run gofmt -w on: ${unformatted//$'\n'/ }"
  go vet ./...
  go build ./...
  say "== golangci-lint, shellcheck"
  golangci-lint run ./...
  local shell
  shell=$(grep -lE '^(#!.*bash|# shellcheck shell=)' .ci/run scripts/*) # not the unit, the Containerfile
  # shellcheck disable=SC2086 # our own names have no blanks
  shellcheck --external-sources $shell
}
