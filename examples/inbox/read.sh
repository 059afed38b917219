#!/bin/sh
# A letter that says nothing cannot be answered.
set -eu
if ! [ -s "$1" ]; then
  echo "the letter is empty" >&2
  exit 1
fi
cat -- "$1"
