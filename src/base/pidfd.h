// <sys/pidfd.h> of glibc 2.36 forgets to say that it is C.
#pragma once

extern "C" {
#include <sys/pidfd.h>
}
