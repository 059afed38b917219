#!/bin/sh
# Puts back what was picked. The run is still a failure: $REPRISE_ERROR says of what.
set -eu
rm -f -- "out/picked/$1"
echo "put $1 back: $REPRISE_ERROR"
