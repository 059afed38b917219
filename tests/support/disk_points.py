"""At which calls of a run to the disk a test makes trouble: a few by chance, or every one.

DISK_POINTS=all takes every call, DISK_POINTS=50 so many of each kind of trouble. REPRISE_SEED picks
the same ones again.
"""

import os
import random

SEED = int(os.environ.get("REPRISE_SEED", random.SystemRandom().randrange(1 << 32)))
SHARDS = 4  # so that two test runners have about the same to do


def points(candidates, usual, shard):
    """Those of this shard, spread over all candidates."""
    wanted = os.environ.get("DISK_POINTS", str(usual))
    if wanted != "all" and int(wanted) < len(candidates):
        dice = random.Random(SEED)
        share = len(candidates) / int(wanted)
        candidates = [candidates[int(share * (at + dice.random()))] for at in range(int(wanted))]
    chosen = candidates[shard::SHARDS]
    print(f"REPRISE_SEED={SEED}: calls {chosen}")
    return chosen
