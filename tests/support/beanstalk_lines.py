"""Lines that no server of the beanstalk protocol may take, by the reply that they get."""

MAX = 2**32 - 1

UNKNOWN = ["", " ", "hello", "PUT 1 0 1 0", "Reserve", "put", "putfoo", "put\t1 0 60 1", " stats",
           "peek", "peek-foo", "peeks 1", "delete", "release", "bury", "touch", "kick", "kick-job",
           "use", "watch", "ignore", "kicks 1", "list", "list-tube", "pause", "x" * 222]
BAD = [
    "put ", "put 1", "put 1 0", "put 1 0 60", "put 1 0 60 ", "put 1 0 60 0 ", "put 1 0 60 0 0",
    "put -1 0 60 0", "put +1 0 60 0", "put 1 -1 60 0", "put 1 0 -1 0", "put 1 0 60 -1",
    "put x 0 60 0", "put 1x 0 60 0", "put 1 x 60 0", "put 1 0 x 0", "put 1 0 60 x",
    "put 1.0 0 60 0", "put 1\t0 60 0", f"put {MAX + 1} 0 60 0", f"put 1 {MAX + 1} 60 0",
    f"put 1 0 {MAX + 1} 0", f"put 1 0 60 {MAX + 1}", f"put 1 0 60 {10**30}", "put 1 0 60 0x0",
    "reserve ", "reserve x", "reservex", "reserve-with-timeout", f"reserve-with-timeout {10**30}",
    "reserve-job", "reserve-job ", "reserve-job x", "reserve-job 1 2", "reserve-job -1",
    f"reserve-job {2**64}",
    "delete ", "delete x", "delete -1", "delete 1x", "delete 1 ", "delete 1 1", f"delete {2**64}",
    "release 1", "release 1 1", "release 1 1 ", "release 1 1 0 ", "release 1 1 0 1",
    "release x 1 0", "release 1 x 0", "release 1 1 x", "release 1 -1 0", "release 1 1 -1",
    f"release 1 {MAX + 1} 0", f"release 1 0 {MAX + 1}", f"release {2**64} 1 0",
    "bury ", "bury 1", "bury 1 ", "bury 1 1 ", "bury 1 1 1", "bury x 1", "bury 1 x",
    f"bury 1 {MAX + 1}", "touch ", "touch x", "touch 1 ", "touch 1 1", "touch -1",
    "kick ", "kick x", f"kick {10**30}",
    "kick-job ", "kick-job x", "kick-job 1 ", "kick-job 1 2", f"kick-job {2**64}",
    "peek ", "peek x", "peek -1", "peek 1 ", "peek 1 2", "peek 1x", f"peek {2**64}", "peek-ready ",
    "peek-readyx", "peek-delayed x", "peek-buried 1",
    "use ", "use  a", "use a b", "use a ", "watch ", "watch a b", "ignore ", "ignore a b",
    "stats ", "stats x", "statsx", "stats-job", "stats-job ", "stats-job x", "stats-job 1 ",
    "stats-job 1 1", f"stats-job {2**64}", "stats-tube", "stats-tube ", "stats-tube default x",
    "list-tubes ", "list-tubes x", "list-tubesx", "list-tube-used ", "list-tubes-watched x",
    "pause-tube", "pause-tube ", "pause-tube default", "pause-tube default ",
    "pause-tube default x", "pause-tube default -1", "pause-tube default 0 ",
    "pause-tube default 0 1", f"pause-tube default {MAX + 1}",
    "list-tube-used\0", "he\0llo", "\0", "use a\0b"]
