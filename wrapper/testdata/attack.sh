# shellcheck shell=bash disable=SC2262,SC2032
# What an agent may have in BASH_ENV: stand-ins for everything that the wrapper uses.
set -aC
shopt -s expand_aliases nocasematch
alias set='touch pwned' unset='touch pwned' exec='touch pwned' if='touch pwned' case='touch pwned'
for name in curl perl od mkdir sleep command builtin printf read die probe authorize allowed true local; do
  eval "$name() { touch pwned; }"
done
trap ':' DEBUG
mux_real=/bin/false BU_EXTRA='' CDPMUX_HOME=/elsewhere
