// Preloaded into the server. While the file FSYNC_FAILS_WHEN exists nothing can be synced; while the
// file FSYNC_WAITS_WHEN exists a sync does not return.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static int exists(const char* variable) {
  const char* path = getenv(variable);
  return path != NULL && access(path, F_OK) == 0;
}

// What the disk does before the real call: 0, or the error to return instead.
static int disk(void) {
  while (exists("FSYNC_WAITS_WHEN")) usleep(1000);
  if (!exists("FSYNC_FAILS_WHEN")) return 0;
  errno = EIO;
  return -1;
}

int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return disk() != 0 ? -1 : real(fd);
}

int fdatasync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return disk() != 0 ? -1 : real(fd);
}

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags) {
  int (*real)(int, off_t, off_t, unsigned int) =
      (int (*)(int, off_t, off_t, unsigned int))dlsym(RTLD_NEXT, "sync_file_range");
  return disk() != 0 ? -1 : real(fd, offset, bytes, flags);
}
