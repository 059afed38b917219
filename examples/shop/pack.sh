#!/bin/sh
# Packs a picked article for a customer.
set -eu
mkdir -p out/shipped
printf '%s\n' "for $2" > "out/shipped/$1"
rm -f -- "out/picked/$1"
echo "shipped $1 to $2"
