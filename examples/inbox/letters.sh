#!/bin/bash
# The letters in inbox/, as a JSON array: [{"name": "ada"}, …]. A real queue would be an issue
# tracker, a mailbox or another broker, listed by its own command line.
set -euo pipefail
mkdir -p inbox working answered refused
separator=""
printf '['
for letter in inbox/*; do
  [ -f "$letter" ] || continue
  printf '%s{"name": "%s"}' "$separator" "${letter#inbox/}"
  separator=", "
done
printf ']\n'
