#!/bin/sh
# Takes an article from the shelf: the ids in stock.txt, one a line.
set -eu
if ! grep -qx -- "$1" stock.txt; then
  echo "article $1 is not in stock" >&2
  exit 3
fi
mkdir -p out/picked
: > "out/picked/$1"
echo "picked $1"
